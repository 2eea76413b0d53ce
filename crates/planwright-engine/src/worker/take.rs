//! Taking offers: as many at once as the worker was told, until it is told to stop.

use super::carry_out::{CarriedOut, carry_out};
use crate::context::{Context, Demand};
use crate::port::{
    Broker, BrokerError, ClaimedOffer, NoticeEnd, Notices, OfferKey, Offers, OwnerId,
    PublishedTool, ReceivedNotice, StoreError, WantedOffers, WorkerRecord,
};
use planwright_core::digest::Digest;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often the store is looked at if nothing is heard from it.
const SLOW_LOOK: Duration = Duration::from_secs(2);
/// As [`SLOW_LOOK`], where a broker tells.
const LOOK_BESIDE_BROKER: Duration = Duration::from_secs(5);
const FAILED_PAUSE: Duration = Duration::from_secs(1);
const BROKER_PAUSE: Duration = Duration::from_secs(3);
/// How often it is looked whether the tools have changed.
const TOOLS_PAUSE: Duration = Duration::from_secs(10);

/// The options of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Its capabilities.
    pub capabilities: Vec<String>,
    /// Offers that it carries out at once.
    pub concurrency: usize,
    /// Time until a claim ends without being renewed.
    pub claim_ttl: Duration,
    /// The machine it runs on.
    pub host: String,
    /// The version of its program.
    pub version: String,
}

/// Why an engine cannot be a worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The store has no offers.
    #[error("this store has no offers to workers")]
    NoOffers,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A worker that takes offers in the background.
#[derive(Debug)]
pub struct Worker {
    offers: Arc<dyn Offers>,
    id: OwnerId,
    stopping: CancellationToken,
    task: JoinHandle<()>,
    doing: watch::Receiver<usize>,
}

impl Worker {
    /// Makes the worker known and begins to take offers.
    pub(super) async fn start(
        context: Arc<Context>,
        options: WorkerOptions,
    ) -> Result<Self, WorkerError> {
        let offers = context.ports.offers.clone().ok_or(WorkerError::NoOffers)?;
        let record = record(&context, &options);
        offers.register_worker(record.clone()).await?;
        let stopping = CancellationToken::new();
        let (count, doing) = watch::channel(0);
        let taking = Taking {
            news: offers.offer_news(),
            offers: Arc::clone(&offers),
            id: record.id.clone(),
            published: digests(&record),
            options,
            context,
            stopping: stopping.clone(),
            tasks: JoinSet::new(),
            count,
            notices: None,
            broker_at: Instant::now(),
            tools_at: Instant::now(),
        };
        Ok(Self {
            offers,
            id: record.id,
            stopping,
            task: tokio::spawn(taking.run()),
            doing,
        })
    }

    /// The number of offers that it carries out now.
    pub fn doing(&self) -> usize {
        *self.doing.borrow()
    }

    /// Takes nothing any more, and waits until what was taken is answered. Returns how many offers were not answered when
    /// the time was over: their claims run out.
    pub async fn stop(self, grace: Duration) -> usize {
        self.stopping.cancel();
        if let Err(error) = self.offers.drain_worker(&self.id).await {
            tracing::debug!(%error, "others do not know yet that this worker is stopping");
        }
        let mut task = self.task;
        let left = match tokio::time::timeout(grace, &mut task).await {
            Ok(_) => 0,
            Err(_) => {
                task.abort();
                *self.doing.borrow()
            }
        };
        if let Err(error) = self.offers.remove_worker(&self.id).await {
            tracing::debug!(%error, "others will notice later that this worker is gone");
        }
        left
    }
}

fn record(context: &Context, options: &WorkerOptions) -> WorkerRecord {
    let catalog = context.ports.tools.catalog();
    let tools = catalog.iter().filter_map(|tool| PublishedTool::of(tool));
    WorkerRecord {
        id: context.settings.owner.clone(),
        host: options.host.clone(),
        pid: std::process::id(),
        version: options.version.clone(),
        capabilities: options.capabilities.clone(),
        concurrency: u32::try_from(options.concurrency).unwrap_or(u32::MAX),
        tools: tools.collect(),
    }
}

fn digests(record: &WorkerRecord) -> Vec<Digest> {
    record.tools.iter().map(|tool| tool.digest).collect()
}

struct Taking {
    context: Arc<Context>,
    offers: Arc<dyn Offers>,
    id: OwnerId,
    options: WorkerOptions,
    stopping: CancellationToken,
    news: watch::Receiver<u64>,
    /// What is being carried out, with the notice that led to it.
    tasks: JoinSet<(Option<String>, CarriedOut)>,
    count: watch::Sender<usize>,
    notices: Option<Box<dyn Notices>>,
    /// When the broker is tried again.
    broker_at: Instant,
    published: Vec<Digest>,
    tools_at: Instant,
}

enum Woken {
    Stopping,
    Ended(Option<(Option<String>, CarriedOut)>),
    Noticed(Result<ReceivedNotice, BrokerError>),
    Look,
}

impl Taking {
    async fn run(mut self) {
        while !self.stopping.is_cancelled() {
            self.publish_tools().await;
            self.reach_broker().await;
            self.news.borrow_and_update();
            if self.has_room() {
                match self.claim(None).await {
                    Ok(Some(claimed)) => {
                        self.begin(claimed, None);
                        continue;
                    }
                    Ok(None) => {}
                    Err(error) => {
                        tracing::warn!(%error, "offers cannot be claimed; the store is asked again");
                        tokio::time::sleep(FAILED_PAUSE).await;
                    }
                }
            }
            match self.wait().await {
                Woken::Stopping | Woken::Look => {}
                Woken::Ended(ended) => self.settle_ended(ended).await,
                Woken::Noticed(notice) => self.follow(notice).await,
            }
        }
        while let Some(ended) = self.tasks.join_next().await {
            self.count.send_replace(self.tasks.len());
            self.settle_ended(ended.ok()).await;
        }
    }

    /// A worker without capabilities only executes runs.
    fn has_room(&self) -> bool {
        self.tasks.len() < self.options.concurrency && !self.options.capabilities.is_empty()
    }

    async fn wait(&mut self) -> Woken {
        let has_room = self.has_room();
        let pause = match self.notices {
            Some(_) => LOOK_BESIDE_BROKER,
            None => SLOW_LOOK,
        };
        let told_by_store = has_room && self.notices.is_none();
        tokio::select! {
            () = self.stopping.cancelled() => Woken::Stopping,
            Some(ended) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                self.count.send_replace(self.tasks.len());
                Woken::Ended(ended.ok())
            }
            notice = next_notice(&mut self.notices), if has_room => Woken::Noticed(notice),
            _ = self.news.changed(), if told_by_store => Woken::Look,
            () = tokio::time::sleep(pause) => Woken::Look,
        }
    }

    /// Claims the oldest offer that can be carried out now, or the one that a notice names.
    async fn claim(
        &mut self,
        only: Option<OfferKey>,
    ) -> Result<Option<(ClaimedOffer, Duration)>, StoreError> {
        let tools = &*self.context.ports.tools;
        let catalog = tools.catalog();
        let callable = catalog.iter().filter(|tool| {
            let demand = Demand::of(tools, &tool.name.server);
            self.context.limiter.would_admit(tool, demand)
        });
        let wanted = WantedOffers {
            worker: self.id.clone(),
            capabilities: self.options.capabilities.clone(),
            definitions: callable.map(|tool| tool.digest()).collect(),
            only,
            ttl: self.options.claim_ttl,
        };
        // Counted from before the store is asked.
        let asked_at = self.context.ports.clock.uptime();
        let claimed = self.offers.claim_offer(wanted).await?;
        Ok(claimed.map(|claimed| (claimed, asked_at)))
    }

    fn begin(&mut self, (claimed, asked_at): (ClaimedOffer, Duration), delivery: Option<String>) {
        crate::context::crash::point("worker: claimed");
        let context = Arc::clone(&self.context);
        let offers = Arc::clone(&self.offers);
        // Taken before the next offer is claimed, so that it is not claimed in vain.
        let tools = &*context.ports.tools;
        let catalog = tools.catalog();
        let tool = catalog.resolve(&claimed.offer.tool.to_string()).ok();
        let permit = tool.and_then(|tool| {
            let demand = Demand::of(tools, &tool.name.server);
            context.limiter.try_admit(tool, demand)
        });
        let since = (self.options.claim_ttl, asked_at);
        self.tasks.spawn(async move {
            let done = Box::pin(carry_out(context, offers, claimed, permit, since)).await;
            (delivery, done)
        });
        self.count.send_replace(self.tasks.len());
    }

    /// A notice says where to look. What is not there to be claimed is done, or another worker does it.
    async fn follow(&mut self, notice: Result<ReceivedNotice, BrokerError>) {
        let received = match notice {
            Ok(received) => received,
            Err(error) => {
                tracing::warn!(%error, "notices cannot be received; the store is looked at meanwhile");
                self.notices = None;
                self.broker_at = Instant::now() + BROKER_PAUSE;
                return;
            }
        };
        let key = OfferKey {
            run: received.notice.run,
            step: received.notice.step,
            attempt: received.notice.attempt,
        };
        let delivery = Some(received.delivery);
        match self.claim(Some(key.clone())).await {
            Ok(Some(claimed)) => self.begin(claimed, delivery),
            Ok(None) => {
                // One that waits is for a worker with other tools; the rest is over or being done.
                let waits = self.offers.offer_states(vec![key]).await;
                let waits = waits.is_ok_and(|found| {
                    found
                        .iter()
                        .any(|(_, state)| *state == crate::port::OfferState::Offered)
                });
                let end = match waits {
                    true => NoticeEnd::Returned,
                    false => NoticeEnd::Done,
                };
                self.settle(delivery, end).await;
            }
            Err(error) => {
                tracing::warn!(%error, "an offer cannot be claimed; its notice is returned");
                self.settle(delivery, NoticeEnd::Returned).await;
            }
        }
    }

    /// What was given back is for another worker; the rest is durable, or not ours any more.
    async fn settle_ended(&mut self, ended: Option<(Option<String>, CarriedOut)>) {
        let Some((delivery, done)) = ended else {
            return;
        };
        let end = match done {
            CarriedOut::Answered | CarriedOut::Fenced => NoticeEnd::Done,
            CarriedOut::Returned => NoticeEnd::Returned,
        };
        self.settle(delivery, end).await;
    }

    async fn settle(&mut self, delivery: Option<String>, end: NoticeEnd) {
        let (Some(delivery), Some(notices)) = (delivery, &mut self.notices) else {
            return;
        };
        if let Err(error) = notices.settle(&delivery, end).await {
            // It is delivered again, and then there is nothing to claim.
            tracing::debug!(%error, "a notice was not settled");
        }
    }

    /// Begins to receive notices, if there is a broker and it can be reached.
    async fn reach_broker(&mut self) {
        let Some(broker) = self.context.settings.dispatch.broker.clone() else {
            return;
        };
        let is_idle = self.options.capabilities.is_empty();
        if is_idle || self.notices.is_some() || Instant::now() < self.broker_at {
            return;
        }
        match self.receive(&*broker).await {
            Ok(notices) => self.notices = Some(notices),
            Err(error) => {
                tracing::warn!(%error, "the broker cannot be used; the store is looked at meanwhile");
                self.broker_at = Instant::now() + BROKER_PAUSE;
            }
        }
    }

    async fn receive(&mut self, broker: &dyn Broker) -> Result<Box<dyn Notices>, BrokerError> {
        let ahead = u16::try_from(self.options.concurrency).unwrap_or(u16::MAX);
        broker
            .receive(&self.options.capabilities, &self.id.0, ahead)
            .await
    }

    /// Makes the tools known again if they have changed.
    async fn publish_tools(&mut self) {
        if Instant::now() < self.tools_at {
            return;
        }
        self.tools_at = Instant::now() + TOOLS_PAUSE;
        let record = record(&self.context, &self.options);
        let found = digests(&record);
        if found == self.published {
            return;
        }
        match self.offers.register_worker(record).await {
            Ok(()) => self.published = found,
            Err(error) => tracing::warn!(%error, "the tools of this worker cannot be made known"),
        }
    }
}

async fn next_notice(
    notices: &mut Option<Box<dyn Notices>>,
) -> Result<ReceivedNotice, BrokerError> {
    match notices {
        Some(notices) => notices.next().await,
        None => std::future::pending().await,
    }
}
