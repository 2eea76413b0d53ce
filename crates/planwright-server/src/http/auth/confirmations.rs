//! Sessions that are being confirmed with a passkey, and those that were, at any service of the store. Where a store has one
//! service this is in memory: after a restart, people confirm again.

use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use planwright_engine::passkeys::CONFIRMED_FOR;
use planwright_engine::port::{NoteKind, ServiceNote, ServiceNotes, StoreError};
use std::time::Duration;

/// The time a person may take in front of their device.
const CHALLENGE_LIFE: Duration = Duration::from_mins(5);

/// More sessions than do this at the same time.
const MAX: usize = 10_000;

/// What a challenge is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PasskeyPurpose {
    Registration,
    Confirmation,
}

impl PasskeyPurpose {
    fn as_byte(self) -> u8 {
        match self {
            Self::Registration => b'r',
            Self::Confirmation => b'c',
        }
    }
}

/// The notes about challenges and confirmations, both by the session that they belong to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Confirmations<'a>(pub(crate) &'a dyn ServiceNotes);

impl Confirmations<'_> {
    /// Remembers what the device of a session is asked; an earlier question is forgotten. Returns `false` if too many
    /// are asked.
    pub(crate) async fn ask(
        self,
        session: Digest,
        (purpose, bytes): (PasskeyPurpose, [u8; 32]),
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let note = ServiceNote {
            kind: NoteKind::Challenge,
            key: session,
            value: [&[purpose.as_byte()], &bytes[..]].concat(),
            expires_at: now.plus(CHALLENGE_LIFE),
        };
        self.0.put_note(&note, MAX, now).await
    }

    /// Takes out what the device of a session was asked. It is spent in any case.
    pub(crate) async fn answer(
        self,
        session: &Digest,
        purpose: PasskeyPurpose,
        now: Timestamp,
    ) -> Result<Option<[u8; 32]>, StoreError> {
        let asked = self.0.take_note(NoteKind::Challenge, session, now).await?;
        Ok(asked.and_then(|asked| {
            let (first, bytes) = asked.split_first()?;
            let is_for_this = *first == purpose.as_byte();
            bytes.try_into().ok().filter(|_| is_for_this)
        }))
    }

    /// Notes that a session was confirmed. Returns until when that counts.
    pub(crate) async fn note(
        self,
        session: Digest,
        now: Timestamp,
    ) -> Result<Timestamp, StoreError> {
        let until = now.plus(CONFIRMED_FOR);
        let note = ServiceNote {
            kind: NoteKind::Confirmation,
            key: session,
            value: until.as_millis().to_be_bytes().to_vec(),
            expires_at: until,
        };
        // There are no more of them than sessions, which have a limit.
        self.0.put_note(&note, usize::MAX, now).await?;
        Ok(until)
    }

    /// Until when a session is confirmed, if it is.
    pub(crate) async fn until(
        self,
        session: &Digest,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        let found = self.0.find_note(NoteKind::Confirmation, session, now);
        let until = found.await?.and_then(|value| value.try_into().ok());
        Ok(until.map(|until| Timestamp::from_millis(i64::from_be_bytes(until))))
    }

    /// Forgets everything about a session.
    pub(crate) async fn forget(self, session: &Digest, now: Timestamp) -> Result<(), StoreError> {
        for kind in [NoteKind::Challenge, NoteKind::Confirmation] {
            self.0.take_note(kind, session, now).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_engine::memory::MemoryNotes;

    fn session(name: &str) -> Digest {
        Digest::of_bytes(name.as_bytes())
    }

    #[tokio::test]
    async fn a_challenge_is_answered_once_for_its_purpose_and_in_time() {
        use PasskeyPurpose::{Confirmation, Registration};
        let notes = MemoryNotes::new();
        let all = Confirmations(&notes);
        let now = Timestamp::from_millis(0);
        let ask = async |purpose| {
            all.ask(session("a"), (purpose, [7; 32]), now)
                .await
                .unwrap()
        };
        let answer =
            async |name: &str, purpose, at| all.answer(&session(name), purpose, at).await.unwrap();
        assert!(ask(Confirmation).await);
        assert_eq!(answer("b", Confirmation, now).await, None);
        assert_eq!(answer("a", Confirmation, now).await, Some([7; 32]));
        assert_eq!(answer("a", Confirmation, now).await, None);
        assert!(ask(Registration).await);
        assert_eq!(answer("a", Confirmation, now).await, None);
        assert_eq!(answer("a", Registration, now).await, None, "it is spent");
        assert!(ask(Confirmation).await);
        let late = now.plus(CHALLENGE_LIFE);
        assert_eq!(answer("a", Confirmation, late).await, None);
    }

    #[tokio::test]
    async fn a_confirmation_counts_for_its_session_and_for_a_while() {
        let notes = MemoryNotes::new();
        let all = Confirmations(&notes);
        let now = Timestamp::from_millis(0);
        let until = all.note(session("a"), now).await.unwrap();
        let counts = async |name: &str, at| all.until(&session(name), at).await.unwrap();
        assert_eq!(counts("a", now).await, Some(until));
        assert_eq!(counts("b", now).await, None);
        assert_eq!(counts("a", until).await, None);
        all.note(session("a"), now).await.unwrap();
        all.forget(&session("a"), now).await.unwrap();
        assert_eq!(counts("a", now).await, None);
    }
}
