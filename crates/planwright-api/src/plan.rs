//! Plans as other programs see them.

use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::plan::Document;
use planwright_core::principal::Principal;
use planwright_core::review::{Approval, ApprovalState, Review};
use planwright_core::time::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What `import --json` prints.
#[derive(Debug, Clone, Serialize)]
pub struct Imported {
    pub id: PlanId,
    pub version: u32,
    pub status: String,
    pub digest: Digest,
}

/// What `show --json` prints: the document, and where it stands.
#[derive(Debug, Clone, Serialize)]
pub struct PlanDetails<'a> {
    #[serde(flatten)]
    pub document: &'a Document,
    pub status: &'a str,
    pub version: u32,
    pub digest: Digest,
    pub runs: Vec<RunLine>,
    /// What the policy says about each step.
    pub policy: Vec<crate::StepVerdict>,
    pub approvals: Vec<ApprovalLine>,
    /// What was said about it.
    pub comments: Vec<crate::ThreadLine>,
    /// How many older runs and comments are not in it. Their own lists have all of them.
    #[serde(rename = "leftOut", skip_serializing_if = "LeftOut::is_nothing")]
    pub left_out: LeftOut,
    /// What changed since it was last agreed to, if an edit voided that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<crate::ChangesSince>,
    /// What earlier versions had and this one lacks, which only a person may agree to.
    #[serde(rename = "lostSafeguards", skip_serializing_if = "Option::is_none")]
    pub lost_safeguards: Option<crate::LostSafeguardsLine>,
    /// How the current version was written, if a model or a rule of thumb wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planning: Option<crate::PlanningLine>,
    /// What asking models for this plan took so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<crate::ModelCostLine>,
}

/// What the document of a plan has no room for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct LeftOut {
    /// The oldest runs.
    pub runs: usize,
    /// The oldest comments.
    pub comments: usize,
}

impl LeftOut {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// One approval of a plan.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalLine {
    pub version: u32,
    #[schema(value_type = String)]
    pub digest: Digest,
    #[schema(value_type = crate::PrincipalShape)]
    pub by: Principal,
    pub at: String,
    /// `open`, `used`, `expired`, `taken_back`, `revoked`, or `superseded` by a version that does something else.
    pub state: &'static str,
    pub required: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub late: BTreeMap<String, String>,
}

impl ApprovalLine {
    pub fn new(approval: &Approval, now: Timestamp) -> Self {
        let terms = &approval.terms;
        let state = match approval.state(now) {
            ApprovalState::Open => "open",
            ApprovalState::Spent => "used",
            ApprovalState::Expired => "expired",
            ApprovalState::Withdrawn => "taken_back",
            ApprovalState::Revoked(_) => "revoked",
            ApprovalState::Superseded => "superseded",
        };
        Self {
            version: approval.version,
            digest: approval.digest,
            by: approval.by.clone(),
            at: approval.at.to_string(),
            state,
            required: terms.required(),
            expires_at: terms.expires_at.map(|at| at.to_string()),
            late: terms
                .late
                .iter()
                .map(|(step, choice)| (step.clone(), choice.to_string()))
                .collect(),
        }
    }
}

/// One run of a plan.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunLine {
    pub id: String,
    pub version: u32,
    pub status: String,
    pub started_at: String,
    /// The run that this one takes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// The run whose step this one is the work of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// One plan in `list --json`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanLine {
    pub id: String,
    pub title: String,
    pub status: String,
    pub version: u32,
    pub steps: usize,
    pub created_at: String,
    pub updated_at: String,
    /// Why the plan cannot be read. What else is known of it comes from its cached status, if there
    /// is one, and its status is `unreadable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

impl PlanLine {
    /// A plan that cannot be read, made and changed at these times as far as is known.
    pub fn unreadable(
        id: &str,
        title: &str,
        (created_at, updated_at): (Timestamp, Timestamp),
        damage: String,
    ) -> Self {
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            status: "unreadable".to_owned(),
            version: 0,
            steps: 0,
            created_at: created_at.to_string(),
            updated_at: updated_at.to_string(),
            damage: Some(damage),
        }
    }

    pub fn new(review: &Review, status: &str) -> Self {
        let current = review.current();
        Self {
            id: review.id().to_string(),
            title: current.document.title.clone().unwrap_or_default(),
            status: status.to_owned(),
            version: current.number,
            steps: current.document.steps.len(),
            created_at: review.created_at().to_string(),
            updated_at: review.updated_at().to_string(),
            damage: None,
        }
    }
}
