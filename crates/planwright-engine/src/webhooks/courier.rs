//! Carries notices to one endpoint: reads the feed, keeps what is to be told, sends it, and tries
//! again.

use super::belonging::{Children, told_of_children};
use super::endpoint::{SendNoticeError, Webhook};
use super::notice::{Notice, kinds, notices_of};
use super::schedule::delay;
use crate::engine::Engine;
use crate::journal::feed::end_of_feed;
use crate::port::{
    Delivery, DeliveryState, FeedOf, Outbox, Position, Settled, Store, StoreError,
    is_last_feed_page,
};
use planwright_core::time::Timestamp;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The number of records that are looked at in one go.
const PAGE: usize = 200;
/// With so many waiting, the feed is read no further: the journal keeps the rest.
const MAX_WAITING: u64 = 10_000;
/// A delivery that was taken is left alone by others for this long. Sending takes less.
const TAKEN_FOR: Duration = Duration::from_secs(30);
/// The store is looked at this often even if nothing seems to change.
const SLOW_LOOK: Duration = Duration::from_secs(60);
/// A store that failed is asked again after this long.
const AFTER_TROUBLE: Duration = Duration::from_secs(5);
/// The time an endpoint that fails again and again is left alone at most before anything new is
/// sent to it.
const LONGEST_REST: Duration = Duration::from_secs(60);
/// The most characters of an error that are kept.
const MAX_ERROR_CHARS: usize = 300;

/// The outcome of an attempt to deliver a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The endpoint took it.
    Delivered,
    /// The endpoint did not take it, and is asked again.
    Failed,
    /// The endpoint wants fewer notices.
    Throttled,
    /// The endpoint is not there any more.
    Gone,
    /// The notice is given up.
    Dead,
}

impl DeliveryOutcome {
    /// Returns the word that figures are labelled with.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Throttled => "throttled",
            Self::Gone => "gone",
            Self::Dead => "dead",
        }
    }
}

/// Told what came of each attempt, for figures.
pub trait CourierWatch: Send + Sync + fmt::Debug {
    /// Counts one attempt to deliver to this endpoint.
    fn count_attempt(&self, endpoint: &str, outcome: DeliveryOutcome);
}

/// A watch that ignores every attempt.
impl CourierWatch for () {
    fn count_attempt(&self, _endpoint: &str, _outcome: DeliveryOutcome) {}
}

/// Carries the notices of one endpoint. Several processes may have one each: nothing is lost, and
/// what is sent twice has the same id.
#[derive(Debug)]
pub struct Courier {
    engine: Engine,
    outbox: Arc<dyn Outbox>,
    webhook: Arc<dyn Webhook>,
    watch: Arc<dyn CourierWatch>,
    /// Failures since the last success.
    failures: u32,
    rests_until: Option<Duration>,
    /// The time of day when it began, and what the clock that cannot be set said then. What is due is
    /// counted from there: a clock that is set neither hurries a notice nor holds it back.
    began: (Timestamp, Duration),
}

impl Courier {
    /// Makes a courier for the endpoint behind this webhook.
    pub fn new(engine: Engine, outbox: Arc<dyn Outbox>, webhook: Arc<dyn Webhook>) -> Self {
        let clock = &engine.context.ports.clock;
        let began = (clock.now(), clock.uptime());
        Self {
            engine,
            outbox,
            webhook,
            watch: Arc::new(()),
            failures: 0,
            rests_until: None,
            began,
        }
    }

    /// Sets the observer that counts attempts.
    #[must_use]
    pub fn watched_by(mut self, watch: Arc<dyn CourierWatch>) -> Self {
        self.watch = watch;
        self
    }

    /// Carries until it is told to stop. A store that fails is asked again later.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut changes = self.store().changes();
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let mut wake = self.now();
            if let Err(error) = self.carry(&stop).await {
                tracing::warn!(webhook = self.webhook.name(), %error, "notices wait: the store failed");
                wake = self.now().plus(AFTER_TROUBLE);
            }
            let wake = self.wake_at().await.max(wake);
            let clock = Arc::clone(&self.engine.context.ports.clock);
            tokio::select! {
                () = stop.cancelled() => return,
                changed = changes.changed() => {
                    if changed.is_err() {
                        tokio::time::sleep(SLOW_LOOK).await;
                    }
                }
                () = clock.sleep(wake.since(self.now())) => {}
            }
        }
    }

    /// Sends everything that is due now, once.
    pub async fn carry(&mut self, stop: &CancellationToken) -> Result<(), StoreError> {
        loop {
            let collected = self.collect().await?;
            if collected.disabled {
                return Ok(());
            }
            let sent = self.send_due(stop).await?;
            if stop.is_cancelled() || !sent && !collected.more {
                return Ok(());
            }
        }
    }

    fn store(&self) -> &Arc<dyn Store> {
        &self.engine.context.ports.store
    }

    /// Returns the time of day, as it would be if the clock had not been set since it began.
    fn now(&self) -> Timestamp {
        let (began_at, uptime) = self.began;
        let passed = self.engine.context.ports.clock.uptime();
        began_at.plus(passed.saturating_sub(uptime))
    }

    fn awake(&self) -> Duration {
        self.engine.context.ports.clock.awake()
    }

    async fn wake_at(&self) -> Timestamp {
        let slow = self.now().plus(SLOW_LOOK);
        if let Some(rests_until) = self.rests_until {
            return self.now().plus(rests_until.saturating_sub(self.awake()));
        }
        match self.outbox.next_at(self.webhook.name()).await {
            Ok(Some(next_at)) => next_at.min(slow),
            Ok(None) | Err(_) => slow,
        }
    }

    /// Reads one page of the feed and keeps what the endpoint wants to be told.
    async fn collect(&self) -> Result<Collected, StoreError> {
        let name = self.webhook.name();
        let Some(standing) = self.outbox.standing(name).await? else {
            // A new endpoint is told what happens from here on, not the whole past.
            let end = end_of_feed(&**self.store()).await?;
            if self
                .outbox
                .advance(name, None, end, Vec::new(), self.now())
                .await?
            {
                tracing::info!(
                    webhook = name,
                    position = end.0,
                    "the feed of this webhook begins here"
                );
            }
            return Ok(Collected {
                disabled: false,
                more: true,
            });
        };
        if standing.disabled.is_some() {
            return Ok(Collected {
                disabled: true,
                more: false,
            });
        }
        if self.outbox.count(name, DeliveryState::Waiting).await? >= MAX_WAITING {
            return Ok(Collected {
                disabled: false,
                more: false,
            });
        }
        let page = self
            .store()
            .feed(&FeedOf::All, standing.cursor, PAGE)
            .await?;
        let Some(last) = page.last().map(|placed| placed.position) else {
            return Ok(Collected {
                disabled: false,
                more: false,
            });
        };
        let mut found = Vec::new();
        let mut children = Children::default();
        for placed in &page {
            for (index, kind) in kinds(&**self.store(), placed, &mut children).await? {
                if self.webhook.wants(kind) {
                    found.push((placed.position, index));
                }
            }
        }
        // If another process was faster, the rest is found with the next look.
        let moved = self
            .outbox
            .advance(name, Some(standing.cursor), last, found, self.now())
            .await?;
        Ok(Collected {
            disabled: false,
            more: !moved || !is_last_feed_page(&page, PAGE),
        })
    }

    /// Sends what is due, oldest first, until nothing is or the endpoint needs rest. Returns
    /// whether anything was sent.
    async fn send_due(&mut self, stop: &CancellationToken) -> Result<bool, StoreError> {
        let mut sent = false;
        loop {
            let now = self.now();
            let awake = self.awake();
            if self.rests_until.is_some_and(|until| awake < until) || stop.is_cancelled() {
                return Ok(sent);
            }
            self.rests_until = None;
            let until = now.plus(TAKEN_FOR);
            let Some(delivery) = self.outbox.take(self.webhook.name(), now, until).await? else {
                return Ok(sent);
            };
            self.deliver(delivery).await?;
            sent = true;
        }
    }

    async fn deliver(&mut self, delivery: Delivery) -> Result<(), StoreError> {
        let before = Position(delivery.position.0.saturating_sub(1));
        let page = self.store().feed(&FeedOf::All, before, 1).await?;
        let notices = match page
            .first()
            .filter(|placed| placed.position == delivery.position)
        {
            Some(placed) => notices_of(&**self.store(), placed).await?,
            None => Vec::new(),
        };
        let index = usize::try_from(delivery.index).unwrap_or(usize::MAX);
        // What this version cannot read, or what the operator no longer wants to tell, is
        // forgotten.
        let Some(notice) = notices.get(index).filter(|notice| self.tells(notice)) else {
            return self
                .outbox
                .settle(self.webhook.name(), &delivery, Settled::Done)
                .await;
        };
        let answer = self.webhook.send(notice).await;
        self.settle(delivery, answer).await
    }

    /// Returns whether the endpoint wants to be told, and this is told at all: an earlier version
    /// told more of child runs.
    fn tells(&self, notice: &Notice) -> bool {
        let told = notice.about.parent.is_none() || told_of_children(notice.kind);
        told && self.webhook.wants(notice.kind)
    }

    async fn settle(
        &mut self,
        delivery: Delivery,
        answer: Result<(), SendNoticeError>,
    ) -> Result<(), StoreError> {
        let name = self.webhook.name().to_owned();
        let (error, retry_after, throttled) = match answer {
            Ok(()) => {
                self.failures = 0;
                self.watch.count_attempt(&name, DeliveryOutcome::Delivered);
                return self.outbox.settle(&name, &delivery, Settled::Done).await;
            }
            Err(error @ SendNoticeError::Gone) => {
                self.watch.count_attempt(&name, DeliveryOutcome::Gone);
                tracing::warn!(webhook = name, %error, "the webhook is disabled");
                // Disabled first: it is due at once when the operator enables the endpoint again.
                self.outbox.disable(&name, &error.to_string()).await?;
                let again = Settled::Again {
                    at: self.now(),
                    error: error.to_string(),
                };
                return self.outbox.settle(&name, &delivery, again).await;
            }
            Err(SendNoticeError::Throttled {
                reason,
                retry_after,
            }) => (reason, retry_after, true),
            Err(SendNoticeError::Failed {
                reason,
                retry_after,
            }) => (reason, retry_after, false),
        };
        let outcome = match throttled {
            true => DeliveryOutcome::Throttled,
            false => DeliveryOutcome::Failed,
        };
        self.watch.count_attempt(&name, outcome);
        self.failures = self.failures.saturating_add(1);
        let error: String = error.chars().take(MAX_ERROR_CHARS).collect();
        let entropy = self.engine.context.ports.ids.entropy();
        // One instant for both, so that what was throttled is the first to be sent again.
        let now = self.now();
        let again_at = delay(delivery.attempts, retry_after, entropy).map(|pause| now.plus(pause));
        self.rest(now, again_at.filter(|_| throttled || retry_after.is_some()));
        let settled = match again_at {
            Some(at) => {
                tracing::info!(
                    webhook = name,
                    error,
                    attempts = delivery.attempts,
                    "a notice did not arrive"
                );
                Settled::Again { at, error }
            }
            None => {
                self.watch.count_attempt(&name, DeliveryOutcome::Dead);
                tracing::warn!(
                    webhook = name,
                    error,
                    "a notice is given up: `planwright webhooks retry` sends it again"
                );
                Settled::Dead { error }
            }
        };
        self.outbox.settle(&name, &delivery, settled).await
    }

    /// Leaves the endpoint alone: as long as it asked, or longer and longer while it fails.
    fn rest(&mut self, now: Timestamp, asked: Option<Timestamp>) {
        let growing = Duration::from_secs(1 << self.failures.min(10)).min(LONGEST_REST);
        let asked = asked.map_or(Duration::ZERO, |asked| asked.since(now));
        self.rests_until = Some(self.awake() + asked.max(growing));
    }
}

struct Collected {
    disabled: bool,
    /// The feed may go on.
    more: bool,
}
