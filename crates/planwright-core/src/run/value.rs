//! Values as the journal keeps them.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A value kept outside the journal, named by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactRef {
    pub digest: Digest,
    pub bytes: u64,
}

/// A step's value: in the journal if it is small, by name if it is large.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredValue {
    Inline(Arc<Value>),
    Artifact(ArtifactRef),
}

impl StoredValue {
    /// Values whose JSON is longer than this become artifacts.
    pub const MAX_INLINE_BYTES: usize = 64 * 1024;
}
