//! What requests that change something are answered with.

use crate::AskedCallWire;
use crate::schema::{BriefingShape, PrincipalShape};
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
}

/// Where a plan stands after a decision about it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanDecided {
    pub id: String,
    pub version: u32,
    pub status: String,
    pub digest: String,
    /// How many people have agreed to this digest.
    pub approvals: usize,
    /// How many have to.
    pub required: usize,
    pub trace_id: String,
}

/// A run that began, or goes on, in the background.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunAccepted {
    pub plan_id: String,
    pub run_id: String,
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
    pub state: String,
    /// Of the run.
    pub status: String,
    pub trace_id: String,
}

/// Something that waits for a person.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// `plan`, `step`, `input` or `outcome`.
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
    #[schema(value_type = Vec<Object>)]
    pub questions: Vec<Value>,
    /// Why the outcome is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
    /// `safe`, `keyed` or `unsafe`.
    pub class: String,
    pub read_only: bool,
    pub title: Option<String>,
    pub description: Option<String>,
    pub digest: String,
    #[schema(value_type = Object)]
    pub input_schema: Value,
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Value>,
}
