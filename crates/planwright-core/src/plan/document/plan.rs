//! The plan document: the one serde model behind files, the HTTP API and the published JSON Schema.
//!
//! This is the canonical camelCase form. The other spellings people write are brought into it by
//! [`crate::plan::import`] before serde sees them, so that this model can reject every unknown key.

use super::Step;
use crate::artifact::ArtifactRef;
use crate::id::{PlanId, StepId};
use crate::json::is_default;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A DAG of tool calls that people can read, approve and audit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Document {
    /// Minted as `plan-` and eight characters when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "Option<String>",
        regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?$")
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
    /// The steps, in the order they are written.
    pub steps: Vec<Step>,
    /// The value of the plan, by name: texts and structures with references, as in arguments. Without
    /// it, the value of a sub-plan is the results of all its steps.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub outputs: Map<String, Value>,
    /// The tools, servers and patterns (`odoo.*`) this plan may use. Derived from the steps when absent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools_required: Vec<String>,
    /// Statements that hold when the plan has reached its goal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub success_criteria: Vec<String>,
    /// Knowledge of the planner.
    #[serde(skip_serializing_if = "is_default")]
    pub context: Context,
    /// Risks that the author sees.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// Bounds for the runs of the plan.
    #[serde(skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// The model that wrote the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planner_model: Option<String>,
    /// The model for `think` and `agent` steps that name none.
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
    /// The most characters of a heading that is taken from the goal.
    const MAX_HEADING: usize = 200;

    /// What people know the plan by: its title, or else how its goal begins.
    pub fn heading(&self) -> Option<String> {
        let given = |text: &&String| !text.trim().is_empty();
        if let Some(title) = self.title.as_ref().filter(given) {
            return Some(title.clone());
        }
        let goal = self.goal.as_ref().filter(given)?.trim();
        let line = goal.lines().next().unwrap_or_default();
        let end = line.char_indices().nth(Self::MAX_HEADING);
        Some(match end {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        })
    }

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

/// What the planner knew, for people and for models: the executors of `agent` steps are told of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Context {
    /// Results of tools that the planner looked at, by name.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub tool_outputs: Map<String, Value>,
    /// Notes for people, and for the executors of `agent` steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Names of files or other things that belong to the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// What is too large to be kept in the document, by its content: `notes`, or `toolOutputs/` and a name.
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
    /// Id of the template.
    #[schemars(
        with = "String",
        regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?$")
    )]
    pub id: PlanId,
    /// Version of the template.
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
    /// Spending limits of one run.
    #[serde(skip_serializing_if = "is_default")]
    pub budget: Budget,
    /// The reaction to a failed critical step. `stop` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// Most reflections on the same work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cycles: Option<u32>,
    /// Most times the remaining work is planned again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replans: Option<u32>,
}

impl Limits {
    /// Steps in flight at once when the plan does not say.
    pub const DEFAULT_MAX_CONCURRENCY: u32 = 4;

    /// Returns the number of steps that may be in flight at once, at least one.
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
    /// Tokens that models may read and write together.
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
