//! What can be written into the journal of a plan.

use super::Terms;
use crate::digest::Digest;
use crate::id::RunId;
use crate::journal::Journaled;
use crate::plan::Document;
use crate::principal::{Assurance, Principal};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Something that happened to a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ReviewEvent {
    PlanProposed {
        version: u32,
        document: Arc<Document>,
        digest: Digest,
        by: Principal,
        /// Why it was changed, in the author's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The earlier version whose content this one has again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restored_from: Option<u32>,
        /// Not put forward yet: nobody is asked about it and nothing of it runs.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        draft: bool,
    },
    /// The draft is put forward as it is.
    DraftProposed {
        version: u32,
        by: Principal,
    },
    PlanApproved {
        version: u32,
        /// What was on the screen.
        digest: Digest,
        by: Principal,
        assurance: Assurance,
        #[serde(default, skip_serializing_if = "Terms::is_plain")]
        terms: Terms,
    },
    PlanRejected {
        version: u32,
        by: Principal,
        reason: String,
    },
    /// A run begins and spends the approval of this digest.
    RunOpened {
        run: RunId,
        version: u32,
        digest: Digest,
    },
    PlanDeleted {
        by: Principal,
    },
}

impl Journaled for ReviewEvent {
    fn unique_key(&self) -> Option<String> {
        match self {
            Self::PlanProposed { version, .. } => Some(format!("version {version}")),
            Self::DraftProposed { version, .. } => Some(format!("proposed {version}")),
            Self::RunOpened { run, .. } => Some(format!("run {run}")),
            Self::PlanApproved { .. } | Self::PlanRejected { .. } | Self::PlanDeleted { .. } => None,
        }
    }
}
