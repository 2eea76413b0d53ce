//! A plan that has a listener.

use super::frame::Frame;
use super::options::EventsOptions;
use planwright_core::event::PlanEvents;
use planwright_core::id::PlanId;
use planwright_core::plan::{Bounds, Document};
use planwright_engine::Journals;
use planwright_engine::port::{FeedOf, Placed, Position, StoreError, is_last_feed_page};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;

/// Records read at a time.
pub(super) const PAGE: usize = 500;

/// Records that may arrive while the plan is still being read, and their bytes. With more, reading goes
/// on instead.
const MAX_PENDING: usize = 4_096;
const MAX_PENDING_BYTES: usize = 4 << 20;

/// How far the events of a plan are. All that listeners are woken with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// The number of the last event.
    pub(super) last: u64,
    /// The plan was run and no run goes on, or it is deleted.
    pub(super) over: bool,
    /// Nothing more can be told.
    pub(super) damaged: bool,
}

/// The folded events of one plan, and the latest of them.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) plan: PlanId,
    state: Mutex<State>,
    loaded: OnceCell<()>,
    marks: watch::Sender<Mark>,
    pub(super) progress: super::progress::Latest,
}

#[derive(Debug)]
enum State {
    /// What arrives is put aside until everything before it was read.
    Loading {
        pending: Vec<Placed>,
        bytes: usize,
        overflown: bool,
    },
    Live(Box<Live>),
    Damaged,
}

#[derive(Debug)]
struct Live {
    fold: PlanEvents,
    applied: Position,
    kept: VecDeque<Frame>,
    kept_bytes: usize,
    idle_since: Instant,
}

/// What comes after a number.
#[derive(Debug)]
pub(super) enum Next {
    Frames(Vec<Frame>),
    /// It is not kept in memory any more.
    Older,
    Damaged,
}

impl Topic {
    pub(super) fn new(plan: PlanId) -> Self {
        Self {
            plan,
            state: Mutex::new(State::Loading {
                pending: Vec::new(),
                bytes: 0,
                overflown: false,
            }),
            loaded: OnceCell::new(),
            marks: watch::Sender::new(Mark::default()),
            progress: super::progress::Latest::default(),
        }
    }

    pub(super) fn marks(&self) -> watch::Receiver<Mark> {
        self.marks.subscribe()
    }

    pub(super) fn mark(&self) -> Mark {
        *self.marks.borrow()
    }

    /// Reads the plan once, regardless of which listener asks first.
    pub(super) async fn load(
        &self,
        journals: &Journals,
        bounds: &Bounds,
        options: &EventsOptions,
    ) -> Result<(), StoreError> {
        self.loaded
            .get_or_try_init(|| self.read(journals, bounds, options))
            .await
            .copied()
    }

    async fn read(
        &self,
        journals: &Journals,
        bounds: &Bounds,
        options: &EventsOptions,
    ) -> Result<(), StoreError> {
        let of = FeedOf::Plan(self.plan.clone());
        let mut live = Live::new(self.plan.clone(), *bounds);
        loop {
            let page = journals.feed(&of, live.applied, PAGE).await?;
            for placed in &page {
                journals.complete_fold(&mut live.fold, placed).await?;
                if let Err(Damaged) = live.push(placed, options) {
                    self.become_damaged();
                    return Ok(());
                }
            }
            if !is_last_feed_page(&page, PAGE) {
                continue;
            }
            match self.take_over(live, options) {
                Some(unfinished) => live = unfinished,
                None => return Ok(()),
            }
        }
    }

    /// Everything was read: what arrived meanwhile is added. Returns the state if there was too
    /// much of it.
    fn take_over(&self, mut live: Live, options: &EventsOptions) -> Option<Live> {
        let mut state = self.state();
        if let State::Loading {
            pending,
            bytes,
            overflown,
        } = &mut *state
        {
            let pending = std::mem::take(pending);
            *bytes = 0;
            if std::mem::take(overflown) {
                return Some(live);
            }
            for placed in &pending {
                // A version has to be read for it first: the rest is read there, too.
                if live.missing_version(placed).is_some() {
                    return Some(live);
                }
                if live.push(placed, options).is_err() {
                    drop(state);
                    self.become_damaged();
                    return None;
                }
            }
        }
        let mark = live.mark();
        *state = State::Live(Box::new(live));
        drop(state);
        self.marks.send_replace(mark);
        None
    }

    /// The version whose content has to be given with [`Topic::give_version`] before this record is
    /// pushed, if there is one.
    pub(super) fn missing_version(&self, placed: &Placed) -> Option<u32> {
        match &*self.state() {
            State::Live(live) => live.missing_version(placed),
            State::Loading { .. } | State::Damaged => None,
        }
    }

    pub(super) fn give_version(&self, version: u32, document: Arc<Document>) {
        if let State::Live(live) = &mut *self.state() {
            live.fold.give_version(version, document);
        }
    }

    /// Notes a record of this plan. Records it knows already change nothing.
    pub(super) fn push(&self, placed: &Placed, options: &EventsOptions) {
        let mut state = self.state();
        let mark = match &mut *state {
            State::Loading {
                pending,
                bytes,
                overflown,
            } => {
                if pending.len() < MAX_PENDING && *bytes < MAX_PENDING_BYTES {
                    *bytes += placed.record.body.len();
                    pending.push(placed.clone());
                } else {
                    *overflown = true;
                }
                return;
            }
            State::Damaged => return,
            State::Live(live) => live.push(placed, options).map(|()| live.mark()),
        };
        drop(state);
        match mark {
            Ok(mark) => {
                self.marks
                    .send_if_modified(|last| std::mem::replace(last, mark) != mark);
            }
            Err(Damaged) => self.become_damaged(),
        }
    }

    fn become_damaged(&self) {
        *self.state() = State::Damaged;
        self.marks.send_modify(|mark| mark.damaged = true);
    }

    /// Up to `most` events that follow the one with this number.
    pub(super) fn after(&self, seq: u64, most: usize) -> Next {
        let state = self.state();
        match &*state {
            State::Live(live) => live.after(seq, most),
            State::Damaged => Next::Damaged,
            State::Loading { .. } => Next::Frames(Vec::new()),
        }
    }

    /// Returns whether nothing happened here since then.
    pub(super) fn is_idle_since(&self, then: Instant) -> bool {
        match &*self.state() {
            State::Live(live) => live.idle_since < then,
            State::Damaged => true,
            State::Loading { .. } => false,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The journal of the plan cannot be told.
pub(super) struct Damaged;

impl Live {
    fn new(plan: PlanId, bounds: Bounds) -> Self {
        Self {
            fold: PlanEvents::new(plan, bounds),
            applied: Position(0),
            kept: VecDeque::new(),
            kept_bytes: 0,
            idle_since: Instant::now(),
        }
    }

    fn mark(&self) -> Mark {
        Mark {
            last: self.fold.last(),
            over: self.fold.is_over(),
            damaged: false,
        }
    }

    fn missing_version(&self, placed: &Placed) -> Option<u32> {
        if placed.position <= self.applied {
            return None;
        }
        self.fold.missing_version(&placed.stream, &placed.record)
    }

    fn push(&mut self, placed: &Placed, options: &EventsOptions) -> Result<(), Damaged> {
        if placed.position <= self.applied {
            return Ok(());
        }
        let events = self.fold.push(&placed.stream, &placed.record).map_err(|error| {
            tracing::warn!(stream = %placed.stream, %error, "the events of a plan cannot be told");
            Damaged
        })?;
        self.applied = placed.position;
        self.idle_since = Instant::now();
        for frame in events.into_iter().map(Frame::new) {
            self.kept_bytes += frame.bytes();
            self.kept.push_back(frame);
        }
        while self.kept.len() > options.kept_events || self.kept_bytes > options.kept_bytes {
            let Some(oldest) = self.kept.pop_front() else {
                break;
            };
            self.kept_bytes -= oldest.bytes();
        }
        Ok(())
    }

    fn after(&self, seq: u64, most: usize) -> Next {
        let first = self
            .kept
            .front()
            .map_or_else(|| self.fold.last() + 1, Frame::seq);
        // A client names any number.
        let next = seq.saturating_add(1);
        if next < first {
            return Next::Older;
        }
        let skip = usize::try_from(next - first).unwrap_or(usize::MAX);
        Next::Frames(self.kept.iter().skip(skip).take(most).cloned().collect())
    }
}

/// Reads the events of a plan from the journal, for a listener that is further back than memory
/// goes.
#[derive(Debug)]
pub(super) struct Replay {
    of: FeedOf,
    fold: PlanEvents,
    applied: Position,
}

impl Replay {
    pub(super) fn new(plan: PlanId, bounds: Bounds) -> Self {
        let fold = PlanEvents::new(plan.clone(), bounds);
        Self {
            of: FeedOf::Plan(plan),
            fold,
            applied: Position(0),
        }
    }

    /// The events above `seq` in the next page of the journal, and whether there may be more pages.
    pub(super) async fn page(
        &mut self,
        journals: &Journals,
        seq: u64,
    ) -> Result<Result<(Vec<Frame>, bool), Damaged>, StoreError> {
        let page = journals.feed(&self.of, self.applied, PAGE).await?;
        let mut frames = Vec::new();
        for placed in &page {
            journals.complete_fold(&mut self.fold, placed).await?;
            let Ok(events) = self.fold.push(&placed.stream, &placed.record) else {
                return Ok(Err(Damaged));
            };
            self.applied = placed.position;
            frames.extend(
                events
                    .into_iter()
                    .filter(|event| event.seq > seq)
                    .map(Frame::new),
            );
        }
        Ok(Ok((frames, !is_last_feed_page(&page, PAGE))))
    }
}

/// Topics are shared by the hub and by those who listen.
pub(super) type Shared = Arc<Topic>;
