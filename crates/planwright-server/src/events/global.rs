//! The events of all plans in one order.

use super::frame::Frame;
use super::global_id::GlobalId;
use super::hub::{Events, plan_of};
use super::topic::PAGE;
use planwright_core::event::PlanEvents;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_engine::port::{FeedOf, Placed, Position, StoreError, is_last_feed_page};
use std::collections::{HashMap, HashSet};

/// Plans that are folded at once. With more, all are forgotten and read again when they are needed.
const MAX_PLANS: usize = 256;

/// Records taken at a time.
const BATCH: usize = 64;

/// A listener's place among all events. It folds every plan it meets for itself.
#[derive(Debug)]
pub(super) struct GlobalStream {
    events: Events,
    pub(super) after: GlobalId,
    folds: HashMap<PlanId, (PlanEvents, Position)>,
    damaged: HashSet<PlanId>,
    plans: HashMap<RunId, PlanId>,
    read: Position,
}

impl GlobalStream {
    pub(super) fn new(events: Events, after: GlobalId) -> Self {
        Self {
            events,
            after,
            folds: HashMap::new(),
            damaged: HashSet::new(),
            plans: HashMap::new(),
            read: after.read_from(),
        }
    }

    /// The next events with their ids, and whether there may be more.
    pub(super) async fn next(&mut self) -> Result<(Vec<(GlobalId, Frame)>, bool), StoreError> {
        let page = self
            .events
            .journals
            .feed(&FeedOf::All, self.read, BATCH)
            .await?;
        let mut frames = Vec::new();
        for placed in &page {
            let told = self.told(placed).await?;
            let count = told.len();
            let ids = (0..count).map(|index| GlobalId::of(placed.position, index, count));
            frames.extend(ids.zip(told).filter(|(id, _)| *id > self.after));
            self.read = placed.position;
            self.after = self.after.max(GlobalId::after(placed.position));
        }
        Ok((frames, !is_last_feed_page(&page, BATCH)))
    }

    async fn told(&mut self, placed: &Placed) -> Result<Vec<Frame>, StoreError> {
        let events = self.events.clone();
        let plan = match &placed.stream {
            StreamName::Plan(plan) => Some(plan.clone()),
            StreamName::Run(run) => plan_of(&events, &mut self.plans, run, placed).await,
        };
        let Some(plan) = plan.filter(|plan| !self.damaged.contains(plan)) else {
            return Ok(Vec::new());
        };
        if !self.folds.contains_key(&plan) {
            if self.folds.len() >= MAX_PLANS {
                self.folds.clear();
            }
            self.folds.insert(
                plan.clone(),
                (PlanEvents::new(plan.clone(), *events.bounds()), Position(0)),
            );
        }
        let told = self.catch_up(&plan, placed).await?;
        if told.is_none() {
            tracing::warn!(%plan, "the events of a plan cannot be told");
            self.folds.remove(&plan);
            self.damaged.insert(plan);
        }
        Ok(told.unwrap_or_default())
    }

    /// Folds the plan up to this record and returns what the record means; `None` if it cannot be
    /// told.
    async fn catch_up(
        &mut self,
        plan: &PlanId,
        placed: &Placed,
    ) -> Result<Option<Vec<Frame>>, StoreError> {
        let journals = &self.events.journals;
        let (fold, applied) = self.folds.get_mut(plan).expect("it was put there");
        if applied.0 == 0 {
            let of = FeedOf::Plan(plan.clone());
            'pages: loop {
                let page = journals.feed(&of, *applied, PAGE).await?;
                for earlier in &page {
                    if earlier.position >= placed.position {
                        break 'pages;
                    }
                    journals.complete_fold(fold, earlier).await?;
                    if fold.push(&earlier.stream, &earlier.record).is_err() {
                        return Ok(None);
                    }
                    *applied = earlier.position;
                }
                if is_last_feed_page(&page, PAGE) {
                    break;
                }
            }
        }
        *applied = placed.position;
        journals.complete_fold(fold, placed).await?;
        let told = fold.push(&placed.stream, &placed.record);
        Ok(told
            .ok()
            .map(|told| told.into_iter().map(Frame::new).collect()))
    }
}
