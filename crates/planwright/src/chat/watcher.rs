//! What the model wants called, shown as it is decided and done.

use super::screen::Screen;
use planwright_core::id::RunId;
use planwright_core::journal::Entry;
use planwright_core::run::{AgentCall, CallFate, Run, RunEvent, StoredValue};
use planwright_core::status::StepStatus;
use planwright_core::time::Timestamp;
use planwright_engine::Observer;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shows the calls of a conversation, and remembers which of them are being made.
pub(super) struct Watcher {
    screen: Arc<Screen>,
    calls: Mutex<BTreeMap<RunId, ShownCall>>,
}

/// A call that was wanted and has not come back.
#[derive(Debug, Clone)]
struct ShownCall {
    tool: String,
    args: Value,
    /// Its line is on the screen, with this verdict.
    verdict: Option<&'static str>,
    started: Option<Timestamp>,
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

impl Watcher {
    pub(super) fn new(screen: Arc<Screen>) -> Self {
        Self {
            screen,
            calls: Mutex::default(),
        }
    }

    /// The runs of the calls that are being made.
    pub(super) fn in_flight(&self) -> Vec<RunId> {
        self.calls().keys().cloned().collect()
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<RunId, ShownCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls that were wanted together: those that are refused are said so at once.
    fn wanted(&self, calls: &[AgentCall]) {
        for call in calls {
            let args = written(&call.args);
            match &call.fate {
                CallFate::Refused(error) => {
                    self.screen
                        .call(&call.tool, &args, "refused", Some(&error.message));
                }
                CallFate::Run(run) => {
                    let shown = ShownCall {
                        tool: call.tool.clone(),
                        args,
                        verdict: None,
                        started: None,
                    };
                    self.calls().insert(run.clone(), shown);
                }
            }
        }
    }

    /// An entry in the run that makes a call.
    fn happened(&self, run: &Run, entry: &Entry<RunEvent>) {
        let mut calls = self.calls();
        let call = calls.entry(run.id().clone()).or_insert_with(|| unseen(run));
        match &entry.event {
            RunEvent::ApprovalRequested { call: asked, .. } if call.verdict.is_none() => {
                call.verdict = Some("asks");
                let reason = asked.as_ref().map(|asked| asked.reason.as_str());
                self.screen.call(&call.tool, &call.args, "asks", reason);
            }
            RunEvent::AttemptStarted { .. } => {
                call.started = Some(entry.at);
                if call.verdict.is_none() {
                    call.verdict = Some("allowed");
                    self.screen.call(&call.tool, &call.args, "allowed", None);
                }
            }
            RunEvent::AttemptSucceeded { .. } => self.ended(call, entry.at, None),
            RunEvent::AttemptFailed {
                error,
                retry_at: None,
                ..
            }
            | RunEvent::StepFailed { error, .. } => {
                self.ended(
                    call,
                    entry.at,
                    Some(&format!("{}: {}", error.code, error.message)),
                );
            }
            RunEvent::ApprovalDenied { reason, .. } => {
                self.ended(call, entry.at, Some(&format!("denied: {reason}")));
            }
            RunEvent::AttemptCancelled { .. } => {
                self.ended(call, entry.at, Some(StepStatus::Cancelled.as_str()));
            }
            RunEvent::OutcomeLost { reason, .. } => {
                self.ended(
                    call,
                    entry.at,
                    Some(&format!("its outcome is unknown: {reason}")),
                );
            }
            RunEvent::RunCompleted { .. }
            | RunEvent::RunFailed { .. }
            | RunEvent::RunCancelled { .. } => {
                calls.remove(run.id());
            }
            _ => {}
        }
    }

    fn ended(&self, call: &ShownCall, at: Timestamp, error: Option<&str>) {
        let took = call
            .started
            .map(|started| at.since(started))
            .unwrap_or_default();
        self.screen.result(&call.tool, took, error);
    }
}

/// A call that was wanted before this process went on with the conversation.
fn unseen(run: &Run) -> ShownCall {
    let step = run.plan().document().steps.first();
    let tool = step
        .map(|step| step.action_label().to_owned())
        .unwrap_or_default();
    let args = step
        .map(|step| Value::Object(step.args.clone()))
        .unwrap_or_default();
    ShownCall {
        tool,
        args,
        verdict: None,
        started: None,
    }
}

fn written(value: &StoredValue) -> Value {
    match value {
        StoredValue::Inline(value) => Value::clone(value),
        StoredValue::Artifact(artifact) => json!(format!("({} bytes)", artifact.bytes)),
    }
}

impl Observer for Watcher {
    fn entry(&self, run: &Run, entry: &Entry<RunEvent>) {
        match &entry.event {
            RunEvent::AgentTurn { calls, .. } => self.wanted(calls),
            _ if run.start().parent.is_some() => self.happened(run, entry),
            _ => {}
        }
    }
}
