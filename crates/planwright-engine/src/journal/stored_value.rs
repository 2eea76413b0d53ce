//! Values of steps: in the journal when they are small, as artifacts when they are large.

use crate::port::{ArtifactError, Artifacts};
use planwright_core::run::StoredValue;
use serde_json::Value;
use std::sync::Arc;

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
    let bytes = serde_json::to_vec(&value).expect("a JSON value can be written");
    let value = Arc::new(value);
    let stored = if bytes.len() > StoredValue::MAX_INLINE_BYTES {
        StoredValue::Artifact(artifacts.put(bytes).await?)
    } else {
        StoredValue::Inline(Arc::clone(&value))
    };
    Ok((stored, value))
}

pub(crate) fn too_deep() -> String {
    format!(
        "the value nests deeper than {} levels",
        StoredValue::MAX_DEPTH
    )
}
