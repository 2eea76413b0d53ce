//! Creating a plan: the one command about a plan that does not exist yet.

use crate::digest::Digest;
use crate::plan::Document;
use crate::principal::Principal;
use crate::review::version::first_version;
use crate::review::{Review, ReviewEvent, ReviewRefusal, ReviewState};
use std::sync::Arc;

/// A plan that begins.
#[derive(Debug, Clone)]
pub struct Creation {
    /// The content of its first version.
    pub document: Arc<Document>,
    /// The digest of what would run.
    pub digest: Digest,
    /// The author.
    pub by: Principal,
    /// Not put forward yet.
    pub draft: bool,
}

impl Creation {
    /// The first entry of the plan's journal.
    pub fn first_event(&self) -> ReviewEvent {
        let Self {
            document,
            digest,
            by,
            draft,
        } = self.clone();
        first_version(document, digest, by, draft)
    }
}

impl Review {
    /// Refuses to create this plan once more. What was deleted may begin again, as the next
    /// version: its journal is kept.
    pub fn check_creatable(&self) -> Result<(), ReviewRefusal> {
        match self.state {
            ReviewState::Active(_) | ReviewState::Archived(_) => {
                Err(ReviewRefusal::Exists(self.id.clone()))
            }
            ReviewState::Deleted => Ok(()),
        }
    }

    /// Unlike a proposal, never the next version of a plan that exists, also for the same content:
    /// two callers who create a plan with one id do not mean the same plan.
    pub(super) fn decide_create(
        &self,
        creation: &Creation,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        self.check_creatable()?;
        let Creation {
            document,
            digest,
            by,
            draft,
        } = creation;
        if *draft {
            self.decide_draft(document, *digest, by)
        } else {
            self.decide_propose(document, *digest, by)
        }
    }
}
