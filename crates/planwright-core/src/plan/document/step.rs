//! One step of a plan document: its action, and how it is treated.

use super::{Agent, Input, SubPlan, Think};
use crate::id::{StepId, deserialize_step_ids};
use crate::json::{is_default, serialize_seconds};
use crate::plan::reference::names_secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// One node of the DAG: exactly one action, and how to treat it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Step {
    /// Numbered by position when absent.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_step_ids::optional"
    )]
    #[schemars(
        with = "Option<String>",
        regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$")
    )]
    pub id: Option<StepId>,
    /// The step in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,

    /// Calls one tool: `server.tool`, or the bare name when only one server has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Arguments of `tool`. Strings may hold `${references}`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
    /// Asks a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Box<Think>>,
    /// Hands an instruction to an executor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<Agent>>,
    /// Asks a person for values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Box<Input>>,
    /// Runs another plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<SubPlan>>,

    /// Steps that must complete first. References add edges by themselves.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "deserialize_step_ids::list"
    )]
    #[schemars(
        with = "Vec<String>",
        inner(regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$"))
    )]
    pub depends_on: Vec<StepId>,
    /// Name under which later steps see the value. The step id always works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// CEL condition; false skips the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// True: the step stays in the plan and is left out when it runs.
    #[serde(skip_serializing_if = "is_default")]
    pub skip: bool,
    /// A list, or a reference to one: the step runs once per element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<Value>,
    /// Elements that may be in flight at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_parallel: Option<u32>,
    /// The retries after failed attempts; none when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<Retry>>,
    /// Absolute: progress does not extend it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_seconds"
    )]
    pub timeout_seconds: Option<f64>,
    /// Nothing is called before a person agreed to this step.
    #[serde(skip_serializing_if = "is_default")]
    pub approval_required: bool,
    /// CEL predicates over the resolved arguments that the approver agreed to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// False: its failure blocks only its dependants, the run goes on. True when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical: Option<bool>,
    /// True: an unavailable tool skips the step instead of stopping the plan.
    #[serde(skip_serializing_if = "is_default")]
    pub optional: bool,
    /// CEL over `result` that must hold, else the step failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// The call that takes this step back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<Box<Undo>>,
    /// Kind of ability the step needs, for policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<Box<str>>,
    /// The capability in words, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability_label: Option<Box<str>>,
    /// Labels for policies and people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// The call that takes a step back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Undo {
    /// The tool to call.
    pub tool: String,
    /// Arguments of the tool. Strings may hold `${references}`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub args: Map<String, Value>,
}

/// When a failed attempt is tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Retry {
    /// Attempts after the first one.
    pub max: u32,
    /// Seconds before the first retry.
    pub backoff: f64,
    /// Each pause is this many times the one before.
    pub factor: f64,
    /// Part of the pause that varies, 0 to 1, so that many steps do not retry at once.
    pub jitter: f64,
    /// Error codes worth a retry. Empty: those the tool calls retryable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max: 0,
            backoff: 1.0,
            factor: 2.0,
            jitter: 0.0,
            on: Vec::new(),
        }
    }
}

impl Retry {
    const MAX_PAUSE: Duration = Duration::from_hours(1);

    /// The pause after attempt number `failed`. `noise` in 0..1 places it within the jitter.
    pub fn pause_after(&self, failed: u32, noise: f64) -> Duration {
        let power = i32::try_from(failed.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds =
            self.backoff * self.factor.powi(power) * (1.0 + self.jitter * (2.0 * noise - 1.0));
        Duration::try_from_secs_f64(seconds)
            .map_or(Self::MAX_PAUSE, |pause| pause.min(Self::MAX_PAUSE))
    }
}

/// The one action of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action<'a> {
    /// Calls a tool.
    Tool {
        /// The tool as the step names it.
        name: &'a str,
        /// Arguments as they are written.
        args: &'a Map<String, Value>,
    },
    /// Asks a model.
    Think(&'a Think),
    /// Hands an instruction to an executor.
    Agent(&'a Agent),
    /// Asks a person.
    Input(&'a Input),
    /// Runs another plan.
    Plan(&'a SubPlan),
}

impl Step {
    /// Returns whether the step's call is given a secret. Even a tool that only reads can carry it
    /// away, so a person is asked.
    pub fn receives_secrets(&self) -> bool {
        self.args.values().any(names_secret)
    }

    /// The step's action, or `None` if it has none. Validation has made sure that there is exactly
    /// one.
    pub fn action(&self) -> Option<Action<'_>> {
        if let Some(name) = &self.tool {
            return Some(Action::Tool {
                name,
                args: &self.args,
            });
        }
        let think = self.think.as_deref().map(Action::Think);
        let agent = self.agent.as_deref().map(Action::Agent);
        let input = self.input.as_deref().map(Action::Input);
        let plan = self.plan.as_deref().map(Action::Plan);
        think.or(agent).or(input).or(plan)
    }

    /// Returns true if the step asks a person instead of calling a tool.
    pub fn asks_person(&self) -> bool {
        matches!(self.action(), Some(Action::Input(_)))
    }

    /// Returns true if a model or an executor works on the step, which calls nothing itself.
    pub fn is_for_model(&self) -> bool {
        matches!(self.action(), Some(Action::Think(_) | Action::Agent(_)))
    }

    /// Returns whether the failure of the step fails the run.
    pub fn is_critical(&self) -> bool {
        self.critical.unwrap_or(true)
    }

    /// Returns the time limit of one attempt.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    /// What stands in the column for tools: the tool's name, or the kind of action.
    pub fn action_label(&self) -> &str {
        match self.action() {
            Some(Action::Tool { name, .. }) => name,
            Some(Action::Think(_)) => "think",
            Some(Action::Agent(_)) => "agent",
            Some(Action::Input(_)) => "input",
            Some(Action::Plan(_)) => "plan",
            None => "?",
        }
    }
}
