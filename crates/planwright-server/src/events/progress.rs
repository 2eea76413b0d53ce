//! How far calls are, and what their servers log. Told to the listeners of that moment, never kept.

use planwright_core::id::{PlanId, RunId, StepId};
use planwright_core::trace::TraceId;
use planwright_engine::port::{LoggedLine, Progress};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Steps whose progress is remembered until the next look. With more, the others are left out.
const MAX_STEPS: usize = 64;

/// Lines of logs that are remembered until the next look. With more, the oldest are left out.
const MAX_LINES: usize = 256;

/// Letters of a message that are passed on.
const MAX_MESSAGE: usize = 300;

/// The name of an event that says how far a call is.
pub(super) const PROGRESS: &str = "plan.progress";

/// The name of an event that passes on a line of a server's log.
pub(super) const LOG: &str = "plan.log";

/// The step of a run, in a form that events name it.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepOfRun<'a> {
    pub(super) plan: &'a PlanId,
    pub(super) run: &'a RunId,
    pub(super) step: &'a StepId,
    pub(super) trace: TraceId,
}

impl StepOfRun<'_> {
    /// What is told of the step under this name.
    fn event(&self, name: &'static str, says: Value) -> Passing {
        let mut data = json!({
            "event": name, "traceId": self.trace, "planId": self.plan, "runId": self.run,
            "step": { "id": self.step },
        });
        if let (Value::Object(data), Value::Object(says)) = (&mut data, says) {
            data.extend(says);
        }
        Passing {
            name,
            run: self.run.clone(),
            data: data.to_string(),
        }
    }
}

/// What is told without being kept.
#[derive(Debug, Clone)]
pub(super) struct Passing {
    pub(super) name: &'static str,
    pub(super) run: RunId,
    pub(super) data: String,
}

/// The latest progress of every step of a plan, of which a listener that looks rarely sees only the
/// last of many, and the latest lines that servers logged.
#[derive(Debug)]
pub(super) struct Latest {
    told: Mutex<Told>,
    count: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Told {
    steps: BTreeMap<(RunId, StepId), (u64, Passing)>,
    lines: VecDeque<(u64, Passing)>,
}

impl Default for Latest {
    fn default() -> Self {
        Self {
            told: Mutex::default(),
            count: watch::Sender::new(0),
        }
    }
}

impl Latest {
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    pub(super) fn report(&self, of: StepOfRun<'_>, progress: &Progress) {
        let Some((number, mut told)) = self.next() else {
            return;
        };
        let message = progress
            .message
            .as_ref()
            .map(|text| text.chars().take(MAX_MESSAGE).collect::<String>());
        let passing = of.event(
            PROGRESS,
            json!({ "done": progress.done, "total": progress.total, "percent": progress.percent(),
                "message": message }),
        );
        let key = (of.run.clone(), of.step.clone());
        if told.steps.len() >= MAX_STEPS && !told.steps.contains_key(&key) {
            told.steps.pop_first();
        }
        told.steps.insert(key, (number, passing));
        // Before the next one is numbered.
        self.count.send_replace(number);
        drop(told);
    }

    pub(super) fn report_log(&self, of: StepOfRun<'_>, line: &LoggedLine) {
        let Some((number, mut told)) = self.next() else {
            return;
        };
        let passing = of.event(
            LOG,
            json!({ "level": line.level.as_str(), "logger": line.logger, "message": line.text }),
        );
        if told.lines.len() >= MAX_LINES {
            told.lines.pop_front();
        }
        told.lines.push_back((number, passing));
        // Before the next one is numbered.
        self.count.send_replace(number);
        drop(told);
    }

    /// The number of what is told next, and where it is put. Without listeners nothing is told.
    fn next(&self) -> Option<(u64, MutexGuard<'_, Told>)> {
        if self.count.receiver_count() == 0 {
            return None;
        }
        let told = self.told();
        let number = *self.count.borrow() + 1;
        Some((number, told))
    }

    /// What was said after `seen`: one piece of progress per step, then lines in their order. And
    /// what is seen now.
    pub(super) fn after(&self, seen: u64) -> (Vec<Passing>, u64) {
        let told = self.told();
        let all = told.steps.values().chain(&told.lines);
        let news = all.filter(|(number, _)| *number > seen);
        let mut now = seen;
        let news = news.map(|(number, passing)| {
            now = now.max(*number);
            passing.clone()
        });
        (news.collect(), now)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
