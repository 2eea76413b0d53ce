//! Tokens as other programs see them.

use planwright_core::policy::Role;
use planwright_core::time::Timestamp;
use planwright_engine::access::Minted;
use planwright_engine::port::Token;
use serde::{Serialize, Serializer};

/// What `token create --json` prints: the one document that holds the token itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewTokenWire<'a> {
    pub id: &'a str,
    pub token: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl<'a> NewTokenWire<'a> {
    pub fn new(minted: &'a Minted) -> Self {
        Self {
            id: &minted.token.id.0,
            token: minted.text.expose(),
            expires_at: minted.token.expires_at,
        }
    }
}

/// One token in `token list --json`. It says nothing that opens a door.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenLine {
    pub id: String,
    pub kind: &'static str,
    pub name: String,
    #[serde(serialize_with = "as_word")]
    pub role: Role,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// Whether it opens the door now.
    pub valid: bool,
}

impl TokenLine {
    pub fn new(token: &Token, now: Timestamp) -> Self {
        Self {
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
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn as_word<S: Serializer>(role: &Role, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(role.as_str())
}
