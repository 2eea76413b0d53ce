//! Gauges of workers, of the steps that wait for them, and of the broker's queues. Read when a client asks, for a
//! bounded time, and not more often than needed.

use super::prometheus::{as_float, name};
use crate::documents::{count_workers, load_worker_states};
use planwright_core::time::Timestamp;
use planwright_engine::Engine;
use planwright_engine::port::QueueState;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Gauges that are younger than this are not read again.
const FRESH: Duration = Duration::from_secs(5);

/// The longest that a scrape waits for the store, and for the broker.
const PATIENCE: Duration = Duration::from_secs(1);

/// Remembers when the gauges were read, and the capabilities that were shown: one for which nothing waits any more is
/// shown as 0.
#[derive(Debug, Default)]
pub(super) struct DispatchGauges(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    read_at: Option<Instant>,
    offered: BTreeSet<String>,
}

impl DispatchGauges {
    /// Brings the gauges up to date.
    pub(super) async fn note(&self, engine: &Engine) {
        let workers = engine.workers();
        if !workers.are_possible() && !workers.have_broker() {
            return;
        }
        // Scrapes at the same time wait for one look together.
        let mut known = self.0.lock().await;
        if known.read_at.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        tokio::join!(
            note_workers(engine, &mut known.offered),
            note_queues(engine)
        );
        known.read_at = Some(Instant::now());
    }
}

/// Reads the workers and the offers from the store. If it does not answer they stay as they are: other figures say so.
async fn note_workers(engine: &Engine, offered: &mut BTreeSet<String>) {
    let workers = engine.workers();
    if !workers.are_possible() {
        return;
    }
    let Ok(Ok(list)) = tokio::time::timeout(PATIENCE, load_worker_states(&workers)).await else {
        return;
    };
    let counts = count_workers(&list.workers);
    let states = [
        ("working", counts.working),
        ("idle", counts.idle),
        ("draining", counts.draining),
    ];
    for (state, count) in states {
        metrics::gauge!(name::WORKERS, "state" => state).set(as_float(count));
    }
    offered.extend(workers.capabilities());
    offered.extend(list.waiting.iter().map(|line| line.capability.clone()));
    for capability in &*offered {
        let line = list
            .waiting
            .iter()
            .find(|line| line.capability == *capability);
        let (steps, oldest) = line.map_or((0, 0), |line| (line.steps, line.oldest_seconds));
        let label = || capability.clone();
        metrics::gauge!(name::OFFERS_WAITING, "capability" => label()).set(as_float(steps));
        metrics::gauge!(name::OFFERS_OLDEST, "capability" => label()).set(as_float(oldest));
    }
}

/// Reads the queues. What a broker that does not answer has is not known: no number would be true.
async fn note_queues(engine: &Engine) {
    let workers = engine.workers();
    if !workers.have_broker() {
        return;
    }
    let read = tokio::time::timeout(PATIENCE, workers.queues()).await;
    let answered = matches!(read, Ok(Ok(_)));
    metrics::gauge!(name::BROKER_UP).set(f64::from(u8::from(answered)));
    match read {
        Ok(Ok(queues)) => {
            for queue in &queues {
                note_queue(queue, engine.now());
            }
        }
        Ok(Err(_)) | Err(_) => {
            for capability in workers.capabilities() {
                for gauge in [
                    name::QUEUE_WAITING,
                    name::QUEUE_HELD,
                    name::QUEUE_DEAD,
                    name::QUEUE_OLDEST,
                ] {
                    metrics::gauge!(gauge, "capability" => capability.clone()).set(f64::NAN);
                }
            }
        }
    }
}

fn note_queue(queue: &QueueState, now: Timestamp) {
    let gauge =
        |name: &'static str| metrics::gauge!(name, "capability" => queue.capability.clone());
    gauge(name::QUEUE_WAITING).set(as_float(queue.waiting));
    gauge(name::QUEUE_DEAD).set(as_float(queue.dead));
    // RabbitMQ tells neither who holds what nor since when: then there is no such line.
    if let Some(held) = queue.held {
        gauge(name::QUEUE_HELD).set(as_float(held));
        let oldest = queue.oldest.map(|oldest| now.since(oldest));
        gauge(name::QUEUE_OLDEST).set(oldest.unwrap_or_default().as_secs_f64());
    }
    if let Some(redelivered) = queue.redelivered {
        metrics::counter!(name::QUEUE_REDELIVERED, "capability" => queue.capability.clone())
            .absolute(redelivered);
    }
}
