//! How plans came about and what models cost, as other programs see it. Money is in dollars.

use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::model::{Cost, Message, TokenUsage};
use planwright_core::plan::{Document, Finding};
use planwright_core::planning::{Prompt, SchemaDetail};
use planwright_core::review::PlanningRecord;
use planwright_core::stats::{ModelCosts, ModelStats};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use utoipa::ToSchema;

/// How a version of a plan was written.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanningLine {
    /// The model that wrote it; absent when none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How often it was asked.
    pub rounds: u32,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Absent where no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The session in which the model looked around before it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explored: Option<ExploredLine>,
    /// No model wrote it: it is for a person to finish.
    pub fallback: bool,
}

/// What a model looked at before it wrote a plan.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ExploredLine {
    /// The plan whose journal has the calls.
    pub session: String,
    /// How many calls were made.
    pub calls: u32,
}

impl From<&PlanningRecord> for PlanningLine {
    fn from(planning: &PlanningRecord) -> Self {
        let TokenUsage { input, output, .. } = planning.usage();
        Self {
            model: planning.model.clone(),
            rounds: planning.rounds,
            input_tokens: input,
            output_tokens: output,
            cost_usd: planning.cost().map(dollars),
            explored: planning.explored.as_ref().map(|explored| ExploredLine {
                session: explored.session.to_string(),
                calls: explored.calls,
            }),
            fallback: planning.fallback,
        }
    }
}

/// What one model was asked, and what that cost.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelCostLine {
    pub model: String,
    pub answers: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// As far as prices are known.
    pub cost_usd: f64,
    /// Answers for which no price is known.
    pub unpriced: u64,
}

impl ModelCostLine {
    /// One line per model.
    pub fn all(costs: &ModelCosts) -> Vec<Self> {
        costs
            .iter()
            .map(|(model, figures)| Self::new(model, figures))
            .collect()
    }

    pub fn new(model: &str, figures: &ModelStats) -> Self {
        Self {
            model: model.to_owned(),
            answers: figures.answers,
            input_tokens: figures.usage.input,
            output_tokens: figures.usage.output,
            cost_usd: dollars(figures.cost),
            unpriced: figures.unpriced,
        }
    }
}

/// Money in dollars.
#[expect(
    clippy::cast_precision_loss,
    reason = "no plan costs 2^52 millionths of a dollar"
)]
pub fn dollars(cost: Cost) -> f64 {
    cost.0 as f64 / 1_000_000.0
}

/// What `create --json` prints.
#[derive(Debug, Serialize)]
pub struct CreateResult<'a> {
    pub id: &'a PlanId,
    pub version: u32,
    pub status: &'a str,
    pub digest: Digest,
    pub plan: &'a Document,
    pub findings: &'a [Finding],
    pub planning: PlanningLine,
}

/// What `create --dry-run --json` prints: what a model would be asked.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptResult<'a> {
    pub messages: &'a [Message],
    pub schema: &'a Value,
    /// How much the schema says about calls: `full`, `shared` or `compact`.
    pub shape: &'static str,
    /// Tools that did not fit.
    pub tools_left_out: usize,
    /// About how many tokens the messages have.
    pub tokens: usize,
}

impl<'a> From<&'a Prompt> for PromptResult<'a> {
    fn from(prompt: &'a Prompt) -> Self {
        Self {
            messages: &prompt.messages,
            schema: &prompt.schema.schema,
            shape: match prompt.shape {
                SchemaDetail::Lean => "lean",
                SchemaDetail::Full => "full",
                SchemaDetail::Shared => "shared",
                SchemaDetail::Compact => "compact",
            },
            tools_left_out: prompt.left_out,
            tokens: prompt.tokens(),
        }
    }
}

/// A plan that is being written in the background.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanningJob {
    pub id: String,
    /// `running`, `done`, `failed` or `cancelled`.
    #[schema(value_type = String)]
    pub status: Cow<'static, str>,
    pub goal: String,
    pub created_at: String,
    /// What happened so far, the first thing first.
    pub progress: Vec<PlanningStep>,
    /// The plan, once it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub problem: Option<Value>,
}

/// Something that happened while a plan is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanningStep {
    /// `asked`, `looked`, `answered` or `sent_back`.
    #[schema(value_type = String)]
    pub kind: Cow<'static, str>,
    /// The tool with which it looked around.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Bytes of the answer that came so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// What is wrong with the answer, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}
