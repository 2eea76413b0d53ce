//! New versions of a plan: proposed, drafted, edited, restored.

use super::{Refusal, Review, ReviewEvent, ReviewState, Version};
use crate::digest::Digest;
use crate::plan::{Document, PlanDiff};
use crate::principal::{Principal, PrincipalKind};
use crate::review::PlanningRecord;
use crate::trace::TraceId;
use std::sync::Arc;

impl Version {
    /// Returns true if neither a model nor a person wrote it: a draft that was put together from
    /// the words of its goal.
    pub fn is_fallback(&self) -> bool {
        self.planning
            .as_ref()
            .is_some_and(|planning| planning.fallback)
    }
}

/// A change to a plan, made while looking at one version of it.
#[derive(Debug, Clone)]
pub struct Revision {
    /// The version that was looked at. If the plan has moved on since, the change is refused.
    pub based_on: u32,
    pub document: Arc<Document>,
    pub digest: Digest,
    pub by: Principal,
    pub reason: Option<String>,
    /// The earlier version whose content this is.
    pub restored_from: Option<u32>,
    /// How it came about, if a model wrote it.
    pub planning: Option<Box<PlanningRecord>>,
}

impl ReviewEvent {
    /// Names the trace of the order that brought a new version.
    #[must_use]
    pub fn traced(mut self, order: Option<TraceId>) -> Self {
        if let Self::PlanProposed { trace, .. } = &mut self {
            *trace = order;
        }
        self
    }
}

impl ReviewEvent {
    /// Says how a new version came about.
    #[must_use]
    pub fn planned(mut self, how: Option<Box<PlanningRecord>>) -> Self {
        if let Self::PlanProposed { planning, .. } = &mut self {
            *planning = how;
        }
        self
    }
}

impl Review {
    /// Each version is kept whole, so there is an end to them.
    pub const MAX_VERSIONS: u32 = 10_000;
    /// Bytes of what an author says about a version.
    pub const MAX_REASON: usize = 16 << 10;

    /// The first entry of a plan's life.
    pub fn propose_first(document: Arc<Document>, digest: Digest, by: Principal) -> ReviewEvent {
        first_version(document, digest, by, false)
    }

    /// The first entry of the life of a plan that is worked on before it is put forward.
    pub fn draft_first(document: Arc<Document>, digest: Digest, by: Principal) -> ReviewEvent {
        first_version(document, digest, by, true)
    }

    /// What differs between two versions.
    pub fn diff(&self, from: u32, to: u32) -> Result<PlanDiff, Refusal> {
        let version = |number| self.version(number).ok_or(Refusal::NoSuchVersion(number));
        Ok(PlanDiff::between(
            &version(from)?.document,
            &version(to)?.document,
        ))
    }

    /// The same content again is the same version, unless the plan was deleted, expired or put away
    /// in between. A draft of that content is put forward.
    pub(super) fn decide_propose(
        &self,
        document: &Arc<Document>,
        digest: Digest,
        by: &Principal,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        let same = *self.current().document == **document;
        match self.state {
            ReviewState::Draft if same => self.decide_propose_draft(by),
            ReviewState::Proposed
            | ReviewState::Approved
            | ReviewState::Rejected
            | ReviewState::NeedsReview
            | ReviewState::ChangesRequested
                if same && !self.archived =>
            {
                Ok(Vec::new())
            }
            ReviewState::Draft
            | ReviewState::Proposed
            | ReviewState::Approved
            | ReviewState::Rejected
            | ReviewState::NeedsReview
            | ReviewState::ChangesRequested
            | ReviewState::Expired
            | ReviewState::Deleted => self.next_version(document, digest, by, false),
        }
    }

    pub(super) fn decide_draft(
        &self,
        document: &Arc<Document>,
        digest: Digest,
        by: &Principal,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        match self.state {
            ReviewState::Draft if *self.current().document == **document => Ok(Vec::new()),
            ReviewState::Draft | ReviewState::Deleted => {
                self.next_version(document, digest, by, true)
            }
            ReviewState::Proposed
            | ReviewState::Approved
            | ReviewState::Rejected
            | ReviewState::NeedsReview
            | ReviewState::ChangesRequested
            | ReviewState::Expired => Err(Refusal::NotADraft(self.state.status())),
        }
    }

    /// A draft is put forward, and so is again what expired.
    pub(super) fn decide_propose_draft(&self, by: &Principal) -> Result<Vec<ReviewEvent>, Refusal> {
        let current = self.current();
        match self.state {
            ReviewState::Draft if current.document.steps.is_empty() => Err(Refusal::NoSteps),
            // No person has thought about it yet, and an agent would only pass it on.
            ReviewState::Draft if current.is_fallback() && by.kind != PrincipalKind::Person => {
                Err(Refusal::Fallback)
            }
            ReviewState::Draft => Ok(vec![ReviewEvent::DraftProposed {
                version: current.number,
                by: by.clone(),
            }]),
            ReviewState::Expired => self.next_version(&current.document, current.digest, by, false),
            ReviewState::Deleted => Err(Refusal::Deleted),
            ReviewState::Proposed
            | ReviewState::Approved
            | ReviewState::Rejected
            | ReviewState::NeedsReview
            | ReviewState::ChangesRequested => Err(Refusal::NotADraft(self.state.status())),
        }
    }

    /// A draft that is edited stays a draft; everything else is proposed by being edited.
    pub(super) fn decide_edit(&self, revision: &Revision) -> Result<Vec<ReviewEvent>, Refusal> {
        let Revision {
            based_on,
            document,
            digest,
            by,
            reason,
            restored_from,
            planning,
        } = revision;
        let current = self.current();
        if self.state == ReviewState::Deleted {
            return Err(Refusal::Deleted);
        }
        if *based_on != current.number {
            return Err(Refusal::Conflict {
                based_on: *based_on,
                current: current.number,
            });
        }
        if let Some(length) = reason
            .as_ref()
            .map(String::len)
            .filter(|&length| length > Self::MAX_REASON)
        {
            return Err(Refusal::ReasonTooLong(length));
        }
        if *current.document == **document {
            return Ok(Vec::new());
        }
        let draft = self.state == ReviewState::Draft;
        let mut events = self.next_version(document, *digest, by, draft)?;
        for event in &mut events {
            if let ReviewEvent::PlanProposed {
                reason: why,
                restored_from: earlier,
                ..
            } = event
            {
                (*why, *earlier) = (reason.clone(), *restored_from);
            }
        }
        let events = events
            .into_iter()
            .map(|event| event.planned(planning.clone()))
            .collect();
        Ok(events)
    }

    fn next_version(
        &self,
        document: &Arc<Document>,
        digest: Digest,
        by: &Principal,
        draft: bool,
    ) -> Result<Vec<ReviewEvent>, Refusal> {
        let version = self.current().number + 1;
        if version > Self::MAX_VERSIONS {
            return Err(Refusal::TooManyVersions(Self::MAX_VERSIONS));
        }
        let document = Arc::clone(document);
        let proposed = first_version(document, digest, by.clone(), draft);
        Ok(vec![numbered(proposed, version)])
    }
}

/// The first entry of a plan's journal.
pub(super) fn first_version(
    document: Arc<Document>,
    digest: Digest,
    by: Principal,
    draft: bool,
) -> ReviewEvent {
    ReviewEvent::PlanProposed {
        version: 1,
        document,
        digest,
        by,
        reason: None,
        restored_from: None,
        draft,
        trace: None,
        planning: None,
    }
}

fn numbered(mut event: ReviewEvent, number: u32) -> ReviewEvent {
    if let ReviewEvent::PlanProposed { version, .. } = &mut event {
        *version = number;
    }
    event
}
