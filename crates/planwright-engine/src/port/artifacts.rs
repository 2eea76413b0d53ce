//! Values too large for the journal.

use super::BoxFuture;
use planwright_core::digest::Digest;
use std::fmt;

pub use planwright_core::artifact::ArtifactRef;

/// The reason a large value cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// No value with this digest is stored.
    #[error("artifact {0} is missing")]
    Missing(Digest),
    /// The stored bytes do not have their digest.
    #[error("artifact {0} does not match its digest: it was changed on disk")]
    Changed(Digest),
    /// There is no space left for a value.
    #[error("the disk is full")]
    Full,
    /// The storage failed, in words.
    #[error("the artifact store failed: {0}")]
    Io(String),
}

/// A content-addressed store of bytes. What was put is durable when `put` returns, and is checked
/// when read.
pub trait Artifacts: Send + Sync + fmt::Debug {
    /// Stores bytes under their digest, durable on return.
    fn put(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<ArtifactRef, ArtifactError>>;
    /// Reads bytes and checks them against their digest.
    fn get<'a>(
        &'a self,
        artifact: &'a ArtifactRef,
    ) -> BoxFuture<'a, Result<Vec<u8>, ArtifactError>>;
}
