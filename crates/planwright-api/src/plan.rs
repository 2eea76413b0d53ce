//! Plans as other programs see them.

use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::plan::{Document, Finding};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{Approval, ApprovalState, RequestedRun, Review};
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
    /// When the plan was brought, and by whom.
    #[serde(rename = "createdAt")]
    pub created_at: String,
    #[serde(rename = "createdBy")]
    pub created_by: Principal,
    /// When something was last said or changed about it, and who brought the current version.
    #[serde(rename = "updatedAt")]
    pub updated_at: String,
    #[serde(rename = "proposedBy")]
    pub proposed_by: Principal,
    /// Which steps wait for which.
    pub graph: crate::PlanGraph,
    /// What each step does to the world.
    pub facts: Vec<crate::StepFacts>,
    /// `low`, `medium` or `high`: that of the riskiest step.
    pub risk: &'static str,
    /// Where its approval stands.
    pub approval: crate::ApprovalStanding,
    /// How long a run of it should take, in milliseconds and without waiting for people, if anything is known about
    /// its tools. Over HTTP only.
    #[serde(rename = "predictedMs", skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<u64>,
    /// What models should be paid for in a run of it, in dollars, if such steps are known to have cost anything. Over
    /// HTTP only.
    #[serde(rename = "predictedCostUsd", skip_serializing_if = "Option::is_none")]
    pub predicted_cost_usd: Option<f64>,
    pub runs: Vec<RunLine>,
    /// What is wrong with it, errors first. A plan with errors cannot be approved.
    pub findings: Vec<Finding>,
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
    /// The run that starts as soon as it is approved, if one was requested.
    #[serde(rename = "runRequested", skip_serializing_if = "Option::is_none")]
    pub run_requested: Option<RequestedRunLine>,
    /// How the current version was written, if a model or a rule of thumb wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planning: Option<crate::PlanningLine>,
    /// What asking models for this plan took so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<crate::ModelCostLine>,
}

/// A run that starts as soon as exactly its digest is approved.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestedRunLine {
    #[schema(value_type = String)]
    pub digest: Digest,
    #[schema(value_type = crate::PrincipalShape)]
    pub by: Principal,
    pub at: String,
    /// An approval after this time does not start it.
    pub expires_at: String,
}

impl From<&RequestedRun> for RequestedRunLine {
    fn from(requested: &RequestedRun) -> Self {
        Self {
            digest: requested.digest,
            by: requested.by.clone(),
            at: requested.at.to_string(),
            expires_at: requested.at.plus(RequestedRun::VALID_FOR).to_string(),
        }
    }
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

/// What became of an approval; `superseded` if a later version does something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ApprovalState)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalWord {
    Open,
    Used,
    Expired,
    TakenBack,
    Revoked,
    Superseded,
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
    /// How sure it is that it was them: `terminal`, `command_line`, `program`, `token`, `web_sign_in`, `single_sign_on`,
    /// `passkey`, `host_mediated` or `policy`.
    #[schema(value_type = String)]
    pub assurance: Assurance,
    pub at: String,
    pub state: ApprovalWord,
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
            ApprovalState::Open => ApprovalWord::Open,
            ApprovalState::Spent => ApprovalWord::Used,
            ApprovalState::Expired => ApprovalWord::Expired,
            ApprovalState::Withdrawn => ApprovalWord::TakenBack,
            ApprovalState::Revoked(_) => ApprovalWord::Revoked,
            ApprovalState::Superseded => ApprovalWord::Superseded,
        };
        Self {
            version: approval.version,
            digest: approval.digest,
            by: approval.by.clone(),
            assurance: approval.assurance,
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
    #[schema(value_type = crate::words::RunStatusShape)]
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
    #[schema(value_type = crate::words::ListedStatusShape)]
    pub status: String,
    pub version: u32,
    pub steps: usize,
    pub created_at: String,
    pub updated_at: String,
    /// Who brought the first version.
    #[schema(value_type = Option<crate::PrincipalShape>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<Principal>,
    /// When anything last happened, in its runs too. In lists that are searched or ordered by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_at: Option<String>,
    /// How far its run is, while it has not ended. In lists that are searched or ordered by activity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<RunProgress>,
    /// Why the plan cannot be read. What else is known of it comes from its cached status, if there
    /// is one, and its status is `unreadable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// Steps of a run that are over, and all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunProgress {
    pub done: usize,
    pub total: usize,
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
            author: None,
            active_at: None,
            progress: None,
            damage: Some(damage),
        }
    }

    pub fn new(review: &Review, status: &str) -> Self {
        let current = review.current();
        Self {
            id: review.id().to_string(),
            title: current.document.heading().unwrap_or_default(),
            status: status.to_owned(),
            version: current.number,
            steps: current.document.steps.len(),
            created_at: review.created_at().to_string(),
            updated_at: review.updated_at().to_string(),
            author: review.versions().first().map(|first| first.by.clone()),
            active_at: None,
            progress: None,
            damage: None,
        }
    }
}
