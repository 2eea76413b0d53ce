//! References to values that are stored outside a journal or a document.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};

/// A value stored outside the journal, named by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactRef {
    /// Digest of the stored bytes.
    pub digest: Digest,
    /// Number of stored bytes.
    pub bytes: u64,
}
