//! The time tools took before: the estimate behind the order in which ready steps start.

use crate::context::Context;
use crate::journal::load::read_entries;
use crate::port::{Journal, Store};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_core::run::RunEvent;
use planwright_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Longer runs are not read again only to guess better.
const MAX_ENTRIES: u64 = 10_000;

/// The number of latest plans that are asked about tools of which a plan's own runs say nothing.
const MAX_PLANS: usize = 20;

/// The times of these tools in the latest runs of other plans. An estimate only, as
/// [`tool_times`] is. Runs that start at once wait for one look.
pub(crate) async fn times_in_other_plans(
    context: &Context,
    plan: &PlanId,
    mut unknown: BTreeSet<String>,
) -> BTreeMap<String, Duration> {
    if unknown.is_empty() {
        return BTreeMap::new();
    }
    let mut kept = context.kept_times.lock().await;
    let now = context.ports.clock.uptime();
    let mut times = kept.take_known(&mut unknown, now);
    let wanted = unknown.clone();
    let found = look_at_other_plans(&*context.ports.store, plan, unknown).await;
    for tool in &wanted {
        kept.note(tool, found.get(tool).copied(), now);
    }
    times.extend(found);
    times
}

async fn look_at_other_plans(
    store: &dyn Store,
    plan: &PlanId,
    mut unknown: BTreeSet<String>,
) -> BTreeMap<String, Duration> {
    let mut found = BTreeMap::new();
    if unknown.is_empty() {
        return found;
    }
    let latest = store
        .plans_by_age(None, MAX_PLANS)
        .await
        .unwrap_or_default();
    for other in latest.iter().filter(|info| info.status.plan != *plan) {
        if unknown.is_empty() {
            break;
        }
        let runs = store.runs(&other.status.plan).await.unwrap_or_default();
        let Some(StreamName::Run(run)) = runs.last().map(|info| &info.stream) else {
            continue;
        };
        for (tool, time) in tool_times(store, run).await {
            if unknown.remove(&tool) {
                found.insert(tool, time);
            }
        }
    }
    found
}

/// The mean time of each tool's calls in an earlier run. An estimate only: after any error,
/// nothing is known.
pub(crate) async fn tool_times(store: &dyn Journal, run: &RunId) -> BTreeMap<String, Duration> {
    let stream = StreamName::Run(run.clone());
    let mut started: BTreeMap<String, (String, Timestamp)> = BTreeMap::new();
    let mut totals: BTreeMap<String, (Duration, u32)> = BTreeMap::new();
    match store.head(&stream).await {
        Ok(head) if head.seq <= MAX_ENTRIES => {}
        Ok(_) | Err(_) => return BTreeMap::new(),
    }
    let read = read_entries::<RunEvent>(store, &stream, |_, entry| {
        match entry.event {
            RunEvent::AttemptStarted { step, tool, .. } => {
                started.insert(step.to_string(), (tool.to_string(), entry.at));
            }
            RunEvent::AttemptSucceeded { step, .. } => {
                if let Some((tool, at)) = started.remove(step.as_str()) {
                    let (total, count) = totals.entry(tool).or_default();
                    *total += entry.at.since(at);
                    *count += 1;
                }
            }
            _ => {}
        }
        Ok(())
    });
    match read.await {
        Ok(_) => totals
            .into_iter()
            .map(|(tool, (total, count))| (tool, total / count.max(1)))
            .collect(),
        Err(error) => {
            tracing::debug!(%run, %error, "no estimate from this run");
            BTreeMap::new()
        }
    }
}
