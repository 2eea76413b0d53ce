//! Results of runs, with the values that the run keeps as artifacts read back.

use planwright_api::{AskedCallWire, ItemResult, RunResult, StepResult};
use planwright_core::run::{AskedCall, Run, RunReport, StepReport, StepState, StoredValue};
use planwright_core::time::Timestamp;
use planwright_engine::port::{ArtifactError, Artifacts};
use planwright_engine::read_value;
use serde_json::Value;

/// Reads the result of a run.
pub async fn read_run_result(
    run: &Run,
    artifacts: &dyn Artifacts,
    now: Timestamp,
) -> Result<RunResult, ArtifactError> {
    let mut report = RunReport::new(run, now);
    let steps = std::mem::take(&mut report.steps);
    let mut results = Vec::with_capacity(steps.len());
    for (step, ix) in steps.into_iter().zip(run.plan().indices()) {
        let mut result = read_step_result(step, artifacts).await?;
        if let StepState::AwaitingApproval {
            call: Some(asked), ..
        } = run.step(ix)
        {
            result.call = Some(read_asked_call(asked, artifacts).await?);
        }
        results.push(result);
    }
    Ok(RunResult::new(run, &report, results))
}

/// Reads a call that waits for an approver, with its arguments.
pub async fn read_asked_call(
    asked: &AskedCall,
    artifacts: &dyn Artifacts,
) -> Result<AskedCallWire, ArtifactError> {
    let args = read_value(artifacts, &asked.args).await?;
    Ok(AskedCallWire::new(asked, args))
}

async fn read_step_result(
    mut report: StepReport,
    artifacts: &dyn Artifacts,
) -> Result<StepResult, ArtifactError> {
    let value = read_stored(report.value.take(), artifacts).await?;
    let items = match report.items.take() {
        Some(reports) => {
            let mut items = Vec::with_capacity(reports.len());
            for mut report in reports {
                let value = read_stored(report.value.take(), artifacts).await?;
                items.push(ItemResult::new(report, value));
            }
            Some(items)
        }
        None => None,
    };
    Ok(StepResult::new(report, value, items))
}

async fn read_stored(
    value: Option<StoredValue>,
    artifacts: &dyn Artifacts,
) -> Result<Option<Value>, ArtifactError> {
    match value {
        Some(StoredValue::Inline(value)) => Ok(Some((*value).clone())),
        Some(stored @ StoredValue::Artifact(_)) => Ok(Some(read_value(artifacts, &stored).await?)),
        None => Ok(None),
    }
}
