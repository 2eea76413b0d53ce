//! Tokens as documents.

use planwright_api::{NewTokenWire, TokenLine};
use planwright_core::time::Timestamp;
use planwright_engine::access::Minted;
use planwright_engine::port::Token;

/// Describes a token that was just made: the one document that holds its text.
pub fn new_token(minted: &Minted) -> NewTokenWire<'_> {
    NewTokenWire {
        id: &minted.token.id.0,
        token: minted.text.expose(),
        expires_at: minted.token.expires_at,
    }
}

/// Describes a token that the store holds.
pub fn token_line(token: &Token, now: Timestamp) -> TokenLine {
    TokenLine {
        id: token.id.0.clone(),
        kind: token.principal.kind.as_str(),
        name: token.principal.name.clone(),
        role: token.role,
        created_at: token.created_at,
        expires_at: token.expires_at,
        revoked_at: token.revoked_at,
        valid: token.is_valid(now),
    }
}
