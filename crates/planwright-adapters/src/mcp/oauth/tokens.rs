//! The tokens of servers, kept and renewed.

use super::{Credentials, PostError, post_form};
use crate::files::{SealedFolder, lock_beside};
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::principal::Principal;
use planwright_engine::port::{SignInStore, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A token is renewed this long before it ends, or after half of its life if that is shorter.
const EARLY: Duration = Duration::from_secs(60);
/// A turn to renew a token lasts longer than the request may take.
const RENEWAL: Duration = Duration::from_secs(60);
/// How often a process that waits for its turn looks whether it has come.
const RENEWAL_LOOK: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(90);

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

/// Where tokens are kept.
#[derive(Clone)]
enum Place {
    /// In files beside a store in a file, sealed like it.
    Files(SealedFolder),
    /// In the database of the store, sealed like it, for all processes that have it.
    Store(Arc<dyn SignInStore>),
}

/// The tokens of servers, one for each account.
#[derive(Clone)]
pub struct SignInTokens {
    place: Place,
    /// Renewing spends the old token, so it is done once.
    renewing: Arc<tokio::sync::Mutex<()>>,
}

impl fmt::Debug for SignInTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place: &dyn fmt::Debug = match &self.place {
            Place::Files(files) => files,
            Place::Store(store) => store,
        };
        f.debug_tuple("SignInTokens").field(place).finish()
    }
}

/// The turn to renew the tokens of an account, among all processes that have them.
enum Turn {
    File { _lock: std::fs::File },
    Store { name: String, by: String },
}

impl SignInTokens {
    /// Keeps them in this directory, which is made when needed.
    pub fn in_files(directory: impl Into<PathBuf>, cipher: Arc<Cipher>) -> Self {
        Self::at(Place::Files(SealedFolder::new(directory, cipher)))
    }

    /// Keeps them where all processes of a store find them.
    pub fn in_store(store: Arc<dyn SignInStore>) -> Self {
        Self::at(Place::Store(store))
    }

    fn at(place: Place) -> Self {
        Self {
            place,
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
        match self.kept(account, url).await.map_err(NoToken::Failed)? {
            None => return Ok(None),
            Some(tokens) if is_good(&tokens) => return Ok(Some(tokens)),
            Some(_) => {}
        }
        let _renewing = self.renewing.lock().await;
        let turn = self.take_turn(account).await.map_err(NoToken::Failed)?;
        // Another call or process may have renewed it meanwhile.
        let kept = self.kept(account, url).await.map_err(NoToken::Failed)?;
        let Some(tokens) = kept.filter(|tokens| !is_good(tokens)) else {
            self.end_turn(turn, account, None)
                .await
                .map_err(NoToken::Failed)?;
            return self.kept(account, url).await.map_err(NoToken::Failed);
        };
        let was_refused = refused == Some(tokens.access_token.as_str());
        let renewed = tokens.renewed().await;
        let kept = match &renewed {
            Ok(renewed) => Some(renewed.clone()),
            // It is asked once: what was refused stays refused.
            Err(PostError::Refused(_)) => Some(tokens.ended()),
            Err(PostError::Failed(_)) => None,
        };
        self.end_turn(turn, account, kept.as_ref())
            .await
            .map_err(NoToken::Failed)?;
        match renewed {
            Ok(renewed) => Ok(Some(renewed)),
            Err(PostError::Refused(reason)) => {
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
    pub(crate) async fn has(&self, account: &ServerAccount, url: &str) -> Result<bool, String> {
        Ok(self.kept(account, url).await?.is_some())
    }

    /// Returns whether a person signed in to this server at this address, and that is not over.
    pub(super) async fn is_signed_in(
        &self,
        account: &ServerAccount,
        url: &str,
    ) -> Result<bool, String> {
        let kept = self.kept(account, url).await?;
        let lasts = |tokens: &OAuthTokens| tokens.refresh_token.is_some() || !tokens.has_ended();
        Ok(kept.as_ref().is_some_and(lasts))
    }

    /// The tokens as they are kept, if they are for this address.
    async fn kept(
        &self,
        account: &ServerAccount,
        url: &str,
    ) -> Result<Option<OAuthTokens>, String> {
        let name = account.file_name();
        let kept = match &self.place {
            Place::Files(files) => files.load(&name).map_err(|error| error.to_string()),
            Place::Store(store) => store.load_sign_in(&name).await.map_err(failed),
        };
        let tokens = kept?.and_then(|text| serde_json::from_slice::<OAuthTokens>(&text).ok());
        Ok(tokens.filter(|tokens| tokens.url == url))
    }

    /// Waits for the other processes that have the tokens: one that two of them renew is refused to
    /// one of them, and a careful authorization server then ends the sign-in.
    async fn take_turn(&self, account: &ServerAccount) -> Result<Turn, String> {
        let name = account.file_name();
        match &self.place {
            Place::Files(files) => {
                let path = files.path(&name);
                let locked = tokio::task::spawn_blocking(move || lock_beside(&path)).await;
                let locked = locked.map_err(|error| error.to_string())?;
                let lock = locked.map_err(|error| error.to_string())?;
                Ok(Turn::File { _lock: lock })
            }
            Place::Store(store) => {
                let by = random_name()?;
                let until = tokio::time::Instant::now() + LONGEST_WAIT;
                loop {
                    let taken = store.take_renewal(&name, &by, RENEWAL).await;
                    if taken.map_err(failed)? {
                        return Ok(Turn::Store { name, by });
                    }
                    // What was forgotten meanwhile needs no turn.
                    if store.load_sign_in(&name).await.map_err(failed)?.is_none() {
                        return Ok(Turn::Store { name, by });
                    }
                    if tokio::time::Instant::now() >= until {
                        return Err("another process renews it, and does not end".to_owned());
                    }
                    tokio::time::sleep(RENEWAL_LOOK).await;
                }
            }
        }
    }

    /// Ends a turn, and keeps what came of it.
    async fn end_turn(
        &self,
        turn: Turn,
        account: &ServerAccount,
        renewed: Option<&OAuthTokens>,
    ) -> Result<(), String> {
        match (turn, &self.place) {
            (Turn::Store { name, by }, Place::Store(store)) => {
                let text = renewed.map(write).transpose()?;
                let ended = store.end_renewal(&name, &by, text.as_deref()).await;
                ended.map_err(failed)
            }
            (turn, _) => {
                if let Some(renewed) = renewed {
                    self.save(account, renewed).await?;
                }
                drop(turn);
                Ok(())
            }
        }
    }

    /// Where this program was made known by any process of the store, so that a sign-in which begins at one service can end at
    /// another. `None` where nothing is shared.
    pub(super) async fn introduction<T: DeserializeOwned>(
        &self,
        (server, redirect): (&str, &str),
    ) -> Result<Option<T>, String> {
        let Place::Store(store) = &self.place else {
            return Ok(None);
        };
        let name = introduction_name(server, redirect);
        let kept = store.load_sign_in(&name).await.map_err(failed)?;
        Ok(kept.and_then(|text| serde_json::from_slice(&text).ok()))
    }

    /// Keeps where this program was made known, or forgets it. Returns whether it is shared.
    pub(super) async fn keep_introduction<T: Serialize + Sync>(
        &self,
        (server, redirect): (&str, &str),
        made: Option<&T>,
    ) -> Result<bool, String> {
        let Place::Store(store) = &self.place else {
            return Ok(false);
        };
        let name = introduction_name(server, redirect);
        match made {
            Some(made) => {
                let text = serde_json::to_vec(made).map_err(|error| error.to_string())?;
                store.save_sign_in(&name, &text).await.map_err(failed)?;
            }
            None => drop(store.forget_sign_in(&name).await.map_err(failed)?),
        }
        Ok(true)
    }

    pub(super) async fn save(
        &self,
        account: &ServerAccount,
        tokens: &OAuthTokens,
    ) -> Result<(), String> {
        let (name, text) = (account.file_name(), write(tokens)?);
        match &self.place {
            Place::Files(files) => files.save(&name, &text).map_err(|error| error.to_string()),
            Place::Store(store) => store.save_sign_in(&name, &text).await.map_err(failed),
        }
    }

    /// Forgets them. Returns whether there were any.
    pub async fn forget(&self, account: &ServerAccount) -> Result<bool, String> {
        let name = account.file_name();
        match &self.place {
            Place::Files(files) => files.remove(&name).map_err(|error| error.to_string()),
            Place::Store(store) => store.forget_sign_in(&name).await.map_err(failed),
        }
    }
}

fn write(tokens: &OAuthTokens) -> Result<Vec<u8>, String> {
    serde_json::to_vec(tokens).map_err(|error| error.to_string())
}

/// A name that no account has.
fn introduction_name(server: &str, redirect: &str) -> String {
    let parts = [
        b"introduction".as_slice(),
        server.as_bytes(),
        redirect.as_bytes(),
    ];
    Digest::of_parts(&parts).hex()
}

fn failed(error: StoreError) -> String {
    error.to_string()
}

/// Tells one turn from all others.
fn random_name() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("there is no randomness: {error}"))?;
    Ok(Digest::of_bytes(&bytes).hex())
}

/// Has a text masked from now on.
type Mask = dyn Fn(&str) + Send + Sync;

/// A person's sign-in at one server, as its requests use it.
#[derive(Clone)]
pub(crate) struct Bearer {
    pub(crate) tokens: SignInTokens,
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
