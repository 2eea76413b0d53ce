//! The tokens of those who may use the service, kept as hashes.

use super::{BoxFuture, StoreError};
use planwright_core::digest::Digest;
use planwright_core::policy::Role;
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use std::fmt;

/// Names a token without being one: it can be shown, listed and revoked by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenId(pub String);

impl TokenId {
    /// Makes an id: `tok-` and eight base32 characters. The caller brings the randomness.
    pub fn mint(entropy: u64) -> Self {
        const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let letter = |place: u32| char::from(ALPHABET[(entropy >> (5 * place) & 31) as usize]);
        Self("tok-".chars().chain((0..8).map(letter)).collect())
    }
}

/// The record of a token. The token itself is shown once, when it is made, and never kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The public id, which lists and logs show.
    pub id: TokenId,
    /// SHA-256 of the token.
    pub hash: Digest,
    /// The principal that presents the token.
    pub principal: Principal,
    /// The role of the principal.
    pub role: Role,
    /// Time at which it was made.
    pub created_at: Timestamp,
    /// Time from which it is refused; absent if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// Time at which it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl Token {
    /// Returns whether it still opens the door.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}

/// Keeps tokens. What another process revokes is seen at once.
pub trait Tokens: Send + Sync + fmt::Debug {
    /// Keeps a token. Refused if another one has its id or its hash.
    fn add<'a>(&'a self, token: &'a Token) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The token with this hash, valid or not.
    fn find<'a>(&'a self, hash: &'a Digest) -> BoxFuture<'a, Result<Option<Token>, StoreError>>;

    /// All of them, oldest first.
    fn list(&self) -> BoxFuture<'_, Result<Vec<Token>, StoreError>>;

    /// Makes a token invalid for ever. Returns whether there was a valid one.
    fn revoke<'a>(
        &'a self,
        id: &'a TokenId,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
}
