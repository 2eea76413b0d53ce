//! How many plans and runs there are in the store. Looked at when a client asks, and not more often
//! than needed.

use super::prometheus::{as_float, name};
use planwright_core::status::CachedStatus;
use planwright_engine::port::StreamCounts;
use planwright_engine::{Engine, WaitKind};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Counts older than this are counted again.
const FRESH: Duration = Duration::from_secs(10);

type ByStatus = BTreeMap<CachedStatus, u64>;

/// Remembers what was shown: a status that nothing has any more is shown as 0.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<Option<(Instant, ByStatus, ByStatus)>>);

impl Counts {
    /// Brings the gauges up to date. If the store fails they stay as they are.
    pub(super) async fn note(&self, engine: &Engine) {
        let mut known = self.0.lock().await;
        if known.as_ref().is_some_and(|(at, ..)| at.elapsed() < FRESH) {
            return;
        }
        let Ok(StreamCounts {
            mut plans,
            mut runs,
        }) = engine.journals().counts().await
        else {
            return;
        };
        if let Some((_, shown_plans, shown_runs)) = known.take() {
            keep_shown(&mut plans, shown_plans);
            keep_shown(&mut runs, shown_runs);
        }
        for (status, count) in &plans {
            metrics::gauge!(name::PLANS, "review" => status.to_string()).set(as_float(*count));
        }
        for (status, count) in &runs {
            metrics::gauge!(name::RUNS, "status" => status.to_string()).set(as_float(*count));
        }
        note_waiting(engine).await;
        *known = Some((Instant::now(), plans, runs));
    }
}

/// Brings up to date how much waits for people, and how long.
async fn note_waiting(engine: &Engine) {
    let Ok(counts) = engine.inbox().count().await else {
        return;
    };
    for kind in WaitKind::ALL {
        let waiting = as_float(counts.of_kind(kind));
        metrics::gauge!(name::WAITING, "kind" => kind.as_str()).set(waiting);
    }
    let longest = counts.oldest.map(|oldest| engine.now().since(oldest));
    metrics::gauge!(name::WAITING_LONGEST).set(longest.unwrap_or_default().as_secs_f64());
}

fn keep_shown(counts: &mut ByStatus, shown: ByStatus) {
    for status in shown.into_keys() {
        counts.entry(status).or_default();
    }
}
