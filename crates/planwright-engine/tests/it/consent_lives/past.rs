//! What was written down, in the order in which it was: all that the oracle knows of what the
//! program under test did.

use super::stage::Stage;
use planwright_core::journal::{StreamName, decode};
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::review::ReviewEvent;
use planwright_core::run::{AskedCall, Parent, Resolution, RunEvent, StoredValue};
use planwright_core::time::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

/// An entry, and when it was written.
#[derive(Debug)]
pub(super) struct Noted<E> {
    pub(super) position: u64,
    pub(super) at: Timestamp,
    pub(super) event: E,
}

#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) plan: Vec<Noted<ReviewEvent>>,
    pub(super) runs: BTreeMap<String, Vec<Noted<RunEvent>>>,
}

/// A call that a person agreed to.
#[derive(Debug)]
pub(super) struct Granted<'a> {
    pub(super) by: &'a Principal,
    pub(super) asked_at: Timestamp,
    pub(super) at: Timestamp,
    /// Nothing if the step was asked about as it is written.
    pub(super) call: Option<&'a AskedCall>,
}

impl Past {
    pub(super) fn of(stage: &Stage) -> Self {
        let mut past = Self::default();
        for placed in stage.feed(0) {
            let position = placed.position.0;
            let record = &placed.record;
            match &placed.stream {
                StreamName::Plan(_) => {
                    let entry = decode(record).unwrap();
                    past.plan.push(Noted {
                        position,
                        at: entry.at,
                        event: entry.event,
                    });
                }
                StreamName::Run(run) => {
                    let entry = decode(record).unwrap();
                    let noted = Noted {
                        position,
                        at: entry.at,
                        event: entry.event,
                    };
                    past.runs.entry(run.to_string()).or_default().push(noted);
                }
            }
        }
        past
    }

    pub(super) fn of_run(&self, run: &str) -> &[Noted<RunEvent>] {
        self.runs.get(run).map(Vec::as_slice).unwrap_or_default()
    }

    /// The step of another run that this one is the work of.
    pub(super) fn parent(&self, run: &str) -> Option<&Parent> {
        self.of_run(run)
            .iter()
            .find_map(|noted| match &noted.event {
                RunEvent::RunStarted { parent, .. } => parent.as_deref(),
                _ => None,
            })
    }

    /// The run that this one takes back.
    pub(super) fn taken_back(&self, run: &str) -> Option<String> {
        let mut entries = self.of_run(run).iter();
        entries.find_map(|noted| match &noted.event {
            RunEvent::RunStarted { undoes, .. } => undoes.as_ref().map(ToString::to_string),
            _ => None,
        })
    }

    /// Where a person agreed that this run takes another one back.
    pub(super) fn undo_agreed(&self, original: &str, undo: &str) -> Option<u64> {
        let mut entries = self.of_run(original).iter();
        entries.find_map(|noted| match &noted.event {
            RunEvent::UndoOpened { run, by, .. }
                if run.as_str() == undo && by.kind == PrincipalKind::Person =>
            {
                Some(noted.position)
            }
            _ => None,
        })
    }

    /// Whether the run was to stand still, or to end, at this position.
    pub(super) fn is_stopped(&self, run: &str, at: u64) -> bool {
        let before = self.of_run(run).iter().filter(|noted| noted.position < at);
        before.fold(false, |stopped, noted| match &noted.event {
            RunEvent::RunPaused { .. } | RunEvent::CancelRequested { .. } => true,
            RunEvent::RunResumed { .. } => false,
            _ => stopped,
        })
    }

    /// The run that this one goes on from.
    pub(super) fn origin(&self, run: &str) -> Option<String> {
        self.of_run(run)
            .iter()
            .find_map(|noted| match &noted.event {
                RunEvent::RunStarted { reflection, .. } => reflection
                    .as_ref()
                    .and_then(|reflection| reflection.continues.as_ref())
                    .map(ToString::to_string),
                _ => None,
            })
    }

    /// Where the start of an attempt stands.
    pub(super) fn start_of(&self, run: &str, step: &str, attempt: u32) -> Option<u64> {
        self.of_run(run)
            .iter()
            .find_map(|noted| match &noted.event {
                RunEvent::AttemptStarted {
                    step: started,
                    attempt: number,
                    ..
                } if started.as_str() == step && *number == attempt => Some(noted.position),
                _ => None,
            })
    }

    /// What a step came to, if that was known before this position.
    pub(super) fn value(&self, run: &str, step: &str, before: u64) -> Option<Value> {
        let mut entries = self
            .of_run(run)
            .iter()
            .rev()
            .filter(|noted| noted.position < before);
        let stored = entries.find_map(|noted| match &noted.event {
            RunEvent::AttemptSucceeded {
                step: of, value, ..
            }
            | RunEvent::ResultReused { step: of, value }
            | RunEvent::OutcomeResolved {
                step: of,
                resolution: Resolution::Happened { value },
                ..
            } if of.as_str() == step => Some(value),
            _ => None,
        })?;
        match stored {
            StoredValue::Inline(value) => Some((**value).clone()),
            StoredValue::Artifact(_) => None,
        }
    }

    /// Whether a step was tried, or said no to, and came to nothing.
    pub(super) fn was_in_vain(&self, run: &str, step: &str) -> bool {
        let tried = self.of_run(run).iter().any(|noted| {
            let (RunEvent::AttemptStarted { step: of, .. }
            | RunEvent::StepFailed { step: of, .. }
            | RunEvent::ApprovalDenied { step: of, .. }) = &noted.event
            else {
                return false;
            };
            of.as_str() == step
        });
        tried && self.value(run, step, u64::MAX).is_none()
    }

    /// Everything about a step that people agreed to before this position.
    pub(super) fn granted(&self, run: &str, step: &str, before: u64) -> Vec<Granted<'_>> {
        let mut asked = None;
        let mut granted = Vec::new();
        for noted in self
            .of_run(run)
            .iter()
            .filter(|noted| noted.position < before)
        {
            match &noted.event {
                RunEvent::ApprovalRequested { step: of, call, .. } if of.as_str() == step => {
                    asked = Some((noted.at, call.as_deref()));
                }
                RunEvent::ApprovalGranted {
                    step: of, by, call, ..
                } if of.as_str() == step => {
                    let Some((asked_at, shown)) = asked.take() else {
                        continue;
                    };
                    // A yes to something that was not asked about is none.
                    if by.kind == PrincipalKind::Person && shown.map(|shown| shown.digest) == *call
                    {
                        granted.push(Granted {
                            by,
                            asked_at,
                            at: noted.at,
                            call: shown,
                        });
                    }
                }
                _ => {}
            }
        }
        granted
    }

    pub(super) fn was_skipped(&self, run: &str, step: &str) -> bool {
        self.of_run(run).iter().any(
            |noted| matches!(&noted.event, RunEvent::StepSkipped { step: of, .. } if of.as_str() == step),
        )
    }

    pub(super) fn was_denied(&self, run: &str, step: &str, before: u64) -> bool {
        self.of_run(run).iter().any(|noted| {
            noted.position < before
                && matches!(&noted.event, RunEvent::ApprovalDenied { step: of, .. } if of.as_str() == step)
        })
    }
}
