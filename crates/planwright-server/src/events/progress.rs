//! How far calls are. Told to the listeners of that moment, never kept.

use planwright_core::event::trace_of_run;
use planwright_core::id::{PlanId, RunId, StepId};
use planwright_engine::port::Progress;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// Steps whose progress is remembered until the next look. With more, the others are left out.
const MAX_STEPS: usize = 64;

/// Letters of a message that are passed on.
const MAX_MESSAGE: usize = 300;

/// The latest progress of every step of a plan: a listener that looks rarely sees only the last of
/// many.
#[derive(Debug)]
pub(super) struct Latest {
    steps: Mutex<BTreeMap<(RunId, StepId), (u64, String)>>,
    count: watch::Sender<u64>,
}

impl Default for Latest {
    fn default() -> Self {
        Self {
            steps: Mutex::default(),
            count: watch::Sender::new(0),
        }
    }
}

impl Latest {
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    pub(super) fn report(&self, plan: &PlanId, run: &RunId, step: &StepId, progress: &Progress) {
        if self.count.receiver_count() == 0 {
            return;
        }
        let message = progress
            .message
            .as_ref()
            .map(|text| text.chars().take(MAX_MESSAGE).collect::<String>());
        let data = json!({
            "event": "plan.progress", "traceId": trace_of_run(run), "planId": plan, "runId": run,
            "step": { "id": step }, "done": progress.done, "total": progress.total, "message": message,
        });
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let number = *self.count.borrow() + 1;
        let key = (run.clone(), step.clone());
        if steps.len() >= MAX_STEPS && !steps.contains_key(&key) {
            steps.pop_first();
        }
        steps.insert(key, (number, data.to_string()));
        drop(steps);
        self.count.send_replace(number);
    }

    /// What was said after `seen`, one text per step, and what is seen now.
    pub(super) fn after(&self, seen: u64) -> (Vec<String>, u64) {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let news = steps
            .values()
            .filter(|(number, _)| *number > seen)
            .map(|(_, data)| data.clone());
        (
            news.collect(),
            steps
                .values()
                .map(|(number, _)| *number)
                .max()
                .unwrap_or(seen)
                .max(seen),
        )
    }
}
