//! Values too large for the journal.

use super::BoxFuture;
use planwright_core::digest::Digest;
use std::fmt;

pub use planwright_core::artifact::ArtifactRef;

#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    #[error("artifact {0} is missing")]
    Missing(Digest),
    #[error("artifact {0} does not match its digest: it was changed on disk")]
    Changed(Digest),
    #[error("the artifact store failed: {0}")]
    Io(String),
}

/// A content-addressed store of bytes. What was put is durable when `put` returns, and is checked
/// when read.
pub trait Artifacts: Send + Sync + fmt::Debug {
    fn put(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<ArtifactRef, ArtifactError>>;
    fn get<'a>(
        &'a self,
        artifact: &'a ArtifactRef,
    ) -> BoxFuture<'a, Result<Vec<u8>, ArtifactError>>;
}
