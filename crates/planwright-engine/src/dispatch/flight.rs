//! The calls in flight, and how they are told that their answers are not wanted any more.

use super::run_loop::RunLoop;
use crate::context::telemetry;
use planwright_core::id::AttemptNo;
use planwright_core::journal::Entry;
use planwright_core::plan::StepIx;
use planwright_core::run::{RunEvent, StepErrorCode};
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// A call that has not come back.
pub(super) struct Flight {
    pub(super) attempt: AttemptNo,
    cancelled: CancellationToken,
    span: Span,
    /// Leaves the call to the worker that makes it, if one does.
    pub(super) left: Option<CancellationToken>,
}

impl Flight {
    /// Tells the call that its answer is not wanted any more.
    pub(super) fn stop(&self, reason: &str) {
        telemetry::call_failed(&self.span, reason);
        self.cancelled.cancel();
    }
}

impl RunLoop {
    /// Remembers how a call in flight is stopped, and how it is left to the worker that makes it.
    pub(super) fn note_flight(
        &mut self,
        step: StepIx,
        attempt: AttemptNo,
        cancelled: CancellationToken,
        span: Span,
        left: Option<CancellationToken>,
    ) {
        self.in_flight.insert(
            step,
            Flight {
                attempt,
                cancelled,
                span,
                left,
            },
        );
    }

    /// Remembers how something in flight that is no call of a tool is stopped.
    pub(super) fn watch_flight(
        &mut self,
        step: StepIx,
        attempt: AttemptNo,
        cancelled: CancellationToken,
    ) {
        self.in_flight.insert(
            step,
            Flight {
                attempt,
                cancelled,
                span: Span::none(),
                left: None,
            },
        );
    }

    /// Tells the calls whose answer is not wanted any more.
    pub(super) fn stop_calls(&mut self, entries: &[Entry<RunEvent>]) {
        for entry in entries {
            match &entry.event {
                RunEvent::AttemptFailed { step, .. } | RunEvent::OutcomeLost { step, .. } => {
                    if let Some(flight) = self
                        .run
                        .find(step.as_str())
                        .and_then(|ix| self.in_flight.remove(&ix))
                    {
                        flight.stop(reason(&entry.event));
                    }
                }
                RunEvent::CancelRequested { .. } => {
                    for step in self.run.schedule().running() {
                        if let Some(flight) = self.in_flight.get(&step) {
                            flight.stop(StepErrorCode::Cancelled.as_str());
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Returns why the answer of a call is not wanted any more.
fn reason(event: &RunEvent) -> &str {
    if let RunEvent::AttemptFailed { error, .. } = event {
        error.code.as_str()
    } else {
        StepErrorCode::OutcomeLost.as_str()
    }
}
