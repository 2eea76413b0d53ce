//! Folding the journals of a plan into its events.

use super::reviews::review_stories;
use super::runs::LiveRun;
use super::story::Story;
use super::{PlanEvent, StepDetails, trace_of_plan};
use crate::id::{PlanId, RunId};
use crate::journal::{DecodeEntryError, Entry, Record, StreamName, decode};
use crate::plan::{Bounds, Document, Finding};
use crate::review::ReviewEvent;
use crate::run::{Corrupt, RunEvent};
use crate::trace::TraceId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Why the events of a plan cannot be told. What was told before stands.
#[derive(Debug, thiserror::Error)]
pub enum FoldEventsError {
    /// A record cannot be read.
    #[error(transparent)]
    Decode(#[from] DecodeEntryError),
    /// A journal says something that cannot have happened.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    /// A version in the journal is not valid.
    #[error("the plan in the journal is not valid: {}", .0.first().map_or("", |finding| finding.message.as_str()))]
    Plan(Vec<Finding>),
    /// A run names a version that the plan does not have.
    #[error("run {0} runs version {1}, which the plan does not have")]
    NoSuchVersion(RunId, u32),
    /// A record belongs to another plan.
    #[error("the record of {0} belongs to another plan")]
    OtherPlan(StreamName),
}

/// Bytes of versions, as records, whose content a fold keeps. Of a plan with a long history few versions
/// are ever run again.
const KEPT_BYTES: usize = 256 << 10;

/// The events of one plan so far. It is given every record of the plan and its runs, in the order
/// of their commits, and the content of versions that it does not keep itself: see
/// [`PlanEvents::missing_version`].
#[derive(Debug, Clone)]
pub struct PlanEvents {
    plan: PlanId,
    /// Of the order that brought the current version.
    trace: TraceId,
    bounds: Bounds,
    last: u64,
    versions: KeptVersions,
    runs: BTreeMap<RunId, LiveRun>,
    /// Those of the run that ended last: the next one often has the same.
    ended_steps: Arc<[StepDetails]>,
    open_runs: usize,
    /// A run ended because its plan was adjusted, and the run that goes on has not begun.
    is_adjusted: bool,
    deleted: bool,
}

impl PlanEvents {
    /// Begins with a plan of which nothing was read yet.
    pub fn new(plan: PlanId, bounds: Bounds) -> Self {
        Self {
            trace: trace_of_plan(&plan),
            plan,
            bounds,
            last: 0,
            versions: KeptVersions::default(),
            runs: BTreeMap::new(),
            ended_steps: Arc::default(),
            open_runs: 0,
            is_adjusted: false,
            deleted: false,
        }
    }

    /// The plan whose events these are.
    pub fn plan(&self) -> &PlanId {
        &self.plan
    }

    /// The version that the run of this record begins with, if its content is not kept. It has to be
    /// given with [`PlanEvents::give_version`] before the record is pushed.
    pub fn missing_version(&self, stream: &StreamName, record: &Record) -> Option<u32> {
        let StreamName::Run(id) = stream else {
            return None;
        };
        if self.runs.contains_key(id) {
            return None;
        }
        // A record that cannot be read is refused when it is pushed.
        let RunEvent::RunStarted {
            version,
            document: None,
            ..
        } = decode::<RunEvent>(record).ok()?.event
        else {
            return None;
        };
        Some(version).filter(|version| self.versions.find(*version).is_none())
    }

    /// Gives the content of a version to the run that begins with the next record.
    pub fn give_version(&mut self, version: u32, document: Arc<Document>) {
        self.versions.given = Some((version, document));
    }

    /// Bytes of the versions that are kept, as records.
    pub fn kept_bytes(&self) -> usize {
        self.versions.bytes
    }

    /// The number of the last event; 0 if there is none yet.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns whether the plan was run and no run of it goes on, or it is deleted. An adjusted plan
    /// goes on with its next version, unless that is rejected or put away.
    pub fn is_over(&self) -> bool {
        let is_idle = !self.runs.is_empty() && self.open_runs == 0;
        self.deleted || is_idle && !self.is_adjusted
    }

    /// Returns whether anything was ever told about the plan.
    pub fn is_empty(&self) -> bool {
        self.last == 0
    }

    /// The events that one record means, in order.
    pub fn push(
        &mut self,
        stream: &StreamName,
        record: &Record,
    ) -> Result<Vec<PlanEvent>, FoldEventsError> {
        let stories = match stream {
            StreamName::Plan(plan) if *plan == self.plan => {
                let entry = decode::<ReviewEvent>(record)?;
                let stories = self.review(&entry, record.body.len());
                stories
                    .into_iter()
                    .map(|story| (story, entry.at, self.trace, None))
                    .collect::<Vec<_>>()
            }
            StreamName::Plan(_) => return Err(FoldEventsError::OtherPlan(stream.clone())),
            StreamName::Run(id) => {
                let entry = decode::<RunEvent>(record)?;
                let stories = self.run(id, &entry)?;
                let trace = self.runs[id].trace;
                stories
                    .into_iter()
                    .map(|story| (story, entry.at, trace, Some(id.clone())))
                    .collect()
            }
        };
        let number = |(story, at, trace, run): (Story, _, _, Option<RunId>)| {
            self.last += 1;
            story.into_event(self.plan.clone(), run, trace, at, self.last)
        };
        Ok(stories.into_iter().map(number).collect())
    }

    fn review(&mut self, entry: &Entry<ReviewEvent>, bytes: usize) -> Vec<Story> {
        if let ReviewEvent::PlanProposed {
            version,
            document,
            trace,
            ..
        } = &entry.event
        {
            self.trace = trace.unwrap_or_else(|| trace_of_plan(&self.plan));
            self.versions.keep(*version, document, bytes);
        }
        self.deleted |= matches!(entry.event, ReviewEvent::PlanDeleted { .. });
        self.is_adjusted &= !matches!(
            entry.event,
            ReviewEvent::PlanRejected { .. }
                | ReviewEvent::PlanExpired { .. }
                | ReviewEvent::PlanArchived { .. }
        );
        review_stories(&entry.event)
    }

    fn run(&mut self, id: &RunId, entry: &Entry<RunEvent>) -> Result<Vec<Story>, FoldEventsError> {
        if let Some(run) = self.runs.get_mut(id) {
            let was_open = run.is_open();
            let stories = run.tell(entry)?;
            self.is_adjusted |= matches!(entry.event, RunEvent::RunAdjusted { .. });
            if was_open && !run.is_open() {
                self.open_runs -= 1;
                run.share_steps(&mut self.ended_steps);
            }
            return Ok(stories);
        }
        let (run, stories) = LiveRun::begin(id, entry, (&self.versions, self.trace), &self.bounds)?;
        self.versions.given = None;
        self.runs.insert(id.clone(), run);
        self.is_adjusted = false;
        self.open_runs += 1;
        Ok(stories)
    }
}

/// The latest versions, as far as there is room for them.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptVersions {
    /// Oldest first, each with the bytes of its record.
    kept: VecDeque<(u32, Arc<Document>, usize)>,
    bytes: usize,
    /// One that was read again.
    given: Option<(u32, Arc<Document>)>,
}

impl KeptVersions {
    fn keep(&mut self, version: u32, document: &Arc<Document>, bytes: usize) {
        self.kept.push_back((version, Arc::clone(document), bytes));
        self.bytes += bytes;
        while self.bytes > KEPT_BYTES
            && let Some((_, _, bytes)) = self.kept.pop_front()
        {
            self.bytes -= bytes;
        }
    }

    pub(super) fn find(&self, version: u32) -> Option<&Arc<Document>> {
        let given = self.given.iter();
        let given = given.map(|(number, document)| (number, document));
        let kept = self.kept.iter().rev();
        let kept = kept.map(|(number, document, _)| (number, document));
        let mut all = given.chain(kept);
        all.find(|(number, _)| **number == version)
            .map(|(_, document)| document)
    }
}
