//! The digest by which a call is known in a journal.

use planwright_core::digest::{Digest, canonical_json};
use planwright_core::tool::ToolName;
use serde_json::Value;

/// The digest of exactly what is sent, with references in place of secrets.
pub(crate) fn call_digest(tool: &ToolName, args: &Value) -> Digest {
    Digest::of_parts(&[tool.to_string().as_bytes(), &canonical_json(args)])
}
