//! Signing in from the operator's terminal: a code that is shown there once is worth a session.

use crate::http::auth::Caller;
use crate::http::problem::Problem;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use planwright_core::digest::Digest;
use planwright_core::policy::Role;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::time::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a code can be used.
const CODE_LIFE: Duration = Duration::from_mins(5);

/// How long a session lasts.
const SESSION_LIFE: Duration = Duration::from_hours(12);

/// More sessions than a team has people.
const MAX_SESSIONS: usize = 1_000;

/// Codes and sessions, kept as hashes and in memory only: after a restart of the service, people
/// sign in again.
#[derive(Default)]
pub struct SignIn {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    codes: BTreeMap<Digest, (Principal, Role, Timestamp)>,
    sessions: BTreeMap<Digest, (Caller, Timestamp)>,
}

/// Nothing of it is for a log.
impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignIn")
    }
}

/// A text that no attacker can guess: 256 bits of the operating system's randomness.
pub fn secret(prefix: &str) -> Result<String, Problem> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "the operating system gives no randomness");
        Problem::new(
            http::StatusCode::INTERNAL_SERVER_ERROR,
            "the service has no randomness",
        )
    })?;
    Ok(format!("{prefix}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes)))
}

impl SignIn {
    /// Makes this code good for one sign-in. It must be unguessable.
    pub fn offer(&self, code: &str, principal: Principal, role: Role, now: Timestamp) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.codes.retain(|_, (_, _, expires_at)| now < *expires_at);
        kept.codes.insert(
            Digest::of_bytes(code.as_bytes()),
            (principal, role, now.plus(CODE_LIFE)),
        );
    }

    /// Spends a code: `token` opens the door until the instant that is returned.
    pub(crate) fn spend(&self, code: &str, token: &str, now: Timestamp) -> Option<Timestamp> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (principal, role, code_expires_at) =
            kept.codes.remove(&Digest::of_bytes(code.as_bytes()))?;
        if code_expires_at <= now {
            return None;
        }
        kept.sessions.retain(|_, (_, expires_at)| now < *expires_at);
        if kept.sessions.len() >= MAX_SESSIONS {
            return None;
        }
        let expires_at = now.plus(SESSION_LIFE);
        let credential = Digest::of_bytes(token.as_bytes());
        let caller = Caller {
            principal,
            role,
            assurance: Assurance::WebSignIn,
            credential,
        };
        kept.sessions.insert(credential, (caller, expires_at));
        Some(expires_at)
    }

    /// Whose session this is, if it is one.
    pub(crate) fn session(&self, token: &str, now: Timestamp) -> Option<Caller> {
        self.kept_session(&Digest::of_bytes(token.as_bytes()), now)
            .map(|(caller, _)| caller)
    }

    /// The session with this hash, and until when it lasts.
    pub(crate) fn kept_session(
        &self,
        hash: &Digest,
        now: Timestamp,
    ) -> Option<(Caller, Timestamp)> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.sessions
            .get(hash)
            .filter(|(_, expires_at)| now < *expires_at)
            .cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_once_and_for_five_minutes() {
        let sign_in = SignIn::default();
        let now = Timestamp::from_millis(0);
        let ada = Principal::person("ada");
        sign_in.offer("code", ada.clone(), Role::Admin, now);
        assert!(sign_in.spend("other", "token", now).is_none());
        let expires_at = sign_in.spend("code", "token", now).unwrap();
        assert!(sign_in.spend("code", "again", now).is_none());
        assert_eq!(sign_in.session("token", now).unwrap().principal, ada);
        assert!(sign_in.session("token", expires_at).is_none());
        sign_in.offer("late", ada, Role::Admin, now);
        assert!(
            sign_in
                .spend("late", "token", now.plus(CODE_LIFE))
                .is_none()
        );
    }
}
