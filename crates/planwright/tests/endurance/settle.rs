//! After the trouble: a person looks at every run that has not ended, and the log of effects says
//! what the answer is. Then everything has to be over, and to have happened once.

use crate::effects::count_effects;
use crate::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long the last run may take to end once it is not disturbed any more.
const PATIENCE: Duration = Duration::from_secs(180);

/// What came of it all.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) plans: usize,
    pub(crate) completed: usize,
    /// Calls whose outcome a person had to look up.
    pub(crate) unknown: usize,
    /// Steps that completed without an effect.
    pub(crate) lost: Vec<String>,
    /// Effects that happened more than once.
    pub(crate) doubled: Vec<String>,
    /// Plans that never came to an end.
    pub(crate) stuck: Vec<String>,
}

impl Outcome {
    /// Nothing is lost, nothing was done twice, nothing hangs.
    #[track_caller]
    pub(crate) fn check(&self) {
        let Self {
            lost,
            doubled,
            stuck,
            ..
        } = self;
        assert!(
            lost.is_empty() && doubled.is_empty() && stuck.is_empty(),
            "{self:#?}"
        );
        assert!(self.completed > 0, "nothing was done: {self:#?}");
    }
}

/// Brings every plan to its end, by a service that is not disturbed any more, and counts.
pub(crate) fn settle(world: &World, plans: &[String]) -> Outcome {
    let since = Instant::now();
    let mut outcome = Outcome {
        plans: plans.len(),
        ..Outcome::default()
    };
    let mut open: BTreeSet<&String> = plans.iter().collect();
    while !open.is_empty() && since.elapsed() < PATIENCE {
        outcome.unknown += resolve_unknown(world);
        open.retain(|plan| !move_on(world, plan));
        std::thread::sleep(Duration::from_millis(50));
    }
    outcome.stuck = open.into_iter().cloned().collect();
    let effects = count_effects(&world.bench);
    outcome.doubled = effects
        .iter()
        .filter(|(_, times)| **times > 1)
        .map(|(line, times)| format!("{line}: {times} times"))
        .collect();
    for plan in plans {
        let runs = world.get(&format!("/plan/{plan}/runs"));
        let runs = runs.as_array().unwrap();
        if runs.len() != 1 {
            outcome.doubled.push(format!("{plan}: {} runs", runs.len()));
        }
        for run in runs {
            let id = run["runId"]
                .as_str()
                .or_else(|| run["id"].as_str())
                .unwrap();
            let result = world.get(&format!("/plan/{plan}/runs/{id}"));
            outcome.completed += usize::from(result["status"] == "completed");
            for step in result["steps"].as_array().unwrap() {
                let line = step["id"].as_str().unwrap();
                if step["status"] == "completed" && !effects.contains_key(line) {
                    outcome.lost.push(line.to_owned());
                }
            }
        }
    }
    outcome
}

/// Tells what became of every call whose outcome is unknown, as the log of effects has it.
fn resolve_unknown(world: &World) -> usize {
    let inbox = world.get("/approvals?limit=200");
    let waiting = inbox["items"].as_array().unwrap();
    let unknown = waiting.iter().filter(|item| item["kind"] == "outcome");
    let mut resolved = 0;
    for item in unknown {
        let text = |name: &str| item[name].as_str().unwrap();
        let plan = text("planId");
        let step = text("step");
        // Read now: what was in flight has ended before the outcome was called unknown.
        let happened = count_effects(&world.bench).contains_key(step);
        let outcome = if happened { "happened" } else { "run_again" };
        let body = json!({ "outcome": outcome, "run": text("runId") });
        let answer = world.try_post(&format!("/plan/{plan}/steps/{step}/resolve"), &body);
        resolved += usize::from(answer.is_some_and(|answer| answer.status < 300));
    }
    resolved
}

/// Does what a person would do next about a plan. Returns whether it is over.
fn move_on(world: &World, plan: &str) -> bool {
    let shown = world.get(&format!("/plan/{plan}"));
    let post =
        |what: &str, body: &Value| drop(world.try_post(&format!("/plan/{plan}/{what}"), body));
    match shown["status"].as_str().unwrap() {
        "completed" | "failed" | "cancelled" => return true,
        "proposed" => post("approve", &json!({ "decision": "approve", "version": 1 })),
        "approved" => post("run", &json!({})),
        "stalled" | "paused" => post("resume", &json!({})),
        _ => {}
    }
    false
}
