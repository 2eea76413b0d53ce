//! Versions of a plan, and what differs between them.

use planwright_core::digest::Digest;
use planwright_core::id::{PlanId, StepId};
use planwright_core::plan::{Document, Finding, PlanDiff, SafeguardLoss};
use planwright_core::principal::Principal;
use planwright_core::review::{BuildsOn, LostSafeguards, Review, VersionSummary};
use serde::Serialize;

/// What `edit`, `restore` and `propose` print with `--json`.
#[derive(Debug, Clone, Serialize)]
pub struct EditedPlan {
    pub id: PlanId,
    pub version: u32,
    pub status: String,
    pub digest: Digest,
    /// Whether there is a new version. The same content again is none.
    pub changed: bool,
    pub diff: PlanDiff,
}

/// One version of a plan.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionLine {
    pub version: u32,
    #[schema(value_type = String)]
    pub digest: Digest,
    #[schema(value_type = crate::PrincipalShape)]
    pub by: Principal,
    pub at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<u32>,
    /// How it was written, if a model or a rule of thumb wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planning: Option<crate::PlanningLine>,
    pub title: String,
    pub steps: usize,
    /// Whether anybody agreed to it, used or not.
    pub approved: bool,
    pub current: bool,
}

impl VersionLine {
    /// All versions of a plan, the first one first.
    pub fn all(review: &Review) -> Vec<Self> {
        let line = |version: &VersionSummary| Self::new(review, version);
        review.versions().iter().map(line).collect()
    }

    /// One version of a plan.
    pub fn new(review: &Review, version: &VersionSummary) -> Self {
        Self {
            version: version.number,
            digest: version.digest,
            by: version.by.clone(),
            at: version.at.to_string(),
            reason: version.reason.clone(),
            restored_from: version.restored_from,
            planning: version.planning.as_deref().map(crate::PlanningLine::from),
            title: version.title.clone().unwrap_or_default(),
            steps: version.steps,
            approved: review
                .approvals()
                .iter()
                .any(|approval| approval.version == version.number && !approval.is_void()),
            current: version.number == review.current().number,
        }
    }
}

/// One version of a plan, with its content.
#[derive(Debug, Clone, Serialize)]
pub struct VersionDocument {
    #[serde(flatten)]
    pub line: VersionLine,
    pub document: Document,
}

/// What differs between two versions, or a version and a file.
#[derive(Debug, Clone, Serialize)]
pub struct DiffResult {
    pub id: PlanId,
    pub from: u32,
    /// Nothing if a file was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    /// Whether anything that is executed differs.
    pub executable: bool,
    #[serde(flatten)]
    pub diff: PlanDiff,
}

impl DiffResult {
    pub fn new(id: PlanId, from: u32, to: Option<u32>, diff: PlanDiff) -> Self {
        Self {
            id,
            from,
            to,
            executable: diff.is_executable(),
            diff,
        }
    }
}

/// What an edit of a plan would come to. Nothing of it is stored.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EditPreviewResult {
    #[serde(flatten)]
    pub diff: DiffResult,
    /// Whether the plan could run with it.
    pub ok: bool,
    /// What an approval of the plan would cover then; absent unless it could run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// What is to be said about the plan with these changes, errors first.
    pub findings: Vec<Finding>,
}

impl EditPreviewResult {
    pub fn new(diff: DiffResult, digest: Option<Digest>, findings: Vec<Finding>) -> Self {
        let ok = !findings.iter().any(Finding::is_error);
        Self {
            diff,
            ok,
            digest: digest.filter(|_| ok),
            findings,
        }
    }
}

/// Safeguards that are gone or hold back less than in an earlier version.
#[derive(Debug, Clone, Serialize)]
pub struct LostSafeguardsLine {
    /// The version that had them.
    pub since: u32,
    pub losses: Vec<SafeguardLoss>,
}

impl From<LostSafeguards> for LostSafeguardsLine {
    fn from(lost: LostSafeguards) -> Self {
        Self {
            since: lost.since,
            losses: lost.losses,
        }
    }
}

/// What changed since a plan was last agreed to.
#[derive(Debug, Clone, Serialize)]
pub struct ChangesSince {
    pub since: BuildsOn,
    pub diff: PlanDiff,
    /// Steps that are just as they were agreed to.
    pub agreed: Vec<StepId>,
}
