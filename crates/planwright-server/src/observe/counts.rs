//! How many plans and runs there are in the store. Looked at when a client asks, and not more often
//! than needed.

use super::prometheus::name;
use planwright_core::status::CachedStatus;
use planwright_engine::Engine;
use planwright_engine::port::StreamCounts;
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
        // The review of a plan that was opened says no more than that it was proposed.
        if let Some(opened) = plans.remove(&CachedStatus::Opened) {
            *plans.entry(CachedStatus::Proposed).or_default() += opened;
        }
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
        *known = Some((Instant::now(), plans, runs));
    }
}

fn keep_shown(counts: &mut ByStatus, shown: ByStatus) {
    for status in shown.into_keys() {
        counts.entry(status).or_default();
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float, and no store holds so many plans"
)]
fn as_float(count: u64) -> f64 {
    count as f64
}
