//! Results of runs, with the values that the run keeps as artifacts read back.

use super::answer_size::{AnswerSize, step_href};
use planwright_api::{AskedCallWire, ItemResult, RunResult, StepLogLine, StepResult};
use planwright_core::id::RunId;
use planwright_core::plan::StepIx;
use planwright_core::run::{AskedCall, Run, RunReport, StepReport, StepState, StoredValue};
use planwright_core::time::Timestamp;
use planwright_engine::port::{ArtifactError, Artifacts, KeptLine, StepLogs};
use planwright_engine::{read_outputs, read_value};
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
    let mut result = RunResult::new(run, &report, results);
    result.add_outputs(read_outputs(run, artifacts, MAX_OUTPUTS).await?);
    Ok(result)
}

/// Adds what servers logged during the calls of a run.
pub async fn add_step_logs(result: &mut RunResult, run: &RunId, logs: &dyn StepLogs) {
    let lines = logs.read(run).await;
    result.add_log(lines.into_iter().map(|KeptLine { at, step, line }| {
        let shown = StepLogLine {
            at: at.to_string(),
            level: line.level.as_str().to_owned(),
            logger: line.logger,
            message: line.text,
        };
        (step.to_string(), shown)
    }));
}

/// Bytes of outputs that the result of a run has. Larger values are read from their steps.
const MAX_OUTPUTS: usize = 4 << 20;
/// Bytes of outputs in one answer over HTTP.
const MAX_PAGE_OUTPUTS: usize = 256 << 10;

/// Which steps of a run: so many from the one with this number on.
#[derive(Debug, Clone, Copy)]
pub struct StepPage {
    pub first: usize,
    pub limit: usize,
    /// Bytes of one value that is in the answer; as many as there is room for when absent.
    pub inline: Option<usize>,
}

/// Bytes that every element of a loop takes in an answer.
const ITEM_BYTES: usize = 200;

/// Reads some steps of a run, as many as one answer has room for. Large values are linked.
pub async fn read_run_page(
    run: &Run,
    StepPage {
        first,
        limit,
        inline,
    }: StepPage,
    artifacts: &dyn Artifacts,
    now: Timestamp,
) -> Result<RunResult, ArtifactError> {
    let mut report = RunReport::new(run, now);
    let steps = std::mem::take(&mut report.steps);
    let mut size = inline.map_or_else(AnswerSize::default, AnswerSize::with_values_of);
    let mut results: Vec<StepResult> = Vec::new();
    let mut more = false;
    for (step, ix) in steps.into_iter().zip(run.plan().indices()).skip(first) {
        let asked = asked_call(run, ix);
        let items = step.items.as_ref().map_or(0, Vec::len) * ITEM_BYTES;
        let most = size.most_of_step(step.value.as_ref(), asked) + items;
        if results.len() >= limit || !results.is_empty() && !size.fits(most) {
            more = true;
            break;
        }
        size.take(items);
        results.push(read_step_part(run, (step, asked), &mut size, artifacts).await?);
    }
    let last = results.last().map(|step| step.id.clone());
    let mut page = RunResult::page(run, &report, (first, results));
    page.next_cursor = last.filter(|_| more);
    page.add_outputs(read_outputs(run, artifacts, MAX_PAGE_OUTPUTS).await?);
    if inline.is_some() {
        // A value that is asked for by its size is not sent a second time under its name.
        page.variables.clone_from(&run.plan().document().variables);
    }
    Ok(page)
}

/// Reads a step as far as there is room for it.
async fn read_step_part(
    run: &Run,
    (mut report, asked): (StepReport, Option<&AskedCall>),
    size: &mut AnswerSize,
    artifacts: &dyn Artifacts,
) -> Result<StepResult, ArtifactError> {
    let step = report.id.to_string();
    let href = |step: &str, part| step_href(run.plan().id(), run.id(), step, part);
    let call = match asked {
        Some(asked) => {
            let href = || href(&step, "arguments");
            Some(size.place_asked_call(asked, href, artifacts).await?)
        }
        None => None,
    };
    let (value, large_value) = match report.value.take() {
        Some(value) => {
            let href = || href(&step, "value");
            size.place_value(&value, href, artifacts).await?
        }
        None => (None, None),
    };
    let reports = report.items.take();
    let mut items = reports.as_ref().map(|_| Vec::new());
    for mut item in reports.into_iter().flatten() {
        let element = format!("{step}[{}]", item.index);
        let (value, large_value) = match item.value.take() {
            Some(value) => {
                let href = || href(&element, "value");
                size.place_value(&value, href, artifacts).await?
            }
            None => (None, None),
        };
        let item = ItemResult {
            large_value,
            ..ItemResult::new(item, value)
        };
        items.get_or_insert_default().push(item);
    }
    Ok(StepResult {
        call,
        large_value,
        ..StepResult::new(report, value, items)
    })
}

/// The call of a step that an approver is asked about.
fn asked_call(run: &Run, ix: StepIx) -> Option<&AskedCall> {
    match run.step(ix) {
        StepState::AwaitingApproval { call, .. } => call.as_deref(),
        _ => None,
    }
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
