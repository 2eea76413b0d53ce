//! What one listener of a plan is sent.

use super::frame::Frame;
use super::hub::Events;
use super::topic::{Mark, Next, Replay, Shared};
use planwright_engine::port::StoreError;
use tokio::sync::watch;

/// Events taken at a time.
const BATCH: usize = 64;

/// A listener's place among the events of a plan.
#[derive(Debug)]
pub(super) struct PlanStream {
    events: Events,
    pub(super) topic: Shared,
    pub(super) marks: watch::Receiver<Mark>,
    /// The last event it was given.
    pub(super) after: u64,
    replay: Option<Replay>,
    /// Events of the replay that were not given yet.
    waiting: std::collections::VecDeque<Frame>,
    /// It once had everything there was.
    caught_up: bool,
}

/// Why a stream cannot go on.
#[derive(Debug)]
pub(super) enum Broken {
    Store(StoreError),
    Damaged,
    /// It was left so far behind that it has to come back.
    Slow,
}

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl PlanStream {
    pub(super) fn new(events: Events, topic: Shared, after: u64) -> Self {
        let marks = topic.marks();
        Self {
            events,
            topic,
            marks,
            after,
            replay: None,
            waiting: std::collections::VecDeque::new(),
            caught_up: false,
        }
    }

    /// The next events; none if there are no more at this moment.
    pub(super) async fn next(&mut self) -> Result<Vec<Frame>, Broken> {
        let frames = loop {
            if !self.waiting.is_empty() {
                let most = self.waiting.len().min(BATCH);
                break self.waiting.drain(..most).collect();
            }
            match self.topic.after(self.after, BATCH) {
                Next::Damaged => return Err(Broken::Damaged),
                Next::Frames(frames) => {
                    self.replay = None;
                    break frames;
                }
                Next::Older if self.caught_up => return Err(Broken::Slow),
                Next::Older => self.read_older().await?,
            }
        };
        match frames.last() {
            Some(last) => self.after = last.seq(),
            None => self.caught_up = true,
        }
        Ok(frames)
    }

    async fn read_older(&mut self) -> Result<(), Broken> {
        let plan = &self.topic.plan;
        let replay = self
            .replay
            .get_or_insert_with(|| Replay::new(plan.clone(), *self.events.bounds()));
        let page = replay.page(&self.events.journals, self.after).await?;
        let (frames, more) = page.map_err(|_| Broken::Damaged)?;
        if frames.is_empty() && !more {
            // Memory knows more than the journal: something was taken away from it.
            return Err(Broken::Damaged);
        }
        self.waiting.extend(frames);
        Ok(())
    }

    /// Everything was given, and nothing more is to be expected.
    pub(super) fn is_over(&self) -> bool {
        let mark = self.topic.mark();
        mark.damaged || (mark.over && mark.last == self.after)
    }
}
