//! The values a run can refer to: small ones live in the folded state, large ones are fetched once.

use super::sealed::SecretValues;
use crate::port::{ArtifactError, Artifacts};
use planwright_core::plan::{StepIx, Values};
use planwright_core::run::{Run, StoredValue};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Large values that were needed in this process.
#[derive(Debug, Default)]
pub(crate) struct LargeValues(BTreeMap<StepIx, Arc<Value>>);

#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadValueError {
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    #[error("the artifact is not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl LargeValues {
    pub(super) fn keep(&mut self, step: StepIx, value: Arc<Value>) {
        self.0.insert(step, value);
    }

    /// Makes sure that every large value among `steps` is here.
    pub(crate) async fn load(
        &mut self,
        artifacts: &dyn Artifacts,
        run: &Run,
        steps: &[StepIx],
    ) -> Result<(), LoadValueError> {
        for &ix in steps {
            if let Some(StoredValue::Artifact(artifact)) = run.step(ix).value()
                && !self.0.contains_key(&ix)
            {
                let bytes = artifacts.get(artifact).await?;
                self.0.insert(ix, Arc::new(serde_json::from_slice(&bytes)?));
            }
        }
        Ok(())
    }
}

/// A run's values as references see them.
pub(crate) struct RunValues<'a> {
    pub(crate) run: &'a Run,
    pub(crate) large: &'a LargeValues,
    pub(crate) secrets: &'a SecretValues,
}

impl Values for RunValues<'_> {
    fn variable(&self, name: &str) -> Option<&Value> {
        self.run.plan().variable(name)
    }

    fn step(&self, ix: StepIx) -> Option<&Value> {
        match self.run.step(ix).value() {
            Some(StoredValue::Inline(value)) => Some(value),
            Some(StoredValue::Artifact(_)) => self.large.0.get(&ix).map(|value| &**value),
            // A skipped step has no value, and what depends on it goes on: it sees null.
            None => Some(&Value::Null),
        }
    }

    fn secret(&self, name: &str) -> Option<&Value> {
        self.secrets.get(name)
    }
}

/// Reads a stored value wherever it is.
pub async fn read_value(artifacts: &dyn Artifacts, value: &StoredValue) -> Result<Value, ArtifactError> {
    match value {
        StoredValue::Inline(value) => Ok((**value).clone()),
        StoredValue::Artifact(artifact) => {
            let bytes = artifacts.get(artifact).await?;
            serde_json::from_slice(&bytes).map_err(|error| ArtifactError::Io(error.to_string()))
        }
    }
}

/// Stores a value: in the journal if it is small, as an artifact if it is large. One that could not be read again is
/// refused.
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

pub(super) fn too_deep() -> String {
    format!("the value nests deeper than {} levels", StoredValue::MAX_DEPTH)
}
