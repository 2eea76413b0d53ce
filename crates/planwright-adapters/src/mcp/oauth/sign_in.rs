//! One sign-in: the address that the person opens, the answer that their browser brings back to this
//! machine, and the tokens it is exchanged for.

use super::discovery::{BASIC, Provider, discover};
use super::tokens::{Granted, OAuthTokens, ServerAccount, SignInTokens, seconds_now};
use super::{Credentials, PostError, post_form, post_json};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The longest time a person may take.
const PATIENCE: Duration = Duration::from_mins(10);
/// Seconds for which this program counts as known where people sign in.
const LONGEST_KNOWN: u64 = 24 * 60 * 60;
/// The time a browser may take to send its request, and the most bytes of it that are read.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REQUEST: usize = 16 << 10;

/// Why a sign-in came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum OAuthSignInError {
    #[error("the server does not say how to sign in: {0}")]
    Discovery(String),
    #[error("this program is not known there: {0}")]
    Registration(String),
    #[error("the answer of the browser cannot be waited for: {0}")]
    Listen(std::io::Error),
    #[error("no answer came within {} minutes", PATIENCE.as_secs() / 60)]
    Late,
    #[error("it was refused: {0}")]
    Refused(String),
    #[error("the tokens could not be kept: {0}")]
    Keep(String),
}

/// A sign-in that a person has begun at a terminal: their browser comes back to this machine.
pub struct OAuthSignIn {
    introduction: Introduction,
    listener: TcpListener,
    state: String,
    verifier: String,
}

/// This program made known at the one who signs in for a server: where people are sent, and where
/// they come back to.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Introduction {
    server: String,
    url: String,
    /// When it was made: seconds since 1970.
    made_at: u64,
    provider: Provider,
    client: Client,
    redirect: String,
}

/// What the operator was given when this program was made known.
#[derive(Clone)]
pub struct KnownAs {
    pub id: String,
    pub secret: Option<String>,
}

/// The secret is not shown.
impl fmt::Debug for KnownAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownAs")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// This program as the one who signs in knows it.
#[derive(Clone, Serialize, Deserialize)]
struct Client {
    client_id: String,
    client_secret: Option<String>,
    /// How it wants the secret.
    token_endpoint_auth_method: Option<String>,
}

/// Neither the secret nor what proves the answer is shown.
impl fmt::Debug for OAuthSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthSignIn")
            .field("server", &self.introduction.server)
            .finish_non_exhaustive()
    }
}

impl Introduction {
    /// Finds out where to sign in, and makes this program known there. `known_as` if the operator
    /// made it known already.
    pub(super) async fn make(
        (server, url): (&str, &str),
        known_as: Option<KnownAs>,
        redirect: String,
    ) -> Result<Self, OAuthSignInError> {
        let provider = discover(url).await.map_err(OAuthSignInError::Discovery)?;
        let client = match known_as {
            Some(KnownAs { id, secret }) => Client {
                client_id: id,
                client_secret: secret,
                token_endpoint_auth_method: None,
            },
            None => register(&provider, &redirect)
                .await
                .map_err(OAuthSignInError::Registration)?,
        };
        Ok(Self {
            server: server.to_owned(),
            url: url.to_owned(),
            made_at: seconds_now(),
            provider,
            client,
            redirect,
        })
    }

    /// Returns whether people can be sent to sign in at this address with it. It may be forgotten there after a while.
    pub(super) fn is_for(&self, url: &str) -> bool {
        self.url == url && self.made_at.saturating_add(LONGEST_KNOWN) > seconds_now()
    }

    /// The address that the person opens. What comes back with them is `state`; the code they bring is
    /// good only together with `verifier`.
    pub(super) fn address(&self, state: &str, verifier: &str) -> Result<String, OAuthSignInError> {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let scope = self.provider.scopes.join(" ");
        let mut parameters = vec![
            ("response_type", "code"),
            ("client_id", self.client.client_id.as_str()),
            ("redirect_uri", self.redirect.as_str()),
            ("state", state),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
            ("resource", self.provider.resource.as_str()),
        ];
        if !scope.is_empty() {
            parameters.push(("scope", &scope));
        }
        let endpoint = &self.provider.authorization_endpoint;
        Url::parse_with_params(endpoint, parameters)
            .map(String::from)
            .map_err(|error| OAuthSignInError::Discovery(error.to_string()))
    }

    /// Another server must not answer in the place of the one that was asked.
    pub(super) fn check_issuer(&self, named: Option<&String>) -> Result<(), OAuthSignInError> {
        match self.provider.has_answered(named) {
            true => Ok(()),
            false => Err(OAuthSignInError::Refused(
                "another server answered".to_owned(),
            )),
        }
    }

    /// Exchanges the code for tokens, and keeps them for this account.
    pub(super) async fn redeem(
        &self,
        code: &str,
        verifier: &str,
        (tokens, account): (&SignInTokens, &ServerAccount),
    ) -> Result<(), OAuthSignInError> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.redirect.as_str()),
            ("code_verifier", verifier),
            ("resource", self.provider.resource.as_str()),
        ];
        let wanted = self.client.token_endpoint_auth_method.as_deref();
        let client = Credentials {
            id: &self.client.client_id,
            secret: self.client.client_secret.as_deref(),
            in_header: wanted.unwrap_or_else(|| self.provider.secret_method()) == BASIC,
        };
        let granted: Granted = post_form(&self.provider.token_endpoint, &form, client)
            .await
            .map_err(|error| OAuthSignInError::Refused(error.into_reason()))?;
        let granted = granted.check().map_err(OAuthSignInError::Refused)?;
        let kept = OAuthTokens {
            url: self.url.clone(),
            expires_at: granted.expires_at(),
            renew_at: granted.renew_at(),
            access_token: granted.access_token,
            refresh_token: granted.refresh_token,
            token_endpoint: self.provider.token_endpoint.clone(),
            client_id: self.client.client_id.clone(),
            client_secret: self.client.client_secret.clone(),
            secret_in_header: client.in_header,
            resource: self.provider.resource.clone(),
        };
        let saved = tokens.save(account, &kept).await;
        saved.map_err(OAuthSignInError::Keep)
    }
}

impl OAuthSignIn {
    /// Finds out where to sign in, makes this program known there, and listens for the answer.
    /// `known_as` if the operator made it known already.
    pub async fn begin(
        server: &str,
        url: &str,
        known_as: Option<KnownAs>,
    ) -> Result<Self, OAuthSignInError> {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .map_err(OAuthSignInError::Listen)?;
        let port = listener
            .local_addr()
            .map_err(OAuthSignInError::Listen)?
            .port();
        let redirect = format!("http://127.0.0.1:{port}/callback");
        Ok(Self {
            introduction: Introduction::make((server, url), known_as, redirect).await?,
            listener,
            state: random()?,
            verifier: random()?,
        })
    }

    /// The address that the person opens.
    pub fn address(&self) -> Result<String, OAuthSignInError> {
        self.introduction.address(&self.state, &self.verifier)
    }

    /// Waits for the person, and keeps what comes of it.
    pub async fn finish(
        self,
        tokens: &SignInTokens,
        account: &ServerAccount,
    ) -> Result<(), OAuthSignInError> {
        let code = tokio::time::timeout(PATIENCE, self.wait_for_code())
            .await
            .map_err(|_| OAuthSignInError::Late)??;
        let redeemed = self
            .introduction
            .redeem(&code, &self.verifier, (tokens, account));
        redeemed.await
    }

    /// Answers every request to the loopback address until one brings the code of this sign-in.
    async fn wait_for_code(&self) -> Result<String, OAuthSignInError> {
        loop {
            let (mut stream, _) = self
                .listener
                .accept()
                .await
                .map_err(OAuthSignInError::Listen)?;
            let Some(asked) = read_request(&mut stream).await else {
                continue;
            };
            let answers: BTreeMap<String, String> = asked.query_pairs().into_owned().collect();
            let is_ours = asked.path() == "/callback"
                && answers
                    .get("state")
                    .is_some_and(|state| *state == self.state);
            if !is_ours {
                answer(
                    &mut stream,
                    "404 Not Found",
                    "This is not the sign-in that is waited for.",
                )
                .await;
                continue;
            }
            if let Err(error) = self.introduction.check_issuer(answers.get("iss")) {
                answer(&mut stream, "400 Bad Request", "Another server answered.").await;
                return Err(error);
            }
            let Some(code) = answers.get("code") else {
                answer(
                    &mut stream,
                    "200 OK",
                    "The sign-in was refused. You can close this page.",
                )
                .await;
                let why = answers.get("error").cloned().unwrap_or_default();
                let why: String = why.chars().take(200).collect();
                return Err(OAuthSignInError::Refused(why));
            };
            answer(
                &mut stream,
                "200 OK",
                "You are signed in. You can close this page.",
            )
            .await;
            return Ok(code.clone());
        }
    }
}

async fn register(provider: &Provider, redirect: &str) -> Result<Client, String> {
    let endpoint = provider
        .registration_endpoint
        .as_deref()
        .ok_or("it takes no registrations; set `client_id` in the server's table")?;
    // A page of another machine is no part of a program that people have on theirs.
    let kind = match redirect.starts_with("https:") {
        true => "web",
        false => "native",
    };
    let document = json!({
        "client_name": "Planwright",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": provider.auth_method(),
        "application_type": kind,
        "scope": provider.scopes.join(" "),
    });
    let registered = post_json(endpoint, &document).await;
    registered.map_err(PostError::into_reason)
}

fn random() -> Result<String, OAuthSignInError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| OAuthSignInError::Listen(std::io::Error::other(error.to_string())))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The address of one request, if it is one.
async fn read_request(stream: &mut TcpStream) -> Option<Url> {
    let mut said = Vec::new();
    let reading = async {
        let mut buffer = [0; 2048];
        while !said.windows(2).any(|end| end == b"\r\n") && said.len() < MAX_REQUEST {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => said.extend_from_slice(&buffer[..count]),
            }
        }
    };
    tokio::time::timeout(REQUEST_TIMEOUT, reading).await.ok()?;
    let text = String::from_utf8(said).ok()?;
    let mut words = text.lines().next()?.split(' ');
    if words.next() != Some("GET") {
        return None;
    }
    let target = words.next()?;
    Url::parse("http://127.0.0.1/").ok()?.join(target).ok()
}

async fn answer(stream: &mut TcpStream, status: &str, words: &str) {
    let page = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{words}",
        words.len()
    );
    // A browser that is gone does not read it.
    drop(stream.write_all(page.as_bytes()).await);
    drop(stream.shutdown().await);
}
