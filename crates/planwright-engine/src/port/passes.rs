//! Passes: sessions and invitations of people who use the service in a browser, kept as hashes.

use super::{BoxFuture, StoreError};
use planwright_core::digest::Digest;
use planwright_core::policy::Role;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::time::Timestamp;
use std::fmt;

/// What a pass is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassKind {
    /// A browser, or a program, that is signed in.
    Session,
    /// A link that is worth one session.
    Invitation,
}

impl PassKind {
    /// Returns its word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Invitation => "invitation",
        }
    }
}

/// The record of a pass. Its text is given out once, when it is made, and never kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The use that it is good for.
    pub kind: PassKind,
    /// SHA-256 of its text.
    pub hash: Digest,
    /// SHA-256 of the proof that has to come with it; absent if the text alone is enough.
    pub proof: Option<Digest>,
    /// The token that the session was opened with: it ends with that token.
    pub token: Option<Digest>,
    /// The principal that presents it.
    pub principal: Principal,
    /// The role of the principal.
    pub role: Role,
    /// The proof by which the principal was recognised.
    pub assurance: Assurance,
    /// Time at which it was made.
    pub created_at: Timestamp,
    /// Time from which it is refused.
    pub expires_at: Timestamp,
}

/// Keeps passes. What another process changes is seen at once.
pub trait Passes: Send + Sync + fmt::Debug {
    /// Keeps a pass and forgets those that have expired. Returns `false` if there are `most` of its
    /// kind already. Refused if another one has its hash.
    fn add<'a>(
        &'a self,
        pass: &'a Pass,
        most: usize,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// The pass of this kind with this hash, expired or not.
    fn find<'a>(
        &'a self,
        kind: PassKind,
        hash: &'a Digest,
    ) -> BoxFuture<'a, Result<Option<Pass>, StoreError>>;

    /// Removes a pass and returns it. Of several callers at once, one gets it.
    fn take<'a>(
        &'a self,
        kind: PassKind,
        hash: &'a Digest,
    ) -> BoxFuture<'a, Result<Option<Pass>, StoreError>>;

    /// Makes a session last until another time. Returns whether there was one.
    fn extend<'a>(
        &'a self,
        hash: &'a Digest,
        until: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// All of this kind, oldest first.
    fn list(&self, kind: PassKind) -> BoxFuture<'_, Result<Vec<Pass>, StoreError>>;
}
