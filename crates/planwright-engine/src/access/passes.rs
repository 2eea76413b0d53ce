//! Signing in: passes are made, recognised, renewed and ended here.
//!
//! A session of a browser has two halves: a cookie, which no script can read, and a proof, which only
//! pages of the service's own origin can read. Cookies do not know ports: what listens on another port
//! of the same machine is sent the cookie too, and can do nothing with it alone.

use super::random_text;
use crate::port::{Pass, PassKind, Passes, StoreError, Token, Tokens};
use planwright_core::digest::Digest;
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};
use planwright_core::policy::{GrantRefusal, Role, Roles};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::secret::SecretText;
use planwright_core::time::Timestamp;
use std::time::Duration;
use subtle::ConstantTimeEq as _;

/// The beginning of the text of a session.
pub const SESSION_PREFIX: &str = "pws_";
/// The beginning of the proof of a session.
pub const PROOF_PREFIX: &str = "pwp_";
/// The time a session lasts unless it is renewed.
pub const SESSION_LIFE: Duration = Duration::from_hours(12);
/// The time a session lasts however often it is renewed.
const LONGEST_SESSION: Duration = Duration::from_hours(30 * 24);
/// The time one lasts of a person whom another service recognised: that service has to know them still.
const LONGEST_RECOGNISED: Duration = Duration::from_hours(24);
/// More sessions than a team has browsers.
const MAX_SESSIONS: usize = 10_000;
/// The beginning of the text of an invitation.
pub const INVITATION_PREFIX: &str = "pwi_";
/// The time an invitation is good unless its giver says otherwise.
pub const INVITATION_LIFE: Duration = Duration::from_hours(24);
const LONGEST_INVITATION: Duration = Duration::from_hours(30 * 24);
/// Invitations that were not accepted.
const MAX_INVITATIONS: usize = 1_000;

/// A principal who signs in, and the proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    /// The principal of the session.
    pub principal: Principal,
    /// The most it may do.
    pub role: Role,
    /// The proof by which it was recognised.
    pub assurance: Assurance,
    /// The token it showed, if it was one: the session ends with it.
    pub token: Option<Token>,
}

/// The way in which a session is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionForm {
    /// One text, brought as a token is.
    Bearer,
    /// A cookie, and a proof that comes with it.
    Cookie,
}

/// A session that was just opened. The only moment at which its texts are known.
#[derive(Debug, Clone)]
pub struct OpenedSession {
    /// The session as it is stored.
    pub pass: Pass,
    /// The session's own text: the cookie, or what is brought as a token.
    pub text: SecretText,
    /// The proof that has to come with the cookie.
    pub proof: Option<SecretText>,
}

/// The reason a session was not opened, or a person was not invited.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The core refuses the invitation.
    #[error(transparent)]
    Refused(#[from] GrantRefusal),
    /// The invitation would be good for too long, or not at all.
    #[error("an invitation is good for some time, and for at most 30 days")]
    Lifetime,
    /// The limit on sessions or invitations is reached.
    #[error("there are {0} sessions or invitations already")]
    TooMany(usize),
    /// The operating system gave no randomness.
    #[error("the operating system gives no random numbers: {0}")]
    Random(String),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ClassifiedError for SignInError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Refused(refusal) => refusal.class(),
            Self::Lifetime => ErrorKind::Invalid.with_code("bad_lifetime"),
            Self::TooMany(_) => ErrorKind::Conflict.with_code("too_many_sessions"),
            Self::Random(_) => ErrorKind::Unavailable.with_code("no_randomness"),
            Self::Store(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Refused(_) | Self::Lifetime | Self::TooMany(_) | Self::Random(_) => None,
        }
    }
}

fn hash_of(text: &SecretText) -> Digest {
    Digest::of_bytes(text.expose().as_bytes())
}

/// Opens a session for a principal that was recognised.
pub async fn open_session(
    passes: &dyn Passes,
    who: SignedIn,
    form: SessionForm,
    now: Timestamp,
) -> Result<OpenedSession, SignInError> {
    let random = |error: getrandom::Error| SignInError::Random(error.to_string());
    let text = random_text(SESSION_PREFIX).map_err(random)?;
    let proof = match form {
        SessionForm::Bearer => None,
        SessionForm::Cookie => Some(random_text(PROOF_PREFIX).map_err(random)?),
    };
    let until = who.token.as_ref().and_then(|token| token.expires_at);
    let expires_at = now.plus(SESSION_LIFE);
    let pass = Pass {
        kind: PassKind::Session,
        hash: hash_of(&text),
        proof: proof.as_ref().map(hash_of),
        token: who.token.map(|token| token.hash),
        principal: who.principal,
        role: who.role,
        assurance: who.assurance,
        created_at: now,
        expires_at: until.map_or(expires_at, |until| until.min(expires_at)),
    };
    if !passes.add(&pass, MAX_SESSIONS, now).await? {
        return Err(SignInError::TooMany(MAX_SESSIONS));
    }
    Ok(OpenedSession { pass, text, proof })
}

/// Whose session this is, if it opens the door now. One that has a proof needs it; one that has none
/// is never a cookie.
pub async fn recognise_session(
    (passes, tokens): (&dyn Passes, &dyn Tokens),
    text: &str,
    proof: Option<&str>,
    now: Timestamp,
) -> Result<Option<Pass>, StoreError> {
    let hash = Digest::of_bytes(text.as_bytes());
    let Some(pass) = valid_session((passes, tokens), &hash, now).await? else {
        return Ok(None);
    };
    let proven = match (&pass.proof, proof) {
        (None, None) => true,
        (Some(kept), Some(shown)) => {
            let shown = Digest::of_bytes(shown.as_bytes());
            bool::from(kept.as_bytes().ct_eq(shown.as_bytes()))
        }
        (None, Some(_)) | (Some(_), None) => false,
    };
    Ok(proven.then_some(pass))
}

/// The session with this hash, unless it is over or its token is no longer valid.
pub async fn valid_session(
    (passes, tokens): (&dyn Passes, &dyn Tokens),
    hash: &Digest,
    now: Timestamp,
) -> Result<Option<Pass>, StoreError> {
    let found = passes.find(PassKind::Session, hash).await?;
    let Some(pass) = found.filter(|pass| now < pass.expires_at) else {
        return Ok(None);
    };
    let Some(token) = &pass.token else {
        return Ok(Some(pass));
    };
    let token = tokens.find(token).await?;
    Ok(token
        .is_some_and(|token| token.is_valid(now))
        .then_some(pass))
}

/// Makes a session last for another while. Returns until when, or `None` if there is no such session.
pub async fn renew_session(
    (passes, tokens): (&dyn Passes, &dyn Tokens),
    hash: &Digest,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let Some(pass) = valid_session((passes, tokens), hash, now).await? else {
        return Ok(None);
    };
    let longest = if pass.assurance == Assurance::SingleSignOn {
        LONGEST_RECOGNISED
    } else {
        LONGEST_SESSION
    };
    let mut until = now.plus(SESSION_LIFE).min(pass.created_at.plus(longest));
    if let Some(token) = &pass.token {
        let token = tokens.find(token).await?;
        if let Some(end) = token.and_then(|token| token.expires_at) {
            until = until.min(end);
        }
    }
    Ok(passes.extend(hash, until).await?.then_some(until))
}

/// Ends a session for ever. Returns whether there was one.
pub async fn end_session(passes: &dyn Passes, hash: &Digest) -> Result<bool, StoreError> {
    Ok(passes.take(PassKind::Session, hash).await?.is_some())
}

/// A person who is to be let in once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The name under which the person appears in the journal.
    pub name: String,
    /// The most they may do.
    pub role: Role,
    /// Counted from the moment it is made.
    pub lifetime: Duration,
}

/// An invitation that was just made. The only moment at which its text is known.
#[derive(Debug, Clone)]
pub struct Invited {
    /// The invitation as it is stored.
    pub pass: Pass,
    /// The text that the link holds.
    pub text: SecretText,
}

/// Invites a person, if `by` may give them that role.
pub async fn invite(
    passes: &dyn Passes,
    (roles, by): (&Roles, &Principal),
    invitation: &Invitation,
    now: Timestamp,
) -> Result<Invited, SignInError> {
    let to = Principal::person(invitation.name.as_str());
    roles.check_grant(by, &to, invitation.role)?;
    if invitation.lifetime.is_zero() || invitation.lifetime > LONGEST_INVITATION {
        return Err(SignInError::Lifetime);
    }
    let who = SignedIn {
        principal: to,
        role: invitation.role,
        assurance: Assurance::WebSignIn,
        token: None,
    };
    add_invitation(passes, who, invitation.lifetime, now).await
}

async fn add_invitation(
    passes: &dyn Passes,
    who: SignedIn,
    lifetime: Duration,
    now: Timestamp,
) -> Result<Invited, SignInError> {
    let random = |error: getrandom::Error| SignInError::Random(error.to_string());
    let text = random_text(INVITATION_PREFIX).map_err(random)?;
    let pass = Pass {
        kind: PassKind::Invitation,
        hash: hash_of(&text),
        proof: None,
        token: None,
        principal: who.principal,
        role: who.role,
        assurance: who.assurance,
        created_at: now,
        expires_at: now.plus(lifetime),
    };
    if !passes.add(&pass, MAX_INVITATIONS, now).await? {
        return Err(SignInError::TooMany(MAX_INVITATIONS));
    }
    Ok(Invited { pass, text })
}

/// The time a person who was recognised elsewhere has to come to the page.
const HANDOVER_LIFE: Duration = Duration::from_secs(60);

/// Makes a code that signs in once, and soon, a person who was recognised elsewhere.
pub async fn hand_over(
    passes: &dyn Passes,
    who: SignedIn,
    now: Timestamp,
) -> Result<SecretText, SignInError> {
    let invited = add_invitation(passes, who, HANDOVER_LIFE, now).await?;
    Ok(invited.text)
}

/// Spends an invitation. Returns who signs in with it, once.
pub async fn accept_invitation(
    passes: &dyn Passes,
    text: &str,
    now: Timestamp,
) -> Result<Option<SignedIn>, StoreError> {
    let hash = Digest::of_bytes(text.as_bytes());
    // Most texts that never were an invitation cost a look and no write.
    if passes.find(PassKind::Invitation, &hash).await?.is_none() {
        return Ok(None);
    }
    let taken = passes.take(PassKind::Invitation, &hash).await?;
    let good = taken.filter(|pass| now < pass.expires_at);
    Ok(good.map(|pass| SignedIn {
        principal: pass.principal,
        role: pass.role,
        assurance: pass.assurance,
        token: None,
    }))
}

/// Ends every session and invitation of a person, if `by` may. Returns how many there were.
pub async fn sign_out_everywhere(
    passes: &dyn Passes,
    (roles, by): (&Roles, &Principal),
    of: &Principal,
) -> Result<usize, SignInError> {
    // A principal who may not take access away may still give up their own.
    if of != by {
        roles.check_revoke(by)?;
    }
    let mut ended = 0;
    for kind in [PassKind::Invitation, PassKind::Session] {
        for pass in passes.list(kind).await? {
            if pass.principal == *of && passes.take(kind, &pass.hash).await?.is_some() {
                ended += 1;
            }
        }
    }
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Grant, mint};
    use crate::memory::{MemoryPasses, MemoryTokens};

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn ada() -> SignedIn {
        SignedIn {
            principal: Principal::person("ada"),
            role: Role::Admin,
            assurance: Assurance::WebSignIn,
            token: None,
        }
    }

    #[tokio::test]
    async fn a_cookie_opens_nothing_without_its_proof() {
        let passes = MemoryPasses::new();
        let tokens = MemoryTokens::new();
        let opened = open_session(&passes, ada(), SessionForm::Cookie, at(0))
            .await
            .unwrap();
        let other = open_session(&passes, ada(), SessionForm::Cookie, at(0))
            .await
            .unwrap();
        let opens = async |text: &str, proof: Option<&str>| {
            let found = recognise_session((&passes, &tokens), text, proof, at(1)).await;
            found.unwrap().is_some()
        };
        let text = opened.text.expose();
        let proof = opened.proof.as_ref().unwrap().expose();
        assert!(opens(text, Some(proof)).await);
        assert!(!opens(text, None).await);
        assert!(!opens(text, Some(text)).await);
        assert!(!opens(text, Some(other.proof.as_ref().unwrap().expose())).await);
        assert!(!opens(proof, Some(proof)).await);
    }

    #[tokio::test]
    async fn a_session_is_renewed_until_it_is_too_old_and_ended_for_ever() {
        let passes = MemoryPasses::new();
        let tokens = MemoryTokens::new();
        let opened = open_session(&passes, ada(), SessionForm::Bearer, at(0))
            .await
            .unwrap();
        let hash = opened.pass.hash;
        let mut now = at(0);
        let mut renewals = 0;
        while let Some(until) = renew_session((&passes, &tokens), &hash, now).await.unwrap() {
            now = at(until.as_millis() - 1);
            renewals += 1;
            assert!(renewals < 100, "it never ends");
            if until == at(0).plus(LONGEST_SESSION) {
                break;
            }
        }
        // Each renewal comes a moment before the end.
        assert_eq!(renewals, 61);
        assert!(end_session(&passes, &hash).await.unwrap());
        assert!(!end_session(&passes, &hash).await.unwrap());
        let ended = recognise_session((&passes, &tokens), opened.text.expose(), None, at(1)).await;
        assert_eq!(ended.unwrap(), None);
    }

    #[tokio::test]
    async fn a_person_of_another_service_has_to_be_recognised_again_after_a_day() {
        let passes = MemoryPasses::new();
        let tokens = MemoryTokens::new();
        let who = SignedIn {
            assurance: Assurance::SingleSignOn,
            ..ada()
        };
        let opened = open_session(&passes, who, SessionForm::Cookie, at(0)).await;
        let hash = opened.unwrap().pass.hash;
        let hours = |hours: u64| at(0).plus(Duration::from_hours(hours));
        for (now, until) in [(11, hours(23)), (22, hours(24)), (23, hours(24))] {
            let renewed = renew_session((&passes, &tokens), &hash, hours(now)).await;
            assert_eq!(renewed.unwrap(), Some(until));
        }
        let renewed = renew_session((&passes, &tokens), &hash, hours(24)).await;
        assert_eq!(renewed.unwrap(), None);
    }

    #[tokio::test]
    async fn a_session_that_was_opened_with_a_token_ends_with_it() {
        let passes = MemoryPasses::new();
        let tokens = MemoryTokens::new();
        let grant = Grant {
            to: Principal::person("bob"),
            role: Role::Approver,
            lifetime: Some(Duration::from_secs(60)),
        };
        let token = mint(&grant, at(0)).unwrap().token;
        tokens.add(&token).await.unwrap();
        let who = SignedIn {
            token: Some(token.clone()),
            assurance: Assurance::Token,
            ..ada()
        };
        let opened = open_session(&passes, who, SessionForm::Bearer, at(0))
            .await
            .unwrap();
        assert_eq!(opened.pass.expires_at, at(60_000));
        let look = async || {
            let found = recognise_session((&passes, &tokens), opened.text.expose(), None, at(5));
            found.await.unwrap().is_some()
        };
        assert!(look().await);
        let renewed = renew_session((&passes, &tokens), &opened.pass.hash, at(5)).await;
        assert_eq!(
            renewed.unwrap(),
            Some(at(60_000)),
            "no longer than the token"
        );
        tokens.revoke(&token.id, at(6)).await.unwrap();
        assert!(!look().await);
    }
    #[tokio::test]
    async fn an_invitation_is_good_once_in_time_and_from_those_who_may_give_access() {
        let passes = MemoryPasses::new();
        let roles = Roles::default();
        let ada = Principal::person("ada");
        let bob = Invitation {
            name: "bob".to_owned(),
            role: Role::Approver,
            lifetime: Duration::from_secs(60),
        };
        let bot = Principal::agent("bot");
        let refused = invite(&passes, (&roles, &bot), &bob, at(0)).await;
        assert!(matches!(refused, Err(SignInError::Refused(_))));
        let long = Invitation {
            lifetime: LONGEST_INVITATION + Duration::from_secs(1),
            ..bob.clone()
        };
        let refused = invite(&passes, (&roles, &ada), &long, at(0)).await;
        assert!(matches!(refused, Err(SignInError::Lifetime)));
        let invited = invite(&passes, (&roles, &ada), &bob, at(0)).await.unwrap();
        let accept = async |text: &str, now| {
            let accepted = accept_invitation(&passes, text, at(now)).await;
            accepted.unwrap()
        };
        assert_eq!(accept("pwi_wrong", 1).await, None);
        let who = accept(invited.text.expose(), 1).await.unwrap();
        assert_eq!(
            (who.principal.name.as_str(), who.role),
            ("bob", Role::Approver)
        );
        assert_eq!(accept(invited.text.expose(), 2).await, None);
        let late = invite(&passes, (&roles, &ada), &bob, at(0)).await.unwrap();
        assert_eq!(accept(late.text.expose(), 60_000).await, None);
    }

    #[tokio::test]
    async fn a_person_is_signed_out_everywhere_and_others_are_not() {
        let passes = MemoryPasses::new();
        let roles = Roles::default();
        let mut opened = Vec::new();
        for name in ["bob", "bob", "eve"] {
            let who = SignedIn {
                principal: Principal::person(name),
                ..ada()
            };
            let session = open_session(&passes, who, SessionForm::Bearer, at(0)).await;
            opened.push(session.unwrap());
        }
        let bob = Principal::person("bob");
        let agent = Principal::agent("bot");
        let refused = sign_out_everywhere(&passes, (&roles, &agent), &bob).await;
        assert!(refused.is_err());
        let by = Principal::person("ada");
        let ended = sign_out_everywhere(&passes, (&roles, &by), &bob).await;
        assert_eq!(ended.unwrap(), 2);
        let left = passes.list(PassKind::Session).await.unwrap();
        assert_eq!(left, std::slice::from_ref(&opened[2].pass));
    }
}
