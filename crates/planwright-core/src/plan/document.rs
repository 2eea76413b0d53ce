//! The plan document: the one serde model behind files, the HTTP API and the published JSON Schema.
//!
//! This is the canonical camelCase form. The other spellings people write are brought into it by
//! [`super::import`] before serde sees them, so that this model can reject every unknown key.

use crate::id::{PlanId, StepId, written_step_ids};
use crate::run::ArtifactRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A DAG of tool calls that people can read, approve and audit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Document {
    /// Minted as `plan-` and eight characters when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "Option<String>",
        regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    )]
    pub id: Option<PlanId>,
    /// What the plan does, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Why it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// JSON Schema of the parameters. A plan with inputs is a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// Initial values, seen by every step as `${name}`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
    pub steps: Vec<Step>,
    /// The tools this plan may use. Derived from the steps when absent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools_required: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub success_criteria: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub context: Context,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub limits: Limits,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planner_model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor_model: Option<String>,
    /// Seconds the planner expects the plan to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_duration: Option<f64>,
}

impl Document {
    /// Gives every step without an id the number of its position, or the next number that is free.
    pub fn number_steps(&mut self) {
        if self.steps.iter().all(|step| step.id.is_some()) {
            return;
        }
        let taken: BTreeSet<StepId> = self
            .steps
            .iter()
            .filter_map(|step| step.id.clone())
            .collect();
        let mut next = 1;
        for (index, step) in self.steps.iter_mut().enumerate() {
            if step.id.is_some() {
                continue;
            }
            // The numbers only grow, so that no number is tried twice for two steps.
            next = next.max(index + 1);
            let id = loop {
                let id: StepId = next
                    .to_string()
                    .parse()
                    .expect("a number is a valid step id");
                next += 1;
                if !taken.contains(&id) {
                    break id;
                }
            };
            step.id = Some(id);
        }
    }
}

impl Document {
    /// The document with other values for its variables: what is given at run time wins.
    #[must_use]
    pub fn with_variables(&self, given: &Map<String, Value>) -> Self {
        let mut document = self.clone();
        document.variables.extend(
            given
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        document
    }
}

/// What the planner knew, for people and for the model. It changes nothing that is executed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Context {
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub tool_outputs: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// What is too large to be kept in the document, by its content: `notes`, or `toolOutputs/` and
    /// a name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub stored: BTreeMap<String, ArtifactRef>,
    /// Where the plan comes from, if it was made from a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<FromTemplate>,
}

/// The template a plan was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FromTemplate {
    #[schemars(with = "String")]
    pub id: PlanId,
    pub version: u32,
}

/// Bounds the plan sets for its own runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// How many steps may be in flight at once. 4 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_concurrency: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    pub budget: Budget,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cycles: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replans: Option<u32>,
}

impl Limits {
    pub const DEFAULT_MAX_CONCURRENCY: u32 = 4;

    pub fn max_concurrency(&self) -> u32 {
        self.max_concurrency
            .unwrap_or(Self::DEFAULT_MAX_CONCURRENCY)
            .max(1)
    }
}

/// What a run may spend. Counted in the journal, so that a restart does not reset it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Budget {
    /// Tool calls, retries included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Tool calls per tool, by the name the steps use.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub per_tool: BTreeMap<String, u64>,
    /// Seconds from the start of the run; nothing starts afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The same call (tool and arguments) repeated more often than this is a runaway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_call: Option<u64>,
}

/// What happens once a critical step has failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// In-flight steps finish, nothing new starts, the run fails.
    Stop,
    /// Every failure is treated as one of a step that is not critical.
    Continue,
    /// The model is asked what to do.
    Reflect,
}

/// One node of the DAG: exactly one action, and how to treat it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Step {
    /// Numbered by position when absent.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "written_step_ids::optional"
    )]
    #[schemars(
        with = "Option<String>",
        regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$")
    )]
    pub id: Option<StepId>,
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
        deserialize_with = "written_step_ids::list"
    )]
    #[schemars(with = "Vec<String>")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_parallel: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<Retry>>,
    /// Absolute: progress does not extend it.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability_label: Option<Box<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// A question to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Think {
    pub prompt: String,
    /// The answer must be JSON of this schema; text when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// An instruction for an executor that works with the plan's tools and nothing more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Agent {
    pub instruction: String,
    /// The tool the author expects the executor to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// A configured executor; the built-in tool loop when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// A configured model for the built-in tool loop; the plan's `executorModel` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How often the model may be asked. 20 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u32>,
    /// How many calls it may make. 50 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
    /// How many tokens its model may read and write together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// True: instead of ending with the model's text, the step asks a person what they say to it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub converse: bool,
}

impl Agent {
    pub const DEFAULT_MAX_TURNS: u32 = 20;
    pub const DEFAULT_MAX_CALLS: u32 = 50;
    /// A conversation is as long as the person wants it to be, within reason.
    const MAX_IN_CONVERSATION: u32 = 1000;

    pub fn max_turns(&self) -> u32 {
        let default = if self.converse {
            Self::MAX_IN_CONVERSATION
        } else {
            Self::DEFAULT_MAX_TURNS
        };
        self.max_turns.unwrap_or(default).max(1)
    }

    pub fn max_calls(&self) -> u32 {
        let default = if self.converse {
            Self::MAX_IN_CONVERSATION
        } else {
            Self::DEFAULT_MAX_CALLS
        };
        self.max_calls.unwrap_or(default)
    }
}

/// A question to a person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// JSON Schema of the values asked for.
    pub schema: Value,
}

/// Another plan or template, with its inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubPlan {
    #[schemars(with = "String")]
    pub id: PlanId,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
}

/// The call that takes a step back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Undo {
    pub tool: String,
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
    Tool {
        name: &'a str,
        args: &'a Map<String, Value>,
    },
    Think(&'a Think),
    Agent(&'a Agent),
    Input(&'a Input),
    Plan(&'a SubPlan),
}

impl Step {
    /// Whether the step's call is given a secret. Even a tool that only reads can carry it away, so
    /// a person is asked.
    pub fn is_given_secrets(&self) -> bool {
        self.args.values().any(super::template::names_secret)
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

    pub fn is_critical(&self) -> bool {
        self.critical.unwrap_or(true)
    }

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
