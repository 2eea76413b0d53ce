//! The outputs of a run, from the values that its steps keep.

use crate::journal::stored_value::read_value;
use crate::port::{ArtifactError, Artifacts};
use planwright_core::plan::{Outputs, Plan, StepIx, Values};
use planwright_core::run::{Run, StoredValue};
use planwright_core::status::RunStatus;
use serde_json::Value;
use std::collections::BTreeMap;

/// Reads what the outputs of a run came to, `limit` bytes at most. `None` while the run has not
/// completed, and for plans that name no outputs.
pub async fn read_outputs(
    run: &Run,
    artifacts: &dyn Artifacts,
    limit: usize,
) -> Result<Option<Outputs>, ArtifactError> {
    let plan = run.plan();
    let has_completed = matches!(
        run.status(),
        RunStatus::Completed | RunStatus::CompletedWithFailures
    );
    if plan.document().outputs.is_empty() || !has_completed {
        return Ok(None);
    }
    let mut steps = BTreeMap::new();
    let mut left = limit as u64;
    for ix in plan.output_steps() {
        let value = match run.step(ix).value() {
            None => Value::Null,
            Some(StoredValue::Artifact(artifact)) if artifact.bytes > left => continue,
            Some(stored) => {
                if let StoredValue::Artifact(artifact) = stored {
                    left -= artifact.bytes;
                }
                read_value(artifacts, stored).await?
            }
        };
        steps.insert(ix, value);
    }
    let values = OutputValues { plan, steps };
    Ok(Some(plan.resolve_outputs(&values, limit)))
}

struct OutputValues<'a> {
    plan: &'a Plan,
    steps: BTreeMap<StepIx, Value>,
}

impl Values for OutputValues<'_> {
    fn variable(&self, name: &str) -> Option<&Value> {
        self.plan.variable(name)
    }

    fn step(&self, ix: StepIx) -> Option<&Value> {
        self.steps.get(&ix)
    }
}
