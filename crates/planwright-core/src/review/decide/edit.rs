//! Changing a plan as it was at one version.

use crate::digest::Digest;
use crate::plan::Document;
use crate::principal::Principal;
use crate::review::{PlanningRecord, Review, ReviewEvent, ReviewRefusal, ReviewStage, ReviewState};
use std::sync::Arc;

/// A change to a plan, made while looking at one version of it.
#[derive(Debug, Clone)]
pub struct Revision {
    /// The version that was looked at. If the plan has moved on since, the change is refused.
    pub based_on: u32,
    /// The content of the next version.
    pub document: Arc<Document>,
    /// The digest of what would run.
    pub digest: Digest,
    /// The author of the change.
    pub by: Principal,
    /// The reason for the change, in the author's words.
    pub reason: Option<String>,
    /// The earlier version whose content this is.
    pub restored_from: Option<u32>,
    /// The record of its planning, if a model wrote it.
    pub planning: Option<Box<PlanningRecord>>,
}

impl Review {
    /// A draft that is edited stays a draft; everything else is proposed by being edited.
    pub(super) fn decide_edit(
        &self,
        revision: &Revision,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        let Revision {
            based_on,
            document,
            digest,
            by,
            reason,
            restored_from,
            planning,
        } = revision;
        let draft = match self.state {
            ReviewState::Active(stage) | ReviewState::Archived(stage) => {
                stage == ReviewStage::Draft
            }
            ReviewState::Deleted => return Err(ReviewRefusal::Deleted),
        };
        let current = self.current();
        if *based_on != current.number {
            return Err(ReviewRefusal::Conflict {
                based_on: *based_on,
                current: current.number,
            });
        }
        Self::check_reason(reason.as_deref())?;
        if *current.document == **document {
            return Ok(Vec::new());
        }
        self.check_may_bring_back(by)?;
        let mut events = self.next_version(document, *digest, by, draft)?;
        for event in &mut events {
            if let ReviewEvent::PlanProposed {
                reason: why,
                restored_from: earlier,
                planning: how,
                ..
            } = event
            {
                why.clone_from(reason);
                *earlier = *restored_from;
                how.clone_from(planning);
            }
        }
        Ok(events)
    }
}
