//! Versions of a plan, and the entries that bring them.

use super::{PlanningRecord, Review, ReviewEvent, ReviewRefusal, ReviewStage, ReviewState};
use crate::digest::Digest;
use crate::plan::Document;
use crate::principal::{Principal, PrincipalKind};
use crate::time::Timestamp;
use crate::trace::TraceId;
use std::ops::Deref;
use std::sync::Arc;

/// One immutable version of the document.
#[derive(Debug, Clone)]
pub struct Version {
    /// The facts of it that need no content.
    pub summary: VersionSummary,
    /// The content.
    pub document: Arc<Document>,
}

/// What a review remembers of every version. The content of the earlier ones stays in the journal: a
/// plan may have thousands of them, and few are ever looked at again.
#[derive(Debug, Clone)]
pub struct VersionSummary {
    /// Counted from 1.
    pub number: u32,
    /// The number of the entry that holds the content.
    pub seq: u64,
    /// The title of the plan in this version.
    pub title: Option<String>,
    /// The number of its steps.
    pub steps: usize,
    /// The digest of what would run, with the tools known when it was written.
    pub digest: Digest,
    /// The author.
    pub by: Principal,
    /// The time at which it was written down.
    pub at: Timestamp,
    /// The reason for the change, in the author's words.
    pub reason: Option<String>,
    /// The earlier version whose content this one has again.
    pub restored_from: Option<u32>,
    /// It was written as a draft, and not put forward at once.
    pub draft: bool,
    /// The trace of the order that brought it, if it came with one.
    pub trace: Option<TraceId>,
    /// The record of its planning, if a model or a rule of thumb wrote it.
    pub planning: Option<Box<PlanningRecord>>,
}

impl Deref for Version {
    type Target = VersionSummary;

    fn deref(&self) -> &VersionSummary {
        &self.summary
    }
}

impl VersionSummary {
    /// Returns true if neither a model nor a person wrote it: a draft that was put together from
    /// the words of its goal.
    pub fn is_fallback(&self) -> bool {
        self.planning
            .as_ref()
            .is_some_and(|planning| planning.fallback)
    }
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

    /// Checks that a reason is short enough to be kept.
    pub(super) fn check_reason(reason: Option<&str>) -> Result<(), ReviewRefusal> {
        match reason.map(str::len) {
            Some(length) if length > Self::MAX_REASON => Err(ReviewRefusal::ReasonTooLong(length)),
            Some(_) | None => Ok(()),
        }
    }

    /// A plan that was rejected too often waits for a person: a new version of a program does not
    /// take it out of their hands.
    pub(super) fn check_may_bring_back(&self, by: &Principal) -> Result<(), ReviewRefusal> {
        let waits = matches!(
            self.state,
            ReviewState::Active(ReviewStage::NeedsReview)
                | ReviewState::Archived(ReviewStage::NeedsReview)
        );
        if waits && by.kind != PrincipalKind::Person {
            return Err(ReviewRefusal::NeedsPerson);
        }
        Ok(())
    }

    /// The entry of the next version.
    pub(super) fn next_version(
        &self,
        document: &Arc<Document>,
        digest: Digest,
        by: &Principal,
        draft: bool,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        let version = self.current().number + 1;
        if version > Self::MAX_VERSIONS {
            return Err(ReviewRefusal::TooManyVersions(Self::MAX_VERSIONS));
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
