//! A plan as it is answered to the caller who posted it.

use planwright_core::json::serialize_seconds;
use planwright_core::plan::{Document, Finding, Step};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What `POST /plan` answers.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Created {
    pub plan: CreatedPlan,
    /// What is wrong with the plan, errors first; absent if nothing is. A plan with errors is kept, but it cannot be approved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<crate::FindingShape>)]
    pub findings: Vec<Finding>,
    pub trace_id: String,
}

/// The plan with every step's metadata spelt out.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedPlan {
    pub id: String,
    pub goal: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[schema(value_type = crate::words::PlanStatusShape)]
    pub status: String,
    pub version: u32,
    pub digest: String,
    pub steps: Vec<StepMetadata>,
    pub success_criteria: Vec<String>,
}

/// One step: what it does, which capability it uses, how long it may take, whether a person is
/// asked.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepMetadata {
    pub id: String,
    pub action: String,
    pub tool: String,
    pub capability: Option<String>,
    pub capability_label: Option<String>,
    pub labels: Vec<String>,
    #[serde(serialize_with = "serialize_seconds")]
    pub timeout_seconds: Option<f64>,
    pub approval_required: bool,
    /// What the step's tool is given.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub args: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
}

/// What a step does in a few words, as it was sent or as its tool is called.
pub(crate) fn action_of(step: &Step) -> String {
    let title = step.title.clone();
    title.unwrap_or_else(|| step.action_label().to_owned())
}

impl CreatedPlan {
    pub fn new(
        document: &Document,
        (id, status): (String, &str),
        version: u32,
        digest: String,
    ) -> Self {
        Self {
            id,
            goal: document
                .goal
                .clone()
                .or_else(|| document.title.clone())
                .unwrap_or_default(),
            title: document.title.clone(),
            status: status.to_owned(),
            version,
            digest,
            steps: document.steps.iter().map(StepMetadata::new).collect(),
            success_criteria: document.success_criteria.clone(),
        }
    }
}

impl StepMetadata {
    pub fn new(step: &Step) -> Self {
        let tool = step.action_label().to_owned();
        Self {
            id: step
                .id
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            action: action_of(step),
            tool,
            capability: step.capability.as_deref().map(str::to_owned),
            capability_label: step.capability_label.as_deref().map(str::to_owned),
            labels: step.labels.clone(),
            timeout_seconds: step.timeout_seconds,
            approval_required: step.approval_required,
            args: step.args.clone(),
            depends_on: step.depends_on.iter().map(ToString::to_string).collect(),
        }
    }
}
