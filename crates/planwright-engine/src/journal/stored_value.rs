//! Values of steps: in the journal when they are small, as artifacts when they are large.

use crate::context::Pauses;
use crate::port::{ArtifactError, Artifacts};
use planwright_core::run::StoredValue;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Reads a stored value wherever it is.
pub async fn read_value(
    artifacts: &dyn Artifacts,
    value: &StoredValue,
) -> Result<Value, ArtifactError> {
    match value {
        StoredValue::Inline(value) => Ok((**value).clone()),
        StoredValue::Artifact(artifact) => {
            let bytes = artifacts.get(artifact).await?;
            serde_json::from_slice(&bytes).map_err(|error| ArtifactError::Io(error.to_string()))
        }
    }
}

/// Stores a value: in the journal if it is small, as an artifact if it is large. One that could not
/// be read again is refused.
pub async fn store_value(
    artifacts: &dyn Artifacts,
    value: Value,
) -> Result<(StoredValue, Arc<Value>), ArtifactError> {
    if !StoredValue::can_keep(&value) {
        return Err(ArtifactError::Io(too_deep()));
    }
    let value = Arc::new(value);
    let (stored, _) = put_value(artifacts, &value, StoredValue::MAX_INLINE_BYTES).await?;
    Ok((stored, value))
}

/// Stores the value of a call that has happened. While the storage fails it is tried again: the
/// value is there, and the call may not be made a second time for want of space. Returns also how
/// long its JSON is.
pub(crate) async fn keep_value(
    artifacts: &dyn Artifacts,
    value: &Arc<Value>,
    max_inline_bytes: usize,
    mut pauses: Pauses,
    unwanted: &CancellationToken,
) -> Result<(StoredValue, usize), ArtifactError> {
    loop {
        let error = match put_value(artifacts, value, max_inline_bytes).await {
            Ok(stored) => return Ok(stored),
            Err(error) => error,
        };
        let Some(pause) = pauses.next().filter(|_| !unwanted.is_cancelled()) else {
            return Err(error);
        };
        tracing::warn!(%error, ?pause, "cannot store the result of a call; trying again");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = unwanted.cancelled() => {}
        }
    }
}

async fn put_value(
    artifacts: &dyn Artifacts,
    value: &Arc<Value>,
    max_inline_bytes: usize,
) -> Result<(StoredValue, usize), ArtifactError> {
    let bytes = serde_json::to_vec(&**value).expect("a JSON value can be written");
    let length = bytes.len();
    let stored = if length > max_inline_bytes {
        StoredValue::Artifact(artifacts.put(bytes).await?)
    } else {
        StoredValue::Inline(Arc::clone(value))
    };
    Ok((stored, length))
}

pub(crate) fn too_deep() -> String {
    format!(
        "the value nests deeper than {} levels",
        StoredValue::MAX_DEPTH
    )
}
