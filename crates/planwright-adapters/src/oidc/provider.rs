//! Asking a provider: where people are sent, and what it says when they are back.

use super::identity_token::{Expected, KeySet, TokenFault, check_token};
use crate::outbound::{Range, build_client, describe_failure};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use planwright_core::digest::Digest;
use planwright_core::secret::{SecretName, SecretText};
use planwright_core::time::Timestamp;
use planwright_engine::Redaction;
use planwright_engine::port::{
    BoxFuture, Clock, IdentityError, IdentityProvider, ProviderVisit, Secrets,
};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time a provider may take for an answer.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Larger answers are not those of a provider.
const MAX_ANSWER: usize = 1 << 20;

/// What the operator says about a provider.
#[derive(Debug, Clone)]
pub struct OidcOptions {
    /// The address of the provider, exactly as it names itself.
    pub issuer: String,
    /// What the provider knows this service by.
    pub client_id: String,
    /// The secret that it knows this service by, by its name here.
    pub secret: Option<SecretName>,
    /// What is asked for besides `openid`.
    pub scopes: Vec<String>,
}

/// What a provider said about itself is believed for so long: people who only open the sign-in page do not make
/// us ask it each time.
const BELIEVED: Duration = Duration::from_mins(5);

/// One provider.
#[derive(Debug)]
pub struct OidcProvider {
    options: OidcOptions,
    secrets: Arc<dyn Secrets>,
    redaction: Redaction,
    clock: Arc<dyn Clock>,
    http: Client,
    encrypted: bool,
    known: Mutex<Known>,
}

/// What the provider said, and when.
#[derive(Debug, Default)]
struct Known {
    discovered: Option<(Discovered, Timestamp)>,
    keys: Option<(Arc<KeySet>, Timestamp)>,
}

/// The reason a provider cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OidcOptionsError {
    /// The address is none, or would be asked without encryption.
    #[error("`{0}` is no issuer: an https address is expected, or an http one of this machine")]
    Issuer(String),
    /// No client could be made.
    #[error("no connection can be made: {0}")]
    Client(String),
}

/// What a provider says about itself.
#[derive(Debug, Clone, Deserialize)]
struct Discovered {
    issuer: String,
    #[serde(deserialize_with = "read_url")]
    authorization_endpoint: Url,
    #[serde(deserialize_with = "read_url")]
    token_endpoint: Url,
    #[serde(deserialize_with = "read_url")]
    jwks_uri: Url,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

fn read_url<'de, D: Deserializer<'de>>(reader: D) -> Result<Url, D::Error> {
    let text = String::deserialize(reader)?;
    Url::parse(&text).map_err(serde::de::Error::custom)
}

#[derive(Debug, Deserialize)]
struct Answered {
    id_token: Option<String>,
}

/// Returns whether what is said to an address is read by no one else: it is encrypted, or stays on this machine.
fn is_private(url: &Url) -> bool {
    let local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    url.scheme() == "https" || (local && url.scheme() == "http")
}

fn unavailable(why: impl Into<String>) -> IdentityError {
    IdentityError::Unavailable(why.into())
}

fn refused(why: impl Into<String>) -> IdentityError {
    IdentityError::Refused(why.into())
}

impl OidcProvider {
    /// Checks the options. The provider is not asked yet.
    pub fn new(
        options: OidcOptions,
        (secrets, redaction): (Arc<dyn Secrets>, Redaction),
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OidcOptionsError> {
        let wrong = || OidcOptionsError::Issuer(options.issuer.clone());
        let url = Url::parse(&options.issuer).map_err(|_| wrong())?;
        let encrypted = url.scheme() == "https";
        let plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        if !plain || !is_private(&url) {
            return Err(wrong());
        }
        // The operator named the provider: it may be inside the operator's network.
        let http = build_client(Range::Private, encrypted, Some(TIMEOUT));
        let http = http.map_err(|error| OidcOptionsError::Client(describe_failure(&error)))?;
        Ok(Self {
            options,
            secrets,
            redaction,
            clock,
            http,
            encrypted,
            known: Mutex::default(),
        })
    }

    /// Sends a request and reads its answer, which has to be a good one.
    async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, IdentityError> {
        let failed = |error: reqwest::Error| unavailable(describe_failure(&error));
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > MAX_ANSWER {
                return Err(unavailable(format!(
                    "its answer has more than {MAX_ANSWER} bytes"
                )));
            }
            body.extend_from_slice(&piece);
        }
        if status.is_client_error() {
            return Err(refused(format!("it answered {status}")));
        }
        if !status.is_success() {
            return Err(unavailable(format!("it answered {status}")));
        }
        serde_json::from_slice(&body).map_err(|error| unavailable(error.to_string()))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether what was said then still counts. A clock that was set back makes nothing count for longer.
    fn is_recent(&self, said_at: Timestamp) -> bool {
        let now = self.clock.now();
        said_at <= now && now < said_at.plus(BELIEVED)
    }

    /// What the provider says about itself.
    async fn discover(&self) -> Result<Discovered, IdentityError> {
        let known = self.known().discovered.clone();
        if let Some((found, _)) = known.filter(|(_, said_at)| self.is_recent(*said_at)) {
            return Ok(found);
        }
        let found = self.ask_about_itself().await?;
        self.known().discovered = Some((found.clone(), self.clock.now()));
        Ok(found)
    }

    /// The keys of the provider, asked for again if those that are known do not suffice.
    async fn keys(&self, place: &Url, again: bool) -> Result<Arc<KeySet>, IdentityError> {
        let known = self.known().keys.clone();
        let recent = known.filter(|(_, said_at)| !again && self.is_recent(*said_at));
        if let Some((keys, _)) = recent {
            return Ok(keys);
        }
        let keys: Arc<KeySet> = Arc::new(self.ask(self.http.get(place.clone())).await?);
        self.known().keys = Some((Arc::clone(&keys), self.clock.now()));
        Ok(keys)
    }

    /// Reads what the provider says about itself. It may not send us to unencrypted addresses.
    async fn ask_about_itself(&self) -> Result<Discovered, IdentityError> {
        let issuer = self.options.issuer.trim_end_matches('/');
        let url = format!("{issuer}/.well-known/openid-configuration");
        let found: Discovered = self.ask(self.http.get(url)).await?;
        if found.issuer != self.options.issuer {
            return Err(unavailable("it names itself otherwise"));
        }
        let places = [
            &found.authorization_endpoint,
            &found.token_endpoint,
            &found.jwks_uri,
        ];
        let open = |url: &&Url| !is_private(url) || (self.encrypted && url.scheme() != "https");
        if places.iter().any(open) {
            return Err(unavailable("it has addresses without encryption"));
        }
        Ok(found)
    }

    async fn send_away(&self, visit: &ProviderVisit) -> Result<String, IdentityError> {
        let mut url = self.discover().await?.authorization_endpoint;
        let challenge = Digest::of_bytes(visit.verifier.as_bytes());
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(challenge.as_bytes());
        let scopes = [&["openid".to_owned()], self.options.scopes.as_slice()].concat();
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", self.options.client_id.as_str()),
            ("redirect_uri", &visit.redirect),
            ("scope", &scopes.join(" ")),
            ("state", &visit.state),
            ("nonce", &visit.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        Ok(url.into())
    }

    async fn receive(
        &self,
        visit: &ProviderVisit,
        code: &str,
    ) -> Result<Map<String, Value>, IdentityError> {
        let discovered = self.discover().await?;
        let secret = self.secret().await?;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &visit.redirect),
            ("code_verifier", &visit.verifier),
            ("client_id", &self.options.client_id),
        ];
        let mut request = self.http.post(discovered.token_endpoint.clone());
        match &secret {
            None => {}
            Some(secret) if discovered.takes_secret_in_form() => {
                form.push(("client_secret", secret.expose()));
            }
            Some(secret) => {
                let [name, secret] = [&self.options.client_id, secret.expose()].map(form_encoded);
                request = request.basic_auth(name, Some(secret));
            }
        }
        let answered: Answered = self.ask(with_form(request, &form)).await?;
        let token = answered
            .id_token
            .ok_or_else(|| refused("it said nothing about the person"))?;
        let expected = Expected {
            issuer: &self.options.issuer,
            client_id: &self.options.client_id,
            nonce: &visit.nonce,
            now: self.clock.now().as_millis().div_euclid(1_000),
        };
        let keys = self.keys(&discovered.jwks_uri, false).await?;
        let mut checked = check_token(&token, &keys, expected);
        // The provider may have begun to sign with a key that it did not have when it was asked.
        if checked == Err(TokenFault::UnknownKey) {
            let keys = self.keys(&discovered.jwks_uri, true).await?;
            checked = check_token(&token, &keys, expected);
        }
        checked.map_err(|fault| refused(fault.to_string()))
    }

    /// Reads the secret, afresh so that a change is seen. It is known as one before it is used.
    async fn secret(&self) -> Result<Option<SecretText>, IdentityError> {
        let Some(name) = &self.options.secret else {
            return Ok(None);
        };
        let secret = self.secrets.get(name).await;
        let secret = secret.map_err(|error| unavailable(error.to_string()))?;
        let learned = self.redaction.learn(name, &secret);
        learned.map_err(|error| unavailable(error.to_string()))?;
        Ok(Some(secret))
    }
}

impl Discovered {
    /// Returns whether the secret has to be in the body: only if it cannot be in a header.
    fn takes_secret_in_form(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_ref();
        let takes = |method: &str| {
            methods.is_some_and(|methods| methods.iter().any(|known| known == method))
        };
        takes("client_secret_post") && !takes("client_secret_basic")
    }
}

fn with_form(request: RequestBuilder, form: &[(&str, &str)]) -> RequestBuilder {
    let mut url = Url::parse("x:").expect("a scheme alone is an address");
    url.query_pairs_mut().extend_pairs(form);
    let body = url.query().unwrap_or_default().to_owned();
    request
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(body)
}

/// A name or a secret as it stands in the header, where it is encoded as in a form first.
fn form_encoded(text: &str) -> String {
    let mut url = Url::parse("x:").expect("a scheme alone is an address");
    url.query_pairs_mut().append_key_only(text);
    url.query().unwrap_or_default().to_owned()
}

impl IdentityProvider for OidcProvider {
    fn address<'a>(
        &'a self,
        visit: &'a ProviderVisit,
    ) -> BoxFuture<'a, Result<String, IdentityError>> {
        Box::pin(self.send_away(visit))
    }

    fn finish<'a>(
        &'a self,
        visit: &'a ProviderVisit,
        code: &'a str,
    ) -> BoxFuture<'a, Result<Map<String, Value>, IdentityError>> {
        Box::pin(self.receive(visit, code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_engine::memory::{MemorySecrets, SystemClock};
    use serde_json::json;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_secret_is_encoded_as_in_a_form() {
        assert_eq!(form_encoded("a b:c%&+\u{e9}"), "a+b%3Ac%25%26%2B%C3%A9");
    }

    /// A provider whose token address is this, or its own, and which signs with a key that it does
    /// not show. It counts how often it was asked for its keys.
    fn scripted(token_endpoint: Option<&'static str>) -> (OidcProvider, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let own = issuer.clone();
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut head = Vec::new();
                while head.last().is_none_or(|line: &String| line != "\r\n") {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    head.push(line);
                }
                let length = head.iter().find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length: ")?
                        .trim()
                        .parse()
                        .ok()
                });
                reader
                    .read_exact(&mut vec![0; length.unwrap_or(0)])
                    .unwrap();
                let path = head[0].split(' ').nth(1).unwrap().to_owned();
                let body = match path.as_str() {
                    "/.well-known/openid-configuration" => json!({
                        "issuer": own, "authorization_endpoint": format!("{own}/authorize"),
                        "token_endpoint": token_endpoint.map_or_else(|| format!("{own}/token"), str::to_owned),
                        "jwks_uri": format!("{own}/keys"),
                    }),
                    "/token" => {
                        let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
                        let header = part(json!({ "alg": "RS256", "kid": "new" }));
                        json!({ "id_token": format!("{header}.{}.c2lnbmVk", part(json!({}))) })
                    }
                    "/keys" => {
                        counted.fetch_add(1, Ordering::SeqCst);
                        json!({ "keys": [] })
                    }
                    _ => panic!("{path}"),
                };
                let body = body.to_string();
                let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json";
                let length = body.len();
                write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
            }
        });
        let options = OidcOptions {
            issuer,
            client_id: "planwright".to_owned(),
            secret: None,
            scopes: Vec::new(),
        };
        let secrets: Arc<dyn Secrets> = Arc::new(MemorySecrets::default());
        let known = (secrets, Redaction::default());
        let provider = OidcProvider::new(options, known, Arc::new(SystemClock::default())).unwrap();
        (provider, asked)
    }

    fn visit() -> ProviderVisit {
        ProviderVisit {
            redirect: "http://127.0.0.1/back".to_owned(),
            state: "s".to_owned(),
            nonce: "n".to_owned(),
            verifier: "v".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_provider_that_sends_us_to_an_address_without_encryption_is_not_used() {
        let (provider, _) = scripted(Some("http://elsewhere.example/token"));
        let sent = provider.address(&visit()).await;
        let open = "it has addresses without encryption";
        assert_eq!(sent, Err(unavailable(open)));
        let (provider, _) = scripted(None);
        let sent = provider.address(&visit()).await.unwrap();
        assert!(sent.contains("code_challenge_method=S256"), "{sent}");
    }

    #[tokio::test]
    async fn a_key_that_is_not_known_is_looked_for_once_more() {
        let (provider, asked) = scripted(None);
        let refused = provider.finish(&visit(), "code").await;
        let unknown = TokenFault::UnknownKey.to_string();
        assert_eq!(refused, Err(IdentityError::Refused(unknown)));
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }
}
