//! Folding the journals of a plan into its events.

use super::reviews::review_stories;
use super::runs::LiveRun;
use super::story::Story;
use super::{PlanEvent, trace_of_plan};
use crate::id::{PlanId, RunId};
use crate::journal::{DecodeEntryError, Entry, Record, StreamName, decode};
use crate::plan::{Bounds, Document, Finding};
use crate::review::ReviewEvent;
use crate::run::{Corrupt, RunEvent};
use crate::trace::TraceId;
use std::collections::BTreeMap;
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

/// The events of one plan so far. It is given every record of the plan and its runs, in the order
/// of their commits.
#[derive(Debug, Clone)]
pub struct PlanEvents {
    plan: PlanId,
    /// Of the order that brought the current version.
    trace: TraceId,
    bounds: Bounds,
    last: u64,
    versions: BTreeMap<u32, Arc<Document>>,
    runs: BTreeMap<RunId, LiveRun>,
    open_runs: usize,
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
            versions: BTreeMap::new(),
            runs: BTreeMap::new(),
            open_runs: 0,
            deleted: false,
        }
    }

    /// The number of the last event; 0 if there is none yet.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns whether the plan was run and no run of it goes on, or it is deleted.
    pub fn is_over(&self) -> bool {
        self.deleted || (!self.runs.is_empty() && self.open_runs == 0)
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
                let stories = self.review(&entry);
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

    fn review(&mut self, entry: &Entry<ReviewEvent>) -> Vec<Story> {
        if let ReviewEvent::PlanProposed {
            version,
            document,
            trace,
            ..
        } = &entry.event
        {
            self.trace = trace.unwrap_or_else(|| trace_of_plan(&self.plan));
            self.versions.insert(*version, Arc::clone(document));
        }
        self.deleted |= matches!(entry.event, ReviewEvent::PlanDeleted { .. });
        review_stories(&entry.event)
    }

    fn run(&mut self, id: &RunId, entry: &Entry<RunEvent>) -> Result<Vec<Story>, FoldEventsError> {
        if let Some(run) = self.runs.get_mut(id) {
            let was_open = run.is_open();
            let stories = run.tell(entry)?;
            if was_open && !run.is_open() {
                self.open_runs -= 1;
            }
            return Ok(stories);
        }
        let (run, stories) = LiveRun::begin(id, entry, &self.versions, &self.bounds)?;
        self.runs.insert(id.clone(), run);
        self.open_runs += 1;
        Ok(stories)
    }
}
