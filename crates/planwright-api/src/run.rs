//! The result of a run, and of one that was only tried on paper.

use crate::{CriterionWire, ModelCostLine, ReflectionWire};
use planwright_core::id::StepId;
use planwright_core::plan::{Outputs, Plan};
use planwright_core::run::{
    AskedCall, AttemptHistory, ItemReport, Preview, PreviewStep, Run, RunReport, StepError,
    StepHistories, StepHistory, StepReport,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What `run --json` and `resume --json` print.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunResult<S = StepResult> {
    pub plan_id: String,
    /// Null in a dry run: there is none.
    pub run_id: Option<String>,
    pub version: u32,
    pub digest: String,
    #[schema(value_type = crate::words::RunResultStatusShape)]
    pub status: String,
    pub success: bool,
    pub duration_ms: u64,
    /// In plan order, every step present. Over HTTP, those of one page.
    pub steps: Vec<S>,
    /// Present if there are more steps than these: `?cursor=` of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    #[schema(value_type = Object)]
    pub variables: Map<String, Value>,
    /// What the plan came to, by the names of its outputs, once it completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub outputs: Option<Map<String, Value>>,
    /// The outputs that have no value, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output_problems: Vec<String>,
    /// The remaining work was planned anew, in this run or one that it goes on from.
    pub replanned: bool,
    /// The run that this one goes on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// What came of looking at it before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reflection: Option<ReflectionWire>,
    /// Why a person declared it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the success criteria hold, once that was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<CriterionWire>,
    /// Present while the run waits for its turn: the number of runs that the service executes at
    /// once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_behind: Option<u32>,
    /// Present in a dry run only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_path: Option<Vec<String>>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    pub id: String,
    /// Empty when the step has none.
    pub title: String,
    pub tool: String,
    #[schema(value_type = crate::words::StepResultStatusShape)]
    pub status: String,
    pub attempts: u32,
    pub duration_ms: u64,
    /// When its first call began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When its latest call came back, unless another one is in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// What asking models for it took.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelCostLine>,
    /// What its latest call was sent, secrets by name, if that has at most 16 KiB. `log --json` has all of it,
    /// and over HTTP `…/runs/{run}/steps/{step}/arguments`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub args: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub value: Option<Value>,
    /// Stands in for a value that is too large for this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub large_value: Option<LargeValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorWire>,
    /// The run of a sub-plan that waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Present for steps that run once per element, once they have begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<ItemResult>>,
    /// The concrete call a person is asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<AskedCallWire>,
    /// What its server logged during its calls, the latest 100 lines. Not a part of the journal: it may be gone
    /// before the run is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<StepLogLine>,
}

/// A line that a server logged. The server's own words, which nothing here vouches for.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct StepLogLine {
    pub at: String,
    #[schema(value_type = crate::words::LogLevelShape)]
    pub level: String,
    /// The part of the server that wrote it; `stderr` for its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    pub message: String,
}

/// What a step that runs once per element came to for one of them.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemResult {
    pub index: u32,
    #[schema(value_type = crate::words::StepStatusShape)]
    pub status: String,
    pub attempts: u32,
    pub duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub value: Option<Value>,
    /// Stands in for a value that is too large for this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub large_value: Option<LargeValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorWire>,
}

/// A value that is somewhere else, because it is large.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LargeValue {
    /// The length of its JSON.
    pub bytes: u64,
    /// Its name at `…/runs/{run}/artifacts/{digest}`, if it is kept beside the journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// How its JSON begins; absent if many values are large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Where all of it is.
    pub href: String,
}

/// A call that waits for a person: its digest is what an approval of it names.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AskedCallWire {
    pub digest: String,
    pub tool: String,
    /// What would be sent. If that is too large for this answer, a text that says so, and `largeArgs` says
    /// where all of it is.
    pub args: Value,
    pub reason: String,
    /// Present if `args` are not here.
    #[serde(rename = "largeArgs", skip_serializing_if = "Option::is_none")]
    pub large_args: Option<LargeValue>,
}

impl AskedCallWire {
    /// Describes the call without its arguments, which are at `large.href`.
    pub fn without_args(asked: &AskedCall, large: LargeValue) -> Self {
        let words = format!(
            "NOT SHOWN: the arguments have {} bytes. GET {} shows all of them.",
            large.bytes, large.href
        );
        Self {
            large_args: Some(large),
            ..Self::new(asked, Value::String(words))
        }
    }

    /// Describes the call; `args` are its arguments, read back from where the run keeps them.
    pub fn new(asked: &AskedCall, args: Value) -> Self {
        Self {
            digest: asked.digest.to_string(),
            tool: asked.tool.to_string(),
            args,
            reason: asked.reason.clone(),
            large_args: None,
        }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ErrorWire {
    pub code: String,
    pub message: String,
}

impl From<StepError> for ErrorWire {
    fn from(error: StepError) -> Self {
        Self {
            code: error.code.to_string(),
            message: error.message,
        }
    }
}

/// A step of a dry run: what would be called, and what consent and the guards say.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRunStep {
    #[serde(flatten)]
    pub step: StepResult,
    /// As they would be sent; what is not known yet is named by where it comes from.
    pub args: Value,
    /// `allow`, `ask` or `deny`.
    pub verdict: String,
    pub reason: String,
    /// Every step that it waits for: those that it names, and those whose values it uses.
    pub depends_on: Vec<String>,
    /// The step runs only if this holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The arguments for each of the first elements the step runs over, if they are known.
    #[serde(rename = "itemArgs", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub item_args: Option<Vec<Value>>,
}

impl RunResult {
    /// Larger arguments are left out of results.
    pub const MAX_ARGS: usize = 16 << 10;

    /// Lines of one step's log in a result.
    const MAX_LOG_LINES: usize = 100;

    /// Adds what the steps' latest calls were sent, and when the steps began and ended.
    pub fn add_calls(&mut self, mut sent: BTreeMap<StepId, Value>, histories: &StepHistories) {
        for step in &mut self.steps {
            let Ok(id) = step.id.parse::<StepId>() else {
                continue;
            };
            let args = sent.remove(&id);
            step.args = args.filter(|args| args.to_string().len() <= Self::MAX_ARGS);
            if let Some(history) = histories.get(&id) {
                step.started_at = history.started_at.map(|at| at.to_string());
                step.ended_at = history.ended_at.map(|at| at.to_string());
                step.models = ModelCostLine::all(&history.models);
            }
        }
    }

    /// Adds what the servers logged, in the order of the lines: for each step the latest ones.
    pub fn add_log(&mut self, lines: impl DoubleEndedIterator<Item = (String, StepLogLine)>) {
        let mut logs: BTreeMap<String, Vec<StepLogLine>> = BTreeMap::new();
        for (step, line) in lines.rev() {
            let log = logs.entry(step).or_default();
            if log.len() < Self::MAX_LOG_LINES {
                log.push(line);
            }
        }
        for step in &mut self.steps {
            step.log = logs.remove(&step.id).unwrap_or_default();
            step.log.reverse();
        }
    }

    /// Adds what the outputs of the plan came to.
    pub fn add_outputs(&mut self, outputs: Option<Outputs>) {
        if let Some(Outputs { values, problems }) = outputs {
            self.outputs = Some(values);
            self.output_problems = problems.iter().map(ToString::to_string).collect();
        }
    }

    /// Describes a run. `steps` are the results of the steps of `report`, in the same order, with
    /// their values read back: reading them needs a store, which this crate does not know.
    pub fn new(run: &Run, report: &RunReport, steps: Vec<StepResult>) -> Self {
        Self::page(run, report, (0, steps))
    }

    /// Describes a run with some of its steps: those from the one with this number on.
    pub fn page(run: &Run, report: &RunReport, (first, steps): (usize, Vec<StepResult>)) -> Self {
        let reflection = run.start().reflection.as_ref();
        Self {
            plan_id: report.plan.to_string(),
            run_id: Some(report.run.to_string()),
            version: report.version,
            digest: report.digest.to_string(),
            status: report.status.to_string(),
            success: report.success,
            duration_ms: millis(report.duration),
            variables: variables(run.plan(), first, &steps),
            steps,
            next_cursor: None,
            outputs: None,
            output_problems: Vec::new(),
            replanned: run.reflection().was_replanned()
                || reflection.is_some_and(|reflection| reflection.replanned),
            continues: reflection
                .and_then(|reflection| reflection.continues.as_ref().map(ToString::to_string)),
            reflection: ReflectionWire::of(run),
            reason: run.reflection().why_given_up().map(str::to_owned),
            criteria: CriterionWire::all_of(run),
            queued_behind: run.schedule().queued_behind(),
            critical_path: None,
        }
    }
}

impl StepResult {
    /// Describes a step. `value` and `items` are those of the report, read back.
    pub fn new(report: StepReport, value: Option<Value>, items: Option<Vec<ItemResult>>) -> Self {
        let StepReport {
            id,
            title,
            tool,
            status,
            attempts,
            duration,
            value: _,
            error,
            items: _,
            waits_for,
        } = report;
        Self {
            id: id.to_string(),
            title: title.unwrap_or_default(),
            tool,
            status: status.to_string(),
            attempts,
            duration_ms: millis(duration),
            started_at: None,
            ended_at: None,
            models: Vec::new(),
            args: None,
            value,
            large_value: None,
            error: error.map(ErrorWire::from),
            items,
            call: None,
            log: Vec::new(),
            waits_for: waits_for.map(|run| run.to_string()),
        }
    }
}

impl ItemResult {
    /// Describes one element of a step. `value` is that of the report, read back.
    pub fn new(report: ItemReport, value: Option<Value>) -> Self {
        let ItemReport {
            index,
            status,
            attempts,
            duration,
            value: _,
            error,
        } = report;
        Self {
            index,
            status: status.to_string(),
            attempts,
            duration_ms: millis(duration),
            value,
            large_value: None,
            error: error.map(ErrorWire::from),
        }
    }
}

/// The plan's variables, and every value under the name its step gave it.
fn variables(plan: &Plan, first: usize, results: &[StepResult]) -> Map<String, Value> {
    let mut variables = plan.document().variables.clone();
    let steps = plan.document().steps.iter().skip(first);
    for (step, result) in steps.zip(results) {
        if let (Some(name), Some(value)) = (&step.result, &result.value) {
            variables.insert(name.clone(), value.clone());
        }
    }
    variables
}

/// What `run --dry-run --json` prints: the shape of a run's result, with nothing called.
pub fn dry_run_result(plan: &Plan, version: u32, preview: &Preview) -> RunResult<DryRunStep> {
    let steps = plan.indices().zip(&preview.steps).map(|(ix, previewed)| {
        let PreviewStep {
            args,
            items,
            verdict,
            reason,
        } = previewed;
        let step = plan.step(ix);
        DryRunStep {
            step: StepResult {
                id: plan.step_id(ix).to_string(),
                title: step.title.clone().unwrap_or_default(),
                tool: step.action_label().to_owned(),
                status: "dry_run".to_owned(),
                attempts: 0,
                duration_ms: 0,
                started_at: None,
                ended_at: None,
                models: Vec::new(),
                args: None,
                value: None,
                large_value: None,
                error: None,
                waits_for: None,
                items: None,
                call: None,
                log: Vec::new(),
            },
            args: args.clone(),
            verdict: verdict.as_str().to_owned(),
            reason: reason.clone(),
            depends_on: plan
                .graph()
                .dependencies(ix)
                .iter()
                .map(|d| plan.step_id(*d).to_string())
                .collect(),
            when: step.when.clone(),
            item_args: items.clone(),
        }
    });
    RunResult {
        plan_id: plan.id().to_string(),
        run_id: None,
        version,
        digest: preview.digest.to_string(),
        status: "dry_run".to_owned(),
        success: true,
        duration_ms: 0,
        steps: steps.collect(),
        next_cursor: None,
        outputs: None,
        output_problems: Vec::new(),
        variables: plan.document().variables.clone(),
        replanned: false,
        continues: None,
        reflection: None,
        reason: None,
        criteria: Vec::new(),
        queued_behind: None,
        critical_path: Some(
            preview
                .critical_path
                .iter()
                .map(|ix| plan.step_id(*ix).to_string())
                .collect(),
        ),
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What happened to one step of a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepTrail {
    pub step: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Its calls, the first one first; the latest 1,000.
    pub attempts: Vec<AttemptLine>,
    /// What asking models for it took.
    pub models: Vec<ModelCostLine>,
}

/// One call of a step.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptLine {
    /// Counted from 1.
    pub attempt: u32,
    pub tool: String,
    pub started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// `running`, `succeeded`, `failed`, `interrupted`, `cancelled` or `unknown`.
    pub outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorWire>,
    /// Why it was interrupted, or why its outcome is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
}

impl StepTrail {
    pub fn new(step: String, history: &StepHistory) -> Self {
        Self {
            step,
            started_at: history.started_at.map(|at| at.to_string()),
            ended_at: history.ended_at.map(|at| at.to_string()),
            attempts: history.attempts.iter().map(AttemptLine::new).collect(),
            models: ModelCostLine::all(&history.models),
        }
    }
}

impl AttemptLine {
    fn new(call: &AttemptHistory) -> Self {
        Self {
            attempt: call.attempt,
            tool: call.tool.clone(),
            started_at: call.started_at.to_string(),
            ended_at: call.ended_at.map(|at| at.to_string()),
            outcome: call.outcome.as_str(),
            error: call.error.clone().map(ErrorWire::from),
            reason: call.reason.clone(),
            retry_at: call.retry_at.map(|at| at.to_string()),
        }
    }
}
