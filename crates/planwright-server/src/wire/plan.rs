//! Plans as other programs see them.

use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::plan::Document;
use planwright_core::review::Review;
use serde::Serialize;

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
}

/// One run of a plan.
#[derive(Debug, Clone, Serialize)]
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
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanLine {
    pub id: String,
    pub title: String,
    pub status: String,
    pub version: u32,
    pub steps: usize,
    pub created_at: String,
    pub updated_at: String,
}

impl PlanLine {
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
        }
    }
}
