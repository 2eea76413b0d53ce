//! Signing in from the operator's terminal: a code that is shown there once is worth a session.

use crate::http::problem::{Problem, ProblemCode};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use planwright_core::digest::Digest;
use planwright_core::policy::Role;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::time::Timestamp;
use planwright_engine::passes::SignedIn;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The time a code can be used.
const CODE_LIFE: Duration = Duration::from_mins(5);

/// Codes that were shown and not used, as hashes. They are in memory only: a code of a service that is
/// gone is worth nothing.
#[derive(Default)]
pub struct SignIn(Mutex<BTreeMap<Digest, (Principal, Role, Timestamp)>>);

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
        Problem::of(ProblemCode::Internal, "the service has no randomness")
    })?;
    Ok(format!("{prefix}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes)))
}

impl SignIn {
    /// Makes this code good for one sign-in. It must be unguessable.
    pub fn offer(&self, code: &str, principal: Principal, role: Role, now: Timestamp) {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|_, (_, _, expires_at)| now < *expires_at);
        codes.insert(
            Digest::of_bytes(code.as_bytes()),
            (principal, role, now.plus(CODE_LIFE)),
        );
    }

    /// Spends a code. Returns who signs in with it.
    pub(crate) fn spend(&self, code: &str, now: Timestamp) -> Option<SignedIn> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (principal, role, expires_at) = codes.remove(&Digest::of_bytes(code.as_bytes()))?;
        (now < expires_at).then_some(SignedIn {
            principal,
            role,
            assurance: Assurance::WebSignIn,
            token: None,
        })
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
        assert!(sign_in.spend("other", now).is_none());
        assert_eq!(sign_in.spend("code", now).unwrap().principal, ada);
        assert!(sign_in.spend("code", now).is_none());
        sign_in.offer("late", ada, Role::Admin, now);
        assert!(sign_in.spend("late", now.plus(CODE_LIFE)).is_none());
    }
}
