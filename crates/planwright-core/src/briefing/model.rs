//! The data of a briefing.

use super::effect::Effect;
use super::file_change::FileChange;
use crate::json::serialize_seconds;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// What an approval of a plan covers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Briefing {
    /// Id of the plan.
    pub plan: String,
    /// The version that is shown.
    pub version: u32,
    /// The digest that an approval of it covers.
    pub digest: String,
    /// The title, in its author's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The goal, in its author's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What the executors of `agent` steps are told besides: notes, outputs of tools, artifacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// The proposer of this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_by: Option<String>,
    /// The model that wrote this version, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_by_model: Option<String>,
    /// What the plan gives back, by name: texts and structures with references.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Map<String, Value>>,
    /// Risks that the author sees.
    pub risks: Vec<String>,
    /// The time limit of calls whose step names none.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_seconds"
    )]
    pub call_timeout_seconds: Option<f64>,
    /// How many steps there are, and of what kind.
    pub counts: StepCounts,
    /// Every step: those that change something first, each group in the order of the plan.
    pub steps: Vec<StepBriefing>,
}

/// How many steps of a plan and its sub-plans do what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepCounts {
    /// All of them.
    pub steps: usize,
    /// Those that change something, or may.
    pub changing: usize,
    /// Those among them that the plan has no way to undo.
    pub without_undo: usize,
}

/// What an approval covers of one step.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepBriefing {
    /// Id of the step, with those of the steps that run its plan before it: `deploy/upload`.
    pub id: String,
    /// The title, in its author's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does to the world.
    pub effect: Effect,
    /// What it does.
    pub action: ActionBriefing,
    /// `allow`, `ask` or `deny`: what the policy says about it.
    pub verdict: String,
    /// The rule of the policy that says so; absent for its defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The reason of the policy.
    pub reason: String,
    /// Rules of the policy that only warn.
    pub warnings: Vec<String>,
    /// The steps it waits for.
    pub after: Vec<String>,
    /// The condition under which it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The list it runs over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<LoopBriefing>,
    /// True if the plan asks for an approval right before this step.
    pub gate: bool,
    /// Predicates that must hold for the arguments that are sent.
    pub constraints: Vec<String>,
    /// The predicate that must hold for the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// Attempts after the first one.
    pub retries: u32,
    /// The time limit of one attempt in seconds.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_seconds"
    )]
    pub timeout_seconds: Option<f64>,
    /// Names of the secrets that it is given.
    pub secrets: Vec<String>,
    /// The call that takes it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<CallBriefing>,
    /// The steps of the plan it runs.
    pub steps: Vec<Self>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum ActionBriefing {
    /// Calls a tool.
    Call(CallBriefing),
    /// Asks a model.
    Think {
        /// The text the model is asked.
        prompt: String,
        /// The model, if one is named or known.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// Hands an instruction to an executor.
    Agent {
        /// The work, in words.
        instruction: String,
        /// The object of the work.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// The program that works on it; absent for the built-in loop of a model.
        #[serde(skip_serializing_if = "Option::is_none")]
        executor: Option<String>,
        /// The model, if one is named or known.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The tools it may call.
        tools: Vec<ScopedTool>,
        /// How many calls it may make.
        max_calls: u32,
    },
    /// Asks a person for values.
    Input {
        /// The question.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// JSON Schema of the values.
        schema: Value,
    },
    /// Runs another plan.
    Plan {
        /// Id of the plan.
        plan: String,
        /// Its version, if the plan is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<u32>,
        /// Values for its inputs.
        inputs: Value,
        /// JSON pointers of the inputs that are only known later, as a whole or in part.
        late: Vec<String>,
    },
    /// Does nothing: the step is left out.
    Nothing,
}

/// One tool call as it would be sent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallBriefing {
    /// Full name of the tool.
    pub tool: String,
    /// The arguments. What is only known later is named by its source.
    pub args: Value,
    /// JSON pointers of the arguments that are only known later, as a whole or in part.
    pub late: Vec<String>,
    /// The command as one would type it, if the call runs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The file it writes, compared with what is there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileChange>,
}

/// The list that a step runs over.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoopBriefing {
    /// Where the list comes from.
    pub over: String,
    /// How many elements it has, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// The arguments for the first elements.
    pub items: Vec<Value>,
    /// JSON pointers into them of what is only known later.
    pub late: Vec<String>,
}

/// A tool that an executor may call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScopedTool {
    /// The tool, in full if it is known.
    pub tool: String,
    /// What its calls do to the world.
    pub effect: Effect,
}
