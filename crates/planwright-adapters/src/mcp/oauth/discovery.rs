//! Finding out who signs people in for a server: RFC 9728 for the server, RFC 8414 for the one who
//! signs in.

use super::super::http::{bounded_body, chain, client_for};
use super::TIMEOUT;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The scope with which a sign-in can be renewed.
const OFFLINE: &str = "offline_access";

/// The ways of saying who this program is.
pub(super) const BASIC: &str = "client_secret_basic";
const POST: &str = "client_secret_post";
const PUBLIC: &str = "none";

/// What a server says about who signs people in for it.
#[derive(Debug, Default, Deserialize)]
struct Resource {
    resource: Option<String>,
    #[serde(default)]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
}

/// What the one who signs in says about itself.
#[derive(Debug, Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    registration_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    scopes_supported: Option<Vec<String>>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// Where to sign in, and for what.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Provider {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    /// What the token is for: the server, in its own words.
    pub(super) resource: String,
    pub(super) scopes: Vec<String>,
    auth_methods: Option<Vec<String>>,
    /// It names itself in every answer.
    names_itself: bool,
}

impl Provider {
    /// How this program says who it is: with no secret where that is enough.
    pub(super) fn auth_method(&self) -> &'static str {
        let Some(known) = &self.auth_methods else {
            return PUBLIC;
        };
        let found = [PUBLIC, POST, BASIC]
            .into_iter()
            .find(|method| known.iter().any(|known| known == method));
        found.unwrap_or(PUBLIC)
    }

    /// How a secret is sent where the one who gave it did not say: in a header, unless that is not
    /// taken.
    pub(super) fn secret_method(&self) -> &'static str {
        let known = self.auth_methods.as_deref().unwrap_or_default();
        let takes = |method: &str| known.iter().any(|known| known == method);
        if takes(POST) && !takes(BASIC) {
            POST
        } else {
            BASIC
        }
    }

    /// Returns whether an answer with this name, or without one, can be this one's.
    pub(super) fn has_answered(&self, named: Option<&String>) -> bool {
        named.map_or(!self.names_itself, |named| *named == self.issuer)
    }
}

/// Finds it out. The address in `WWW-Authenticate` is asked first, then the well-known ones.
pub(super) async fn discover(server: &str) -> Result<Provider, String> {
    let url = Url::parse(server).map_err(|error| error.to_string())?;
    let challenge = challenged(&url).await;
    let resource = find_resource(&url, challenge.resource_metadata).await;
    // The token is sent to this server, so what it is for must be this server.
    let named = resource.resource.as_deref().unwrap_or(server);
    if !is_above(named, &url) {
        return Err(format!("it says that its tokens are for {named}"));
    }
    let issuer = resource
        .authorization_servers
        .first()
        .cloned()
        .unwrap_or_else(|| url.origin().ascii_serialization());
    let metadata = find_metadata(&issuer).await?;
    if !metadata
        .code_challenge_methods_supported
        .iter()
        .any(|method| method == "S256")
    {
        return Err(
            "it does not say that it supports PKCE, without which no sign-in is safe".into(),
        );
    }
    for endpoint in [&metadata.authorization_endpoint, &metadata.token_endpoint] {
        check_url(endpoint)?;
    }
    Ok(Provider {
        issuer: metadata.issuer,
        authorization_endpoint: metadata.authorization_endpoint,
        token_endpoint: metadata.token_endpoint,
        registration_endpoint: metadata.registration_endpoint,
        resource: named.to_owned(),
        scopes: scopes(
            challenge.scopes.or(resource.scopes_supported),
            metadata.scopes_supported,
        ),
        auth_methods: metadata.token_endpoint_auth_methods_supported,
        names_itself: metadata.authorization_response_iss_parameter_supported,
    })
}

/// What is asked for: what the server needs, and to stay signed in where that is a scope of its own.
fn scopes(of_server: Option<Vec<String>>, of_issuer: Option<Vec<String>>) -> Vec<String> {
    let of_issuer = of_issuer.unwrap_or_default();
    let Some(mut scopes) = of_server else {
        return of_issuer;
    };
    let stay = of_issuer.into_iter().find(|scope| scope == OFFLINE);
    scopes.extend(stay.filter(|_| !scopes.iter().any(|scope| scope == OFFLINE)));
    scopes
}

/// Returns whether what a server says a token is for is this server, or a part of it above the
/// address.
fn is_above(named: &str, server: &Url) -> bool {
    Url::parse(named).is_ok_and(|named| {
        named.origin() == server.origin()
            && server
                .path()
                .starts_with(named.path().trim_end_matches('/'))
    })
}

async fn find_resource(server: &Url, named: Option<String>) -> Resource {
    let path = server.path().trim_end_matches('/');
    let well_known = "/.well-known/oauth-protected-resource";
    let usual = [format!("{well_known}{path}"), well_known.to_owned()];
    for place in named.into_iter().chain(usual) {
        if let Ok(address) = server.join(&place)
            && let Ok(found) = get::<Resource>(address.as_str()).await
        {
            return found;
        }
    }
    Resource::default()
}

/// What a server says when it is asked without a token.
#[derive(Debug, Default, PartialEq, Eq)]
struct Challenge {
    resource_metadata: Option<String>,
    scopes: Option<Vec<String>>,
}

/// Asks the server without a token: with a message, since many refuse nothing else.
async fn challenged(server: &Url) -> Challenge {
    let Ok((url, client)) = client_for(server.as_str(), &BTreeMap::new()) else {
        return Challenge::default();
    };
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let posted = client
        .post(url.clone())
        .header(reqwest::header::CONTENT_TYPE, "application/json")
        .header(
            reqwest::header::ACCEPT,
            "application/json, text/event-stream",
        )
        .body(message);
    for request in [posted, client.get(url)] {
        let Ok(asked) = request.timeout(TIMEOUT).send().await else {
            continue;
        };
        let challenges = asked.headers().get_all(reqwest::header::WWW_AUTHENTICATE);
        let challenges = challenges.iter().filter_map(|said| said.to_str().ok());
        // There may be others, for other ways than this.
        let mut challenges = challenges.map(read_challenge);
        if let Some(challenge) = challenges.find(|challenge| *challenge != Challenge::default()) {
            return challenge;
        }
    }
    Challenge::default()
}

fn read_challenge(said: &str) -> Challenge {
    let quoted = |name: &str| {
        let begin = format!("{name}=\"");
        let (at, _) = said.match_indices(&begin).find(|(at, _)| {
            let before = said.get(..*at).and_then(|text| text.chars().next_back());
            before.is_none_or(|sign| matches!(sign, ' ' | ','))
        })?;
        let text = said.get(at + begin.len()..)?;
        text.split_once('"').map(|(text, _)| text.to_owned())
    };
    let scopes = quoted("scope");
    Challenge {
        resource_metadata: quoted("resource_metadata"),
        scopes: scopes.map(|text| text.split_whitespace().map(str::to_owned).collect()),
    }
}

async fn find_metadata(issuer: &str) -> Result<Metadata, String> {
    let url = Url::parse(issuer).map_err(|_| format!("`{issuer}` is no address"))?;
    let origin = url.origin().ascii_serialization();
    let path = url.path().trim_end_matches('/');
    let places = [
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
        format!("{origin}{path}/.well-known/openid-configuration"),
    ];
    let mut why = None;
    for place in &places {
        let found = match get::<Metadata>(place).await {
            Ok(found) => found,
            Err(reason) => {
                // The first place is where it should be.
                why.get_or_insert(reason);
                continue;
            }
        };
        // A document of another issuer could send people elsewhere.
        if found.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return Err(format!("{place} speaks for another issuer"));
        }
        return Ok(found);
    }
    Err(format!("{origin}: {}", why.unwrap_or_default()))
}

async fn get<T: serde::de::DeserializeOwned>(address: &str) -> Result<T, String> {
    check_url(address)?;
    let (url, client) = client_for(address, &BTreeMap::new())?;
    let request = client
        .get(url)
        .header(reqwest::header::ACCEPT, "application/json");
    let response = request.timeout(TIMEOUT).send().await;
    let response = response.map_err(|error| chain(&error))?;
    if !response.status().is_success() {
        return Err(response.status().to_string());
    }
    let body = bounded_body(response)
        .await
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&body).map_err(|error| error.to_string())
}

/// Tokens travel encrypted, or stay on this machine.
fn check_url(url: &str) -> Result<(), String> {
    client_for(url, &BTreeMap::new()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_names_where_to_look_and_what_to_ask_for() {
        let said = r#"Bearer error="invalid_token", scope="read write",resource_metadata="https://x.example/.well-known/y""#;
        let read = Challenge {
            resource_metadata: Some("https://x.example/.well-known/y".to_owned()),
            scopes: Some(vec!["read".to_owned(), "write".to_owned()]),
        };
        assert_eq!(read_challenge(said), read);
        for said in ["Bearer", "Bearer scope=", r#"Bearer other_scope="x"#, ""] {
            assert_eq!(read_challenge(said), Challenge::default(), "{said}");
        }
    }

    #[test]
    fn a_token_is_for_this_server_and_no_other() {
        let server = Url::parse("https://x.example/mcp").unwrap();
        assert!(is_above("https://x.example/mcp", &server));
        assert!(is_above("https://x.example/", &server));
        assert!(!is_above("https://y.example/mcp", &server));
        assert!(!is_above("https://x.example/other", &server));
    }
}
