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
pub(crate) struct LargeValues {
    values: BTreeMap<StepIx, Arc<Value>>,
    /// What open loops run over, by the step that loops.
    lists: BTreeMap<StepIx, Arc<Value>>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadValueError {
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    #[error("the artifact is not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl LargeValues {
    pub(super) fn keep(&mut self, step: StepIx, value: Arc<Value>) {
        self.values.insert(step, value);
    }

    pub(crate) fn keep_list(&mut self, step: StepIx, list: Arc<Value>) {
        self.lists.insert(step, list);
    }

    pub(crate) fn forget_list(&mut self, step: StepIx) {
        self.lists.remove(&step);
    }

    /// Makes sure that every large value among `steps` is here, and the list whose element `of` is
    /// about.
    pub(crate) async fn load(
        &mut self,
        artifacts: &dyn Artifacts,
        run: &Run,
        steps: &[StepIx],
        of: StepIx,
    ) -> Result<(), LoadValueError> {
        for &ix in steps {
            if let Some(stored @ StoredValue::Artifact(_)) = run.step(ix).value()
                && !self.values.contains_key(&ix)
            {
                self.values
                    .insert(ix, load_stored(artifacts, stored).await?);
            }
        }
        if let Some(step) = run.instance(of).map(|instance| instance.step)
            && let Some(opened) = run.open_loop(step)
            && !self.lists.contains_key(&step)
        {
            self.lists
                .insert(step, load_stored(artifacts, &opened.items).await?);
        }
        Ok(())
    }
}

/// The value itself, wherever it is kept.
pub(crate) async fn load_stored(
    artifacts: &dyn Artifacts,
    stored: &StoredValue,
) -> Result<Arc<Value>, LoadValueError> {
    Ok(match stored {
        StoredValue::Inline(value) => Arc::clone(value),
        StoredValue::Artifact(artifact) => {
            Arc::new(serde_json::from_slice(&artifacts.get(artifact).await?)?)
        }
    })
}

/// A run's values as the references of one step see them.
pub(crate) struct RunValues<'a> {
    run: &'a Run,
    large: &'a LargeValues,
    /// The element whose turn it is, and its number.
    element: Option<(&'a Value, Value)>,
    secrets: Option<&'a SecretValues>,
}

impl<'a> RunValues<'a> {
    pub(crate) fn new(run: &'a Run, large: &'a LargeValues, step: StepIx) -> Self {
        let element = run.instance(step).and_then(|instance| {
            let list = large.lists.get(&instance.step)?.as_array()?;
            Some((
                list.get(instance.index as usize)?,
                Value::from(instance.index),
            ))
        });
        Self {
            run,
            large,
            element,
            secrets: None,
        }
    }

    /// Only what is sent has secrets, or stands for them.
    pub(crate) fn with_secrets(mut self, secrets: &'a SecretValues) -> Self {
        self.secrets = Some(secrets);
        self
    }
}

impl Values for RunValues<'_> {
    fn variable(&self, name: &str) -> Option<&Value> {
        // Variables hide the names of the loop, as they hide every other name.
        let element = || match (name, &self.element) {
            ("item", Some((item, _))) => Some(*item),
            ("index", Some((_, index))) => Some(index),
            _ => None,
        };
        self.run
            .plan()
            .document()
            .variables
            .get(name)
            .or_else(element)
            .or_else(|| self.run.plan().variable(name))
    }

    fn step(&self, ix: StepIx) -> Option<&Value> {
        match self.run.step(ix).value() {
            Some(StoredValue::Inline(value)) => Some(value),
            Some(StoredValue::Artifact(_)) => self.large.values.get(&ix).map(|value| &**value),
            // A skipped step has no value, and what depends on it goes on: it sees null.
            None => Some(&Value::Null),
        }
    }

    fn secret(&self, name: &str) -> Option<&Value> {
        self.secrets?.get(name)
    }
}
