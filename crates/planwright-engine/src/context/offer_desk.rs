//! The offers of this process that wait for workers, looked at together however many there are.

use super::Context;
use crate::context::offered_talk::ToldOfCall;
use crate::port::{
    Broker, OfferKey, OfferLook, OfferQuestion, OfferReport, OfferState, Offers, OwnerId, Progress,
    ProgressSink, StepNotice, StoreError,
};
use planwright_core::digest::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How often offers are looked at if nothing is heard of them.
const SLOW_LOOK: Duration = Duration::from_secs(1);
/// News that come within this time of the last look wait for the next one, and cost it together.
const GATHER: Duration = Duration::from_millis(1);
/// An offer that was just made has nothing to say. What was said before it was watched is looked at after this time.
const FIRST_LOOK: Duration = Duration::from_millis(5);
/// An offer that no worker has taken for so long says so.
const UNTAKEN: Duration = Duration::from_secs(5);
/// A notice is sent again after so long without a claim: the broker may have lost what it had.
const NOTICE_AGAIN: Duration = Duration::from_secs(15);
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(10);

/// Watches offers for the calls that wait for them.
#[derive(Debug, Default)]
pub(crate) struct OfferDesk {
    state: Mutex<DeskState>,
    added: Notify,
}

#[derive(Debug, Default)]
struct DeskState {
    waiting: BTreeMap<OfferKey, Waiting>,
    /// A task looks at them.
    looking: bool,
}

#[derive(Debug)]
struct Waiting {
    sight: watch::Sender<OfferSight>,
    notice: StepNotice,
    definition: Digest,
    progress: ProgressSink,
    since: Instant,
    noticed_at: Instant,
    said: bool,
    /// The news of its call that were passed on.
    heard: u64,
    /// The lines of its server's log that were passed on.
    lines: u64,
}

/// How an offer stands, as it was last seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OfferSight {
    pub(crate) state: OfferState,
    /// What its tool asks a person.
    pub(crate) question: Option<OfferQuestion>,
}

/// An offer that is watched, for as long as this is held.
pub(crate) struct WatchedOffer {
    context: Arc<Context>,
    pub(crate) key: OfferKey,
    pub(crate) sight: watch::Receiver<OfferSight>,
}

impl Drop for WatchedOffer {
    fn drop(&mut self) {
        self.context.desk.state().waiting.remove(&self.key);
    }
}

impl OfferDesk {
    fn state(&self) -> MutexGuard<'_, DeskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    /// Watches an offer that is durable, and sends its notice.
    pub(crate) fn watch_offer(
        self: &Arc<Self>,
        offers: &Arc<dyn Offers>,
        notice: StepNotice,
        definition: Digest,
        progress: ProgressSink,
    ) -> WatchedOffer {
        let key = OfferKey {
            run: notice.run.clone(),
            step: notice.step.clone(),
            attempt: notice.attempt,
        };
        self.publish(notice.clone());
        let (sender, sight) = watch::channel(OfferSight {
            state: OfferState::Offered,
            question: None,
        });
        let now = Instant::now();
        let waiting = Waiting {
            sight: sender,
            notice,
            definition,
            progress,
            since: now,
            noticed_at: now,
            said: false,
            heard: 0,
            lines: 0,
        };
        let mut desk = self.desk.state();
        desk.waiting.insert(key.clone(), waiting);
        let starts = !std::mem::replace(&mut desk.looking, true);
        drop(desk);
        if starts {
            tokio::spawn(look(Arc::downgrade(self), Arc::clone(offers)));
        }
        self.desk.added.notify_one();
        WatchedOffer {
            context: Arc::clone(self),
            key,
            sight,
        }
    }

    /// Sends a notice, if there is a broker. Without it the offer is found by looking.
    fn publish(&self, notice: StepNotice) {
        let Some(broker) = self.settings.dispatch.broker.clone() else {
            return;
        };
        tokio::spawn(async move {
            let sent = tokio::time::timeout(PUBLISH_TIMEOUT, broker.publish(&notice)).await;
            let problem = match sent {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer from the broker".to_owned(),
            };
            tracing::warn!(run = %notice.run, step = %notice.step, problem, "a notice was not sent; workers look for themselves");
        });
    }
}

/// Looks until nothing waits any more.
async fn look(context: Weak<Context>, offers: Arc<dyn Offers>) {
    let mut news = offers.answer_news();
    let mut checked = BTreeMap::new();
    loop {
        let Some(context) = context.upgrade() else {
            return;
        };
        let added = context.desk.added.notified();
        news.borrow_and_update();
        let looks: Vec<OfferLook> = {
            let mut desk = context.desk.state();
            desk.looking = !desk.waiting.is_empty();
            let waiting = desk.waiting.iter();
            waiting
                .map(|(key, waiting)| OfferLook {
                    key: key.clone(),
                    heard: waiting.heard,
                })
                .collect()
        };
        if looks.is_empty() {
            return;
        }
        if let Err(error) = look_once(&context, &*offers, looks, &mut checked).await {
            tracing::debug!(%error, "offers cannot be looked at");
        }
        let looked_at = Instant::now();
        let first_look = async {
            added.await;
            tokio::time::sleep(FIRST_LOOK).await;
        };
        tokio::select! {
            _ = news.changed() => {}
            () = first_look => {}
            () = tokio::time::sleep(SLOW_LOOK) => {}
        }
        tokio::time::sleep_until(looked_at + GATHER).await;
    }
}

async fn look_once(
    context: &Context,
    offers: &dyn Offers,
    looks: Vec<OfferLook>,
    checked: &mut BTreeMap<OwnerId, Instant>,
) -> Result<(), StoreError> {
    let keys: Vec<OfferKey> = looks.iter().map(|look| look.key.clone()).collect();
    let mut found: BTreeMap<OfferKey, OfferReport> = offers
        .look_at_offers(looks)
        .await?
        .into_iter()
        .map(|report| (report.key.clone(), report))
        .collect();
    let mut dead = BTreeSet::new();
    for report in found.values() {
        if let OfferState::Claimed { by, is_over: false } = &report.state
            && checked.get(by).is_none_or(|at| at.elapsed() >= SLOW_LOOK)
        {
            if context.ports.store.is_dead(by).await? {
                dead.insert(by.clone());
            } else {
                checked.insert(by.clone(), Instant::now());
            }
        }
    }
    checked.retain(|_, at| at.elapsed() < SLOW_LOOK * 10);
    for key in keys {
        // Removed with the end of its attempt: what waits for it is not wanted any more.
        let report = found.remove(&key).unwrap_or_else(|| OfferReport {
            key: key.clone(),
            state: OfferState::Lost,
            question: None,
            news: None,
        });
        let state = match report.state {
            OfferState::Claimed { by, is_over } if is_over || dead.contains(&by) => {
                let after = offers.lose_offer(&key, &by).await?;
                after.unwrap_or(OfferState::Lost)
            }
            state => state,
        };
        tell(context, offers, OfferReport { state, ..report }).await;
    }
    Ok(())
}

/// Tells the call that waits, and people if no worker takes the offer.
async fn tell(context: &Context, offers: &dyn Offers, report: OfferReport) {
    let OfferReport {
        key,
        state,
        question,
        news,
    } = report;
    let is_untaken = state == OfferState::Offered;
    let is_taken = matches!(state, OfferState::Claimed { .. });
    let sight = OfferSight { state, question };
    let mut say = None;
    let mut pass_on = None;
    {
        let mut desk = context.desk.state();
        let Some(waiting) = desk.waiting.get_mut(&key) else {
            return;
        };
        waiting.sight.send_if_modified(|told| {
            *told != sight && {
                *told = sight;
                true
            }
        });
        if let Some(news) = news.filter(|news| news.number > waiting.heard) {
            waiting.heard = news.number;
            let told = ToldOfCall::from_json(&news.told);
            let (lines, count) = told.lines_after(waiting.lines);
            waiting.lines = count;
            pass_on = Some((waiting.progress.clone(), told.progress(), lines));
        } else if is_taken && waiting.said {
            waiting.said = false;
            let taken = Progress {
                done: 0.0,
                total: None,
                message: Some("a worker has taken it".to_owned()),
            };
            pass_on = Some((waiting.progress.clone(), Some(taken), Vec::new()));
        }
        if is_untaken && waiting.noticed_at.elapsed() >= NOTICE_AGAIN {
            waiting.noticed_at = Instant::now();
            context.publish(waiting.notice.clone());
        }
        if is_untaken && !waiting.said && waiting.since.elapsed() >= UNTAKEN {
            waiting.said = true;
            say = Some((
                waiting.notice.clone(),
                waiting.definition,
                waiting.progress.clone(),
            ));
        }
    }
    if let Some((sink, progress, lines)) = pass_on {
        progress.into_iter().for_each(|it| sink.report(it));
        lines.into_iter().for_each(|it| sink.report_log(it));
    }
    let Some((notice, definition, progress)) = say else {
        return;
    };
    let capability = &notice.capability;
    let message = match find_taker(offers, capability, definition).await {
        Ok(Taker::Busy) => return,
        Ok(Taker::OtherDefinition) => format!(
            "no worker with the capability `{capability}` has the tool as it was approved; \
             it waits for one: planwright workers"
        ),
        Ok(Taker::Missing) => format!(
            "no worker has the capability `{capability}`; it waits for one: planwright worker --capability {capability}"
        ),
        Err(error) => format!("it waits for a worker, and the workers cannot be listed: {error}"),
    };
    tracing::warn!(run = %notice.run, step = %notice.step, "{message}");
    progress.report(Progress {
        done: 0.0,
        total: None,
        message: Some(message),
    });
}

enum Taker {
    /// There is one, which has other things to do.
    Busy,
    OtherDefinition,
    Missing,
}

async fn find_taker(
    offers: &dyn Offers,
    capability: &str,
    definition: Digest,
) -> Result<Taker, StoreError> {
    let workers = offers.workers().await?;
    let mut able = workers
        .iter()
        .filter(|worker| worker.is_alive && !worker.is_draining)
        .filter(|worker| {
            worker
                .record
                .capabilities
                .iter()
                .any(|own| own == capability)
        })
        .peekable();
    if able.peek().is_none() {
        return Ok(Taker::Missing);
    }
    let has_tool = able.any(|worker| {
        let mut tools = worker.record.tools.iter();
        tools.any(|tool| tool.digest == definition)
    });
    Ok(if has_tool {
        Taker::Busy
    } else {
        Taker::OtherDefinition
    })
}

/// How steps get to workers.
#[derive(Debug, Clone, Default)]
pub struct DispatchSettings {
    /// The capabilities whose steps are carried out by workers. Others are words for people.
    pub capabilities: BTreeSet<String>,
    /// Tells workers where to look. Without it they are told by the store.
    pub broker: Option<Arc<dyn Broker>>,
}
