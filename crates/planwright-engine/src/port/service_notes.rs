//! Notes that services of one store leave for each other for a short while: a ticket that one gives out and another is
//! shown. Losing them costs a person one more click and nothing else.

use super::{BoxFuture, StoreError};
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use std::fmt;
use zeroize::Zeroizing;

/// The subject of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    /// A ticket for an event stream.
    Ticket,
    /// A challenge that the device of a session is to answer.
    Challenge,
    /// The confirmation of a session with a passkey.
    Confirmation,
    /// A plan that is being written in the background.
    PlanningJob,
    /// The wish that such a plan is not written any more.
    PlanningCancel,
}

impl NoteKind {
    /// Returns its word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ticket => "ticket",
            Self::Challenge => "challenge",
            Self::Confirmation => "confirmation",
            Self::PlanningJob => "planning_job",
            Self::PlanningCancel => "planning_cancel",
        }
    }
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceNote {
    /// The subject.
    pub kind: NoteKind,
    /// Of what a caller has to know to be shown it: never the text itself.
    pub key: Digest,
    /// The text.
    pub value: Vec<u8>,
    /// Time from which it counts no more.
    pub expires_at: Timestamp,
}

/// Keeps notes. What another service of the same store writes is seen at once.
pub trait ServiceNotes: Send + Sync + fmt::Debug {
    /// Returns whether other services may see them. Where they do not, nothing has to be written for them.
    fn are_shared(&self) -> bool;

    /// Keeps a note in place of the one with its kind and key. Returns `false` if there are `most` others of its kind.
    fn put_note<'a>(
        &'a self,
        note: &'a ServiceNote,
        most: usize,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Reads a note that counts.
    fn find_note<'a>(
        &'a self,
        kind: NoteKind,
        key: &'a Digest,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// Removes a note and returns it if it counted. Of several callers at once, one gets it.
    fn take_note<'a>(
        &'a self,
        kind: NoteKind,
        key: &'a Digest,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// A random text that all services of the store have in common, made when it is first asked for.
    fn shared_key<'a>(
        &'a self,
        name: &'static str,
    ) -> BoxFuture<'a, Result<Zeroizing<String>, StoreError>>;
}

/// Makes a text that no attacker can guess, for [`ServiceNotes::shared_key`].
pub fn random_key() -> Result<Zeroizing<String>, StoreError> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *bytes)
        .map_err(|error| StoreError::Failed(format!("there is no randomness: {error}")))?;
    Ok(Zeroizing::new(Digest::of_bytes(&*bytes).hex()))
}
