//! Signing in to servers over HTTP: OAuth 2.1 with PKCE, as the protocol describes it. A person signs
//! in once, in their browser; from then on the tokens are kept, sent and renewed.

mod discovery;
mod service;
mod sign_in;
mod tokens;

pub use service::{ServiceServer, ServiceSignIns};
pub use sign_in::{KnownAs, OAuthSignIn, OAuthSignInError};
pub(super) use tokens::{Bearer, NoToken};
pub use tokens::{OAuthTokens, ServerAccount, SignInTokens};

use super::http::{bounded_body, chain, client_for};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The time one request may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Why an authorization server gave nothing.
#[derive(Debug)]
enum PostError {
    /// It said no, in these words. Asking again does not help.
    Refused(String),
    /// It could not be asked, or broke down. Later it may answer.
    Failed(String),
}

impl PostError {
    fn into_reason(self) -> String {
        match self {
            Self::Refused(reason) | Self::Failed(reason) => reason,
        }
    }
}

/// This program as an authorization server knows it.
#[derive(Clone, Copy)]
struct Credentials<'a> {
    id: &'a str,
    secret: Option<&'a str>,
    /// The secret goes into a header, and not into the form.
    in_header: bool,
}

impl<'a> Credentials<'a> {
    /// What is added to a form.
    fn fields(self) -> Vec<(&'static str, &'a str)> {
        match self.secret {
            Some(_) if self.in_header => Vec::new(),
            Some(secret) => vec![("client_id", self.id), ("client_secret", secret)],
            None => vec![("client_id", self.id)],
        }
    }

    /// What is sent before the form: name and secret, encoded as in a form first.
    fn header(self) -> Option<(String, String)> {
        let secret = self.secret.filter(|_| self.in_header)?;
        Some((form_encoded(self.id)?, form_encoded(secret)?))
    }
}

fn form_encoded(text: &str) -> Option<String> {
    let url = reqwest::Url::parse_with_params("http://form.invalid/", [(text, "")]).ok()?;
    let query = url.query()?;
    query.strip_suffix('=').map(str::to_owned)
}

/// Sends a form to an authorization server, and reads its answer. An error says what it said.
async fn post_form<T: DeserializeOwned>(
    url: &str,
    form: &[(&str, &str)],
    client: Credentials<'_>,
) -> Result<T, PostError> {
    let form = [form, &client.fields()].concat();
    let body = reqwest::Url::parse_with_params("http://form.invalid/", form)
        .map_err(|error| PostError::Failed(error.to_string()))?;
    let body = body.query().unwrap_or_default().to_owned();
    let kind = "application/x-www-form-urlencoded";
    post(url, (kind, body), client.header()).await
}

async fn post_json<T: DeserializeOwned>(url: &str, document: &Value) -> Result<T, PostError> {
    post(url, ("application/json", document.to_string()), None).await
}

async fn post<T: DeserializeOwned>(
    url: &str,
    (kind, body): (&str, String),
    known_as: Option<(String, String)>,
) -> Result<T, PostError> {
    let (url, client) = client_for(url, &BTreeMap::new()).map_err(PostError::Failed)?;
    let mut request = client.post(url);
    if let Some((name, secret)) = known_as {
        request = request.basic_auth(name, Some(secret));
    }
    let request = request
        .header(reqwest::header::CONTENT_TYPE, kind)
        .header(reqwest::header::ACCEPT, "application/json")
        .timeout(TIMEOUT)
        .body(body);
    let sent = request.send().await;
    let response = sent.map_err(|error| PostError::Failed(chain(&error)))?;
    let status = response.status();
    let body = bounded_body(response)
        .await
        .map_err(|error| PostError::Failed(error.to_string()))?;
    if status.is_success() {
        return serde_json::from_slice(&body)
            .map_err(|_| PostError::Failed("the answer cannot be read".to_owned()));
    }
    let reason = refusal(status, &body);
    // Those who are asked too often say so, and mean nothing else by it.
    if status.is_client_error() && status != reqwest::StatusCode::TOO_MANY_REQUESTS {
        Err(PostError::Refused(reason))
    } else {
        Err(PostError::Failed(reason))
    }
}

/// What an authorization server says when it refuses. It never repeats what it was sent.
fn refusal(status: reqwest::StatusCode, body: &[u8]) -> String {
    const MAX_CHARS: usize = 300;
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let word = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
    let text = format!("{status} {} {}", word("error"), word("error_description"));
    text.trim().chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_goes_where_the_server_wants_it() {
        let client = Credentials {
            id: "a b",
            secret: Some("x:y%"),
            in_header: true,
        };
        assert_eq!(client.fields(), []);
        let header = ("a+b".to_owned(), "x%3Ay%25".to_owned());
        assert_eq!(client.header(), Some(header));
        let client = Credentials {
            in_header: false,
            ..client
        };
        let fields = [("client_id", "a b"), ("client_secret", "x:y%")];
        assert_eq!(client.fields(), fields);
        assert_eq!(client.header(), None);
        let public = Credentials {
            secret: None,
            in_header: true,
            ..client
        };
        assert_eq!(public.fields(), [("client_id", "a b")]);
        assert_eq!(public.header(), None);
    }
}
