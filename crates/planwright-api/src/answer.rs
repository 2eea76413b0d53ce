//! What requests that change something are answered with.

use crate::AskedCallWire;
use crate::schema::{BriefingShape, PrincipalShape};
use planwright_core::plan::Finding;
use planwright_core::principal::Principal;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// One page of a list. `nextCursor` leads to the next one; without it there is none.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    pub items: Vec<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// How many there are in all, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
}

/// Where a plan stands after a decision about it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanDecided {
    pub id: String,
    pub version: u32,
    #[schema(value_type = crate::words::PlanStatusShape)]
    pub status: String,
    pub digest: String,
    /// How many people have agreed to this digest.
    pub approvals: usize,
    /// How many have to.
    pub required: usize,
    /// What is wrong with the plan, errors first. A plan with errors cannot be approved.
    #[schema(value_type = Vec<crate::FindingShape>)]
    pub findings: Vec<Finding>,
    pub trace_id: String,
}

/// A run that began, or goes on, in the background.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunAccepted {
    pub plan_id: String,
    pub run_id: String,
    #[schema(value_type = crate::words::RunStatusShape)]
    pub status: String,
    pub trace_id: String,
}

/// Where a step stands after a decision about it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepDecided {
    pub plan_id: String,
    pub run_id: String,
    pub step: String,
    /// Of the step.
    #[schema(value_type = crate::words::StepStatusShape)]
    pub state: String,
    /// Of the run.
    #[schema(value_type = crate::words::RunStatusShape)]
    pub status: String,
    pub trace_id: String,
}

/// Something that waits for a person.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    #[schema(value_type = crate::words::WaitingForShape)]
    pub kind: &'static str,
    pub plan_id: String,
    pub title: String,
    pub version: u32,
    /// What a decision has to name: of the plan, of the run, or of the concrete call.
    pub digest: String,
    /// Since when it waits.
    pub since: String,
    #[schema(value_type = Option<PrincipalShape>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_by: Option<Principal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Until when it can be decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The concrete call that is asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<AskedCallWire>,
    /// The step as the plan has it, where it waits before its arguments are resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenCall>,
    /// What an approval covers: every call as it would be sent, with the steps of sub-plans. For a step that waits
    /// before its arguments are resolved, that of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BriefingShape>)]
    pub briefing: Option<Value>,
    /// Where the briefing is, if this answer has no room for it.
    #[serde(rename = "largeBriefing", skip_serializing_if = "Option::is_none")]
    pub large_briefing: Option<LargeBriefing>,
    /// What is asked, each with the schema of its answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<crate::QuestionShape>)]
    pub questions: Vec<Value>,
    /// Why the outcome is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `low`, `medium` or `high`, of what is to be approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<&'static str>,
    /// The tools that would be called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Whether an approval of the plan by the reader would be taken now, where a plan is to be approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub may_approve: Option<bool>,
}

/// How much waits for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboxCount {
    pub total: u64,
    /// Plans to approve.
    pub plans: u64,
    /// Steps to approve.
    pub steps: u64,
    /// Questions.
    pub inputs: u64,
    /// Calls whose outcome is unknown.
    pub outcomes: u64,
    /// Another text whenever something else waits.
    pub mark: String,
}

/// What came of one decision of several.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionResult {
    pub plan_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Whether it is recorded.
    pub ok: bool,
    /// The status that the decision would have had as a request of its own.
    pub status: u16,
    /// Why it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub problem: Option<Value>,
}

/// A briefing that is somewhere else, because it is large. Nothing of it is shown here: read it before you decide.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LargeBriefing {
    /// The length of its JSON.
    pub bytes: u64,
    /// How many steps it has, and what they do.
    pub summary: String,
    /// Where all of it is.
    pub href: String,
}

/// A call as the plan has it, references and all.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WrittenCall {
    pub title: String,
    pub tool: String,
    #[schema(value_type = Object)]
    pub args: Value,
}

/// A tool that plans can use.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolLine {
    pub server: String,
    pub name: String,
    #[schema(value_type = crate::words::EffectClassShape)]
    pub class: String,
    pub read_only: bool,
    /// Whether its server is trusted to say what its tools do.
    pub trusted: bool,
    /// Whether it reaches beyond its own system.
    pub reaches_out: bool,
    /// What its server says about it: `readOnlyHint`, `destructiveHint`, `idempotentHint`, `openWorldHint`.
    #[schema(value_type = Object)]
    pub annotations: Value,
    pub title: Option<String>,
    pub description: Option<String>,
    pub digest: String,
    #[schema(value_type = Object)]
    pub input_schema: Value,
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Value>,
}
