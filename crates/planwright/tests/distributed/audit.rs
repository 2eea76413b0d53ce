//! The judgement: what the bank and the files of those who own runs say is compared with what the journals say.

use crate::cluster::Cluster;
use crate::orders::{PROBE, get, statuses, try_post};
use crate::process::{Blow, Role};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

/// How long the last run may take to end once nothing is disturbed any more.
const PATIENCE: Duration = Duration::from_secs(180);
/// Looking at hundreds of plans costs the services more than the runs do.
const PAUSE: Duration = Duration::from_secs(1);
/// A call and the writing of its answer take no longer, also where the database is away meanwhile.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);
/// A file system and two clocks of one machine do not agree to the millisecond.
const SLACK: Duration = Duration::from_millis(500);

/// What came of it all.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) runs: usize,
    /// Calls whose outcome a person had to look up.
    pub(crate) unknown: usize,
    /// Everything that must not be.
    pub(crate) wrong: Vec<String>,
}

/// Effects as they are seen from outside, by their step.
#[derive(Debug, Default)]
struct Effects {
    calls: BTreeMap<String, Vec<Value>>,
    notes: BTreeMap<String, usize>,
}

impl Effects {
    fn read(cluster: &Cluster) -> Self {
        let mut effects = Self::default();
        for call in cluster.ledger() {
            let step = call["account"].as_str().unwrap().to_owned();
            effects.calls.entry(step).or_default().push(call);
        }
        for process in &cluster.processes {
            for line in process.bench.read("effects.txt").lines() {
                *effects.notes.entry(line.to_owned()).or_default() += 1;
            }
        }
        effects
    }

    fn count(&self, step: &str) -> usize {
        let calls = self.calls.get(step).map_or(0, Vec::len);
        calls + self.notes.get(step).copied().unwrap_or_default()
    }
}

/// Waits until every run has ended. A person says what became of the calls whose outcome is unknown, as the bank has it.
/// Returns those, with the count of their effects when they were called unknown.
pub(crate) fn settle(cluster: &Cluster) -> BTreeMap<String, usize> {
    let since = Instant::now();
    let mut unknown = BTreeMap::new();
    loop {
        let open = statuses(cluster);
        let open: Vec<(&String, &String)> = open
            .iter()
            .filter(|(_, status)| *status != "completed")
            .collect();
        if open.is_empty() {
            return unknown;
        }
        assert!(since.elapsed() < PATIENCE, "runs do not end: {open:?}");
        for (step, (plan, run)) in unknown_steps(cluster) {
            let happened = Effects::read(cluster).count(&step);
            let outcome = if happened > 0 {
                "happened"
            } else {
                "run_again"
            };
            let body = json!({ "outcome": outcome, "run": run });
            try_post(
                cluster,
                &format!("/plan/{plan}/steps/{step}/resolve"),
                &body,
            );
            unknown.entry(step).or_insert(happened);
        }
        for (plan, status) in open {
            if status == "stalled" {
                try_post(cluster, &format!("/plan/{plan}/resume"), &json!({}));
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Steps that wait for a person, with their plans and runs.
fn unknown_steps(cluster: &Cluster) -> BTreeMap<String, (String, String)> {
    let inbox = get(cluster, "/approvals?limit=200");
    let items = inbox["items"].as_array().unwrap();
    let unknown = items.iter().filter(|item| item["kind"] == "outcome");
    let text = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
    unknown
        .map(|item| {
            let place = (text(item, "planId"), text(item, "runId"));
            (text(item, "step"), place)
        })
        .collect()
}

/// All events, as a list.
pub(crate) fn list_events(cluster: &Cluster) -> Vec<Value> {
    let mut events = Vec::new();
    let mut after = "0".to_owned();
    loop {
        let page = get(cluster, &format!("/events?limit=1000&after={after}"));
        events.extend(page["events"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => return events,
        }
    }
}

/// Compares effects with events.
pub(crate) fn judge(
    cluster: &Cluster,
    events: &[Value],
    unknown: &BTreeMap<String, usize>,
) -> Outcome {
    let effects = Effects::read(cluster);
    let mut outcome = Outcome {
        unknown: unknown.len(),
        ..Outcome::default()
    };
    let mut last: BTreeMap<&str, &str> = BTreeMap::new();
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    for event in events {
        let plan = event["planId"].as_str().unwrap_or_default();
        let number = numbers.entry(plan).or_default();
        *number += 1;
        if event["seq"] != *number {
            let wrong = format!("{plan}: event {number} has the number {}", event["seq"]);
            outcome.wrong.push(wrong);
        }
        outcome.runs += usize::from(event["event"] == "run.started");
        let step = &event["step"];
        if plan.starts_with(PROBE) {
            continue;
        }
        if let (Some(id), Some(state)) = (step["id"].as_str(), step["state"].as_str()) {
            last.insert(id, state);
            if state == "outcome_unknown" {
                outcome
                    .wrong
                    .extend(doubt(cluster, made(&effects, unknown, id), id, event));
            }
        }
    }
    let named: BTreeSet<&String> = effects.calls.keys().chain(effects.notes.keys()).collect();
    for step in named {
        if !last.contains_key(step.as_str()) {
            outcome.wrong.push(format!("{step}: called by no journal"));
        }
    }
    for (step, state) in last {
        let count = effects.count(step);
        if state != "completed" {
            outcome.wrong.push(format!("{step} is {state}"));
        }
        let keys: BTreeSet<&str> = effects
            .calls
            .get(step)
            .into_iter()
            .flatten()
            .filter_map(|call| call["key"].as_str())
            .collect();
        let is_right = match step.rsplit('-').next() {
            Some("pay" | "note") => count == 1,
            // Made again under its key: the bank would do it once.
            Some("transfer") => count >= 1 && keys.len() == 1 && !keys.contains(""),
            _ => count >= 1,
        };
        if !is_right {
            outcome
                .wrong
                .push(format!("{step}: {count} effects with the keys {keys:?}"));
        }
    }
    outcome
}

/// The call whose outcome was unknown, if the bank had it by then: one that it had only later is the one that a person asked
/// for.
fn made<'a>(
    effects: &'a Effects,
    unknown: &BTreeMap<String, usize>,
    step: &str,
) -> Option<&'a Value> {
    let happened = unknown.get(step).is_none_or(|count| *count > 0);
    let calls = effects.calls.get(step).filter(|_| happened)?;
    calls.first()
}

/// An outcome may be unknown only if something was done to the process that made the call, while it was in flight.
fn doubt(cluster: &Cluster, call: Option<&Value>, step: &str, event: &Value) -> Option<String> {
    let calls_it: fn(Role) -> bool = match step.rsplit('-').next() {
        Some("pay") => |role| role == Role::Worker,
        Some("note") => Role::owns_runs,
        _ => return Some(format!("{step} may be repeated, and was not")),
    };
    let known = call.and_then(|call| Some((call["worker"].as_u64()?, call["at"].as_f64()?)));
    let processes = cluster.processes.iter().filter(|it| calls_it(it.role));
    let mut blows = processes.flat_map(|process| process.blows());
    let is_explained = match known {
        Some((worker, at)) => {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(at);
            blows.any(|blow| {
                let is_meant = u64::from(blow.process) == worker;
                is_meant && blow.until + SLACK >= at && blow.from <= at + LONGEST_ANSWER
            })
        }
        None => blows.next().is_some(),
    };
    (!is_explained).then(|| {
        let blows: Vec<Blow> = cluster
            .processes
            .iter()
            .flat_map(|process| process.blows())
            .filter(|blow| known.is_some_and(|(worker, _)| u64::from(blow.process) == worker))
            .collect();
        format!("{step} is unknown for no reason: {call:?} {event} {blows:?}")
    })
}
