//! Tokens as other programs see them.

use planwright_core::policy::Role;
use planwright_core::time::Timestamp;
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn as_word<S: Serializer>(role: &Role, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(role.as_str())
}
