//! Sessions that are being confirmed with a passkey, and those that were. In memory only: after a restart, people
//! confirm again.

use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use planwright_engine::passkeys::CONFIRMED_FOR;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a person may take in front of their device.
const CHALLENGE_LIFE: Duration = Duration::from_mins(5);

/// More sessions than do this at the same time.
const MAX: usize = 10_000;

/// What a challenge is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PasskeyPurpose {
    Registration,
    Confirmation,
}

#[derive(Default)]
pub(crate) struct Confirmations(Mutex<Known>);

/// Both by the session that they belong to.
#[derive(Default)]
struct Known {
    challenges: BTreeMap<Digest, Challenge>,
    confirmed: BTreeMap<Digest, Timestamp>,
}

struct Challenge {
    purpose: PasskeyPurpose,
    bytes: [u8; 32],
    expires_at: Timestamp,
}

/// Nothing of it is for a log.
impl fmt::Debug for Confirmations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Confirmations")
    }
}

impl Confirmations {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what the device of a session is asked; an earlier question is forgotten. Returns `false` if too many
    /// are asked.
    pub(crate) fn ask(
        &self,
        session: Digest,
        (purpose, bytes): (PasskeyPurpose, [u8; 32]),
        now: Timestamp,
    ) -> bool {
        let mut known = self.known();
        known
            .challenges
            .retain(|_, challenge| now < challenge.expires_at);
        known.challenges.remove(&session);
        if known.challenges.len() >= MAX {
            return false;
        }
        let challenge = Challenge {
            purpose,
            bytes,
            expires_at: now.plus(CHALLENGE_LIFE),
        };
        known.challenges.insert(session, challenge);
        true
    }

    /// Takes out what the device of a session was asked. It is spent in any case.
    pub(crate) fn answer(
        &self,
        session: &Digest,
        purpose: PasskeyPurpose,
        now: Timestamp,
    ) -> Option<[u8; 32]> {
        let challenge = self.known().challenges.remove(session)?;
        let good = challenge.purpose == purpose && now < challenge.expires_at;
        good.then_some(challenge.bytes)
    }

    /// Notes that a session was confirmed. Returns until when that counts.
    pub(crate) fn note(&self, session: Digest, now: Timestamp) -> Timestamp {
        let mut known = self.known();
        known.confirmed.retain(|_, until| now < *until);
        let until = now.plus(CONFIRMED_FOR);
        known.confirmed.insert(session, until);
        until
    }

    /// Until when a session is confirmed, if it is.
    pub(crate) fn until(&self, session: &Digest, now: Timestamp) -> Option<Timestamp> {
        let known = self.known();
        known
            .confirmed
            .get(session)
            .copied()
            .filter(|until| now < *until)
    }

    /// Forgets everything about a session.
    pub(crate) fn forget(&self, session: &Digest) {
        let mut known = self.known();
        known.challenges.remove(session);
        known.confirmed.remove(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> Digest {
        Digest::of_bytes(name.as_bytes())
    }

    #[test]
    fn a_challenge_is_answered_once_for_its_purpose_and_in_time() {
        use PasskeyPurpose::{Confirmation, Registration};
        let all = Confirmations::default();
        let now = Timestamp::from_millis(0);
        let ask = |purpose| all.ask(session("a"), (purpose, [7; 32]), now);
        let answer = |name: &str, purpose, at| all.answer(&session(name), purpose, at);
        assert!(ask(Confirmation));
        assert_eq!(answer("b", Confirmation, now), None);
        assert_eq!(answer("a", Confirmation, now), Some([7; 32]));
        assert_eq!(answer("a", Confirmation, now), None);
        assert!(ask(Registration));
        assert_eq!(answer("a", Confirmation, now), None);
        assert_eq!(answer("a", Registration, now), None, "it is spent");
        assert!(ask(Confirmation));
        assert_eq!(answer("a", Confirmation, now.plus(CHALLENGE_LIFE)), None);
    }

    #[test]
    fn a_confirmation_counts_for_its_session_and_for_a_while() {
        let all = Confirmations::default();
        let now = Timestamp::from_millis(0);
        let until = all.note(session("a"), now);
        assert_eq!(all.until(&session("a"), now), Some(until));
        assert_eq!(all.until(&session("b"), now), None);
        assert_eq!(all.until(&session("a"), until), None);
        all.note(session("a"), now);
        all.forget(&session("a"));
        assert_eq!(all.until(&session("a"), now), None);
    }
}
