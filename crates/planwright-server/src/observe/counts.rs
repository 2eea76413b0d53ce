//! How many plans and runs there are in the store. Looked at when somebody asks, and not more often than needed.

use super::figures::name;
use planwright_engine::Engine;
use planwright_engine::port::{StoreError, StreamInfo};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Counts older than this are counted again.
const FRESH: Duration = Duration::from_secs(10);
/// Runs are counted of so many plans, those that changed last.
const PLANS_LOOKED_AT: usize = 1000;

type ByStatus = BTreeMap<String, u32>;

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
        let Ok((mut plans, mut runs)) = count(engine).await else { return };
        if let Some((_, shown_plans, shown_runs)) = known.take() {
            keep_shown(&mut plans, shown_plans);
            keep_shown(&mut runs, shown_runs);
        }
        for (status, count) in &plans {
            metrics::gauge!(name::PLANS, "review" => status.clone()).set(f64::from(*count));
        }
        for (status, count) in &runs {
            metrics::gauge!(name::RUNS, "status" => status.clone()).set(f64::from(*count));
        }
        *known = Some((Instant::now(), plans, runs));
    }
}

fn keep_shown(counts: &mut ByStatus, shown: ByStatus) {
    for status in shown.into_keys() {
        counts.entry(status).or_default();
    }
}

async fn count(engine: &Engine) -> Result<(ByStatus, ByStatus), StoreError> {
    let (mut of_plans, mut of_runs) = (ByStatus::new(), ByStatus::new());
    let plans = engine.store().plans().await?;
    let add = |counts: &mut ByStatus, info: &StreamInfo| {
        *counts.entry(info.status.status.clone()).or_default() += 1;
    };
    for (number, plan) in plans.iter().enumerate() {
        add(&mut of_plans, plan);
        if number < PLANS_LOOKED_AT {
            engine.store().runs(&plan.status.plan).await?.iter().for_each(|run| add(&mut of_runs, run));
        }
    }
    Ok((of_plans, of_runs))
}
