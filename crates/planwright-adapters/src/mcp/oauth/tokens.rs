//! The tokens of servers, kept and renewed.

use super::{Credentials, PostError, post_form};
use crate::files::{SealedFolder, lock_beside};
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::principal::Principal;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A token is renewed this long before it ends, or after half of its life if that is shorter.
const EARLY: Duration = Duration::from_secs(60);

/// What a person's sign-in came to.
#[derive(Clone, Serialize, Deserialize)]
pub struct OAuthTokens {
    /// The address that they are for. They are sent to no other.
    pub(super) url: String,
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// When it ends, and when it is renewed: seconds since 1970.
    pub(super) expires_at: Option<u64>,
    pub(super) renew_at: Option<u64>,
    pub(super) token_endpoint: String,
    pub(super) client_id: String,
    pub(super) client_secret: Option<String>,
    #[serde(default)]
    pub(super) secret_in_header: bool,
    pub(super) resource: String,
}

/// Nothing of it is shown.
impl fmt::Debug for OAuthTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthTokens").finish_non_exhaustive()
    }
}

/// The answer of a token endpoint.
#[derive(Deserialize)]
pub(super) struct Granted {
    pub(super) access_token: String,
    #[serde(default)]
    pub(super) token_type: String,
    pub(super) refresh_token: Option<String>,
    pub(super) expires_in: Option<u64>,
}

impl Granted {
    pub(super) fn expires_at(&self) -> Option<u64> {
        let in_seconds = self.expires_in?;
        seconds_now().checked_add(in_seconds)
    }

    pub(super) fn renew_at(&self) -> Option<u64> {
        let in_seconds = self.expires_in?;
        let early = EARLY.as_secs().min(in_seconds / 2);
        seconds_now().checked_add(in_seconds - early)
    }

    pub(super) fn check(self) -> Result<Self, String> {
        if self.token_type.eq_ignore_ascii_case("bearer") {
            Ok(self)
        } else {
            Err("it gives a token of a kind that is not known".to_owned())
        }
    }
}

pub(super) fn seconds_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

impl OAuthTokens {
    /// The token as it is sent.
    pub(crate) fn bearer(&self) -> &str {
        &self.access_token
    }

    /// Returns whether it can be sent without thinking of its end.
    fn is_fresh(&self) -> bool {
        self.renew_at.is_none_or(|at| at > seconds_now())
    }

    fn has_ended(&self) -> bool {
        self.expires_at.is_some_and(|at| at <= seconds_now())
    }

    /// The same sign-in after it was refused: it is neither sent nor renewed again.
    fn ended(&self) -> Self {
        Self {
            refresh_token: None,
            expires_at: Some(0),
            renew_at: Some(0),
            ..self.clone()
        }
    }

    async fn renewed(&self) -> Result<Self, PostError> {
        let Some(refresh) = &self.refresh_token else {
            return Err(PostError::Refused("the token has ended".to_owned()));
        };
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.as_str()),
            ("resource", self.resource.as_str()),
        ];
        let client = Credentials {
            id: &self.client_id,
            secret: self.client_secret.as_deref(),
            in_header: self.secret_in_header,
        };
        let granted: Granted = post_form(&self.token_endpoint, &form, client).await?;
        let granted = granted.check().map_err(PostError::Failed)?;
        Ok(Self {
            expires_at: granted.expires_at(),
            renew_at: granted.renew_at(),
            access_token: granted.access_token,
            refresh_token: granted.refresh_token.or_else(|| self.refresh_token.clone()),
            ..self.clone()
        })
    }
}

/// The reason there is no token to send.
#[derive(Debug)]
pub(crate) enum NoToken {
    /// A person has to sign in, again or for the first time.
    SignIn(String),
    /// Something failed that may work later.
    Failed(String),
}

/// The account at a server that calls are made with: one that all share, or a person's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAccount {
    server: String,
    person: Option<Principal>,
}

impl ServerAccount {
    /// The account that all share who use the server here.
    pub fn shared(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            person: None,
        }
    }

    /// The account of one person.
    pub fn of_person(server: impl Into<String>, person: Principal) -> Self {
        Self {
            server: server.into(),
            person: Some(person),
        }
    }

    /// The person whose account it is, unless all share it.
    pub fn person(&self) -> Option<&Principal> {
        self.person.as_ref()
    }

    /// The operator's name for the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The name of its file: names of servers and of people can have any letters.
    fn file_name(&self) -> String {
        const SHORT: usize = 16;
        const LONG: usize = 32;
        let (digest, length) = match &self.person {
            None => (Digest::of_bytes(self.server.as_bytes()), SHORT),
            Some(person) => {
                let person = person.to_string();
                let parts = [self.server.as_bytes(), person.as_bytes()];
                (Digest::of_parts(&parts), LONG)
            }
        };
        digest.hex().chars().take(length).collect()
    }
}

/// Tokens in files, one for each account, sealed like everything else of the store.
#[derive(Clone)]
pub struct FileTokens {
    files: SealedFolder,
    /// Renewing spends the old token, so it is done once.
    renewing: Arc<tokio::sync::Mutex<()>>,
}

impl fmt::Debug for FileTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileTokens").field(&self.files).finish()
    }
}

impl FileTokens {
    /// Keeps them in this directory, which is made when needed.
    pub fn new(directory: impl Into<PathBuf>, cipher: Arc<Cipher>) -> Self {
        Self {
            files: SealedFolder::new(directory, cipher),
            renewing: Arc::default(),
        }
    }

    /// The tokens for this server at this address, renewed if need be, or if the server refused the
    /// one that it was `refused` with. `None` if no person signed in.
    pub(crate) async fn fresh(
        &self,
        account: &ServerAccount,
        url: &str,
        refused: Option<&str>,
    ) -> Result<Option<OAuthTokens>, NoToken> {
        let is_good = |tokens: &OAuthTokens| {
            tokens.is_fresh() && refused.is_none_or(|refused| refused != tokens.access_token)
        };
        match self.kept(account, url).map_err(NoToken::Failed)? {
            None => return Ok(None),
            Some(tokens) if is_good(&tokens) => return Ok(Some(tokens)),
            Some(_) => {}
        }
        let _renewing = self.renewing.lock().await;
        let alone = self.keep_others_out(account).await;
        let _alone = alone.map_err(NoToken::Failed)?;
        // Another call or process may have renewed it meanwhile.
        let Some(tokens) = self.kept(account, url).map_err(NoToken::Failed)? else {
            return Ok(None);
        };
        if is_good(&tokens) {
            return Ok(Some(tokens));
        }
        let was_refused = refused == Some(tokens.access_token.as_str());
        match tokens.renewed().await {
            Ok(renewed) => {
                self.save(account, &renewed).map_err(NoToken::Failed)?;
                Ok(Some(renewed))
            }
            Err(PostError::Refused(reason)) => {
                // It is asked once: what was refused stays refused.
                self.save(account, &tokens.ended())
                    .map_err(NoToken::Failed)?;
                let again = format!("planwright servers sign-in {}", account.server);
                let words = format!("the sign-in is over: {reason} ({again})");
                Err(NoToken::SignIn(words))
            }
            // What is still good for a moment is sent until its end.
            Err(PostError::Failed(_)) if !was_refused && !tokens.has_ended() => Ok(Some(tokens)),
            Err(PostError::Failed(reason)) => {
                let words = format!("the sign-in could not be renewed: {reason}");
                Err(NoToken::Failed(words))
            }
        }
    }

    /// Returns whether a person signed in to this server at this address.
    pub(crate) fn has(&self, account: &ServerAccount, url: &str) -> Result<bool, String> {
        Ok(self.kept(account, url)?.is_some())
    }

    /// Returns whether a person signed in to this server at this address, and that is not over.
    pub(super) fn is_signed_in(&self, account: &ServerAccount, url: &str) -> Result<bool, String> {
        let kept = self.kept(account, url)?;
        let lasts = |tokens: &OAuthTokens| tokens.refresh_token.is_some() || !tokens.has_ended();
        Ok(kept.as_ref().is_some_and(lasts))
    }

    /// The tokens as they are kept, if they are for this address.
    fn kept(&self, account: &ServerAccount, url: &str) -> Result<Option<OAuthTokens>, String> {
        let kept = self.files.load(&account.file_name());
        let kept = kept.map_err(|error| error.to_string())?;
        let tokens = kept.and_then(|text| serde_json::from_slice::<OAuthTokens>(&text).ok());
        Ok(tokens.filter(|tokens| tokens.url == url))
    }

    /// Waits for the other processes of this workspace: a token that two of them renew is refused to
    /// one of them, and a careful authorization server then ends the sign-in.
    async fn keep_others_out(&self, account: &ServerAccount) -> Result<std::fs::File, String> {
        let path = self.files.path(&account.file_name());
        let locked = tokio::task::spawn_blocking(move || lock_beside(&path)).await;
        let locked = locked.map_err(|error| error.to_string())?;
        locked.map_err(|error| error.to_string())
    }

    pub(super) fn save(&self, account: &ServerAccount, tokens: &OAuthTokens) -> Result<(), String> {
        let text = serde_json::to_vec(tokens).map_err(|error| error.to_string())?;
        let saved = self.files.save(&account.file_name(), &text);
        saved.map_err(|error| error.to_string())
    }

    /// Forgets them. Returns whether there were any.
    pub fn forget(&self, account: &ServerAccount) -> Result<bool, String> {
        let removed = self.files.remove(&account.file_name());
        removed.map_err(|error| error.to_string())
    }
}

/// Has a text masked from now on.
type Mask = dyn Fn(&str) + Send + Sync;

/// A person's sign-in at one server, as its requests use it.
#[derive(Clone)]
pub(crate) struct Bearer {
    pub(crate) tokens: FileTokens,
    pub(crate) account: ServerAccount,
    pub(crate) url: String,
    /// Has a token masked before it is sent.
    pub(crate) mask: Arc<Mask>,
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bearer").field(&self.account).finish()
    }
}

impl Bearer {
    /// The token to send, renewed if it is about to end.
    pub(crate) async fn token(&self) -> Result<String, NoToken> {
        self.fresh(None).await
    }

    /// The token to send after the server refused this one. An error says that there is none.
    pub(crate) async fn token_instead_of(&self, refused: &str) -> Result<String, NoToken> {
        self.fresh(Some(refused)).await
    }

    async fn fresh(&self, refused: Option<&str>) -> Result<String, NoToken> {
        let fresh = self.tokens.fresh(&self.account, &self.url, refused).await?;
        let tokens = fresh.ok_or_else(|| {
            NoToken::SignIn(format!(
                "the sign-in is over (planwright servers sign-in {})",
                self.account.server
            ))
        })?;
        (self.mask)(tokens.bearer());
        Ok(tokens.bearer().to_owned())
    }
}
