//! One call in flight: made, watched, and its value put where it belongs.

use super::inline_budget::InlineBudget;
use super::offered::WorkerCall;
use super::schedule::Prepared;
use crate::context::Context;
use crate::context::Pauses;
use crate::context::crash;
use crate::context::telemetry;
use crate::journal::stored_value::{keep_value, too_deep};
use crate::port::{ArtifactError, Artifacts, BoxFuture, Call, CallError, Outcome, Tools};
use crate::redaction::call_results::{mask_outcome, mask_progress};
use futures::FutureExt as _;
use planwright_core::id::AttemptNo;
use planwright_core::model::ModelUse;
use planwright_core::plan::{Expectation, StepIx};
use planwright_core::run::{CallEffect, CallReport, StepError, StepErrorCode, StoredValue};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

/// The time a call may go on after it was told to stop.
pub(crate) const GRACE: Duration = Duration::from_secs(4);
/// As [`GRACE`], for a call that a worker makes and has to be told about.
const GRACE_OF_WORKER: Duration = Duration::from_secs(12);

/// A call that came back.
pub(super) struct Finished {
    pub(super) step: StepIx,
    pub(super) attempt: AttemptNo,
    pub(super) answer: CallReport,
    /// The value, if it was too large for the journal.
    pub(super) large: Option<Arc<Value>>,
    /// Models that were asked for it, and what that took.
    pub(super) used: Vec<ModelUse>,
}

/// Where the values of a run's calls are kept.
struct Keeping {
    artifacts: Arc<dyn Artifacts>,
    budget: Arc<InlineBudget>,
    /// For so long storing is tried.
    patience: Duration,
    /// The answer is not wanted any more.
    cancelled: CancellationToken,
}

/// Makes the call and turns its outcome into an answer. The permit is held until the tool is done.
pub(super) fn make(
    context: &Context,
    budget: &Arc<InlineBudget>,
    prepared: Prepared,
    span: Span,
    by_worker: Option<WorkerCall>,
) -> BoxFuture<'static, Finished> {
    let Prepared {
        step,
        mut call,
        permit,
        expectation,
        offer: _,
    } = prepared;
    let attempt = call.attempt;
    let cancelled = call.cancelled.clone();
    let keeping = Keeping {
        artifacts: Arc::clone(&context.ports.artifacts),
        budget: Arc::clone(budget),
        patience: context.settings.lease_ttl,
        cancelled: cancelled.clone(),
    };
    let redaction = context.redaction.clone();
    call.progress = mask_progress(&redaction, call.progress);
    let grace = match by_worker {
        Some(_) => GRACE_OF_WORKER,
        None => GRACE,
    };
    let calling = match by_worker {
        Some(by_worker) => Box::pin(by_worker.outcome(cancelled.clone())),
        None => span.in_scope(|| guarded(&*context.ports.tools, call)),
    };
    let in_span = span.clone();
    let made = async move {
        let given_up = async {
            cancelled.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        let outcome = tokio::select! {
            biased;
            outcome = calling => outcome,
            () = given_up => Err(CallError::Lost("the call did not stop when it was told to".into())),
        };
        crash::point("call: answered");
        drop(permit);
        let outcome = match outcome {
            // Too deep to be kept, so too deep to be searched.
            Ok(value) if !StoredValue::can_keep(&value) => Ok(value),
            outcome => mask_outcome(&redaction, outcome).await,
        };
        telemetry::call_ended(&span, &outcome, cancelled.is_cancelled());
        let (answer, large) = match expect(expectation.as_ref(), &outcome) {
            Some(error) => (CallReport::Failed(error), None),
            None => answer(&keeping, outcome).await,
        };
        Finished {
            step,
            attempt,
            answer,
            large,
            used: Vec::new(),
        }
    };
    if in_span.is_disabled() {
        Box::pin(made)
    } else {
        Box::pin(made.instrument(in_span))
    }
}

impl Keeping {
    /// Keeps a value, and returns it as well if it is not in the journal.
    async fn keep(
        &self,
        value: &Arc<Value>,
    ) -> Result<(StoredValue, Option<Arc<Value>>), ArtifactError> {
        let max_inline_bytes = self.budget.max_inline_bytes();
        let pauses = Pauses::within(self.patience);
        let artifacts = &*self.artifacts;
        let kept = keep_value(artifacts, value, max_inline_bytes, pauses, &self.cancelled);
        let (stored, bytes) = kept.await?;
        Ok(match stored {
            StoredValue::Artifact(_) => (stored, Some(Arc::clone(value))),
            StoredValue::Inline(_) => {
                self.budget.take(bytes);
                (stored, None)
            }
        })
    }
}

/// Returns why a value is not what the plan expects: many servers report errors as successes.
fn expect(expectation: Option<&Expectation>, outcome: &Outcome) -> Option<StepError> {
    let value = outcome.as_ref().ok()?;
    let error = expectation?.check(value).err()?;
    Some(StepError::new(
        StepErrorCode::ExpectFailed,
        error.to_string(),
    ))
}

/// Makes a call. A tool that panics costs its own call, never the run. How far it got is unknown.
pub(crate) fn guarded(tools: &dyn Tools, call: Call) -> BoxFuture<'static, Outcome> {
    let panicked = || Err(CallError::Lost("the tool panicked".into()));
    match catch_unwind(AssertUnwindSafe(|| tools.call(call))) {
        Ok(calling) => Box::pin(
            AssertUnwindSafe(calling)
                .catch_unwind()
                .map(move |outcome| outcome.unwrap_or_else(|_| panicked())),
        ),
        Err(_) => Box::pin(std::future::ready(panicked())),
    }
}

async fn answer(keeping: &Keeping, outcome: Outcome) -> (CallReport, Option<Arc<Value>>) {
    match outcome {
        // The tool did answer, and would answer the same again.
        Ok(value) if !StoredValue::can_keep(&value) => (
            CallReport::Failed(
                StepError::new(StepErrorCode::ValueTooDeep, too_deep())
                    .with_effect(CallEffect::Done),
            ),
            None,
        ),
        Ok(value) => match keeping.keep(&Arc::new(value)).await {
            Ok((stored, large)) => (CallReport::Succeeded(stored), large),
            // The call happened, and its outcome cannot be recorded: it must not count as failed.
            Err(error) => (
                CallReport::Lost {
                    reason: format!("the result could not be stored: {error}"),
                },
                None,
            ),
        },
        Err(CallError::Failed {
            code,
            message,
            retryable,
            effect,
        }) => (
            CallReport::Failed(
                StepError::new(code, message)
                    .retryable(retryable)
                    .with_effect(effect),
            ),
            None,
        ),
        Err(CallError::Unavailable(message)) => (
            CallReport::Failed(
                StepError::new(StepErrorCode::ToolUnavailable, message)
                    .retryable(true)
                    .with_effect(CallEffect::None),
            ),
            None,
        ),
        Err(CallError::Cancelled) => (CallReport::NotMade, None),
        Err(CallError::Lost(reason)) => (CallReport::Lost { reason }, None),
        Err(CallError::InputRequired(asked)) => (CallReport::Asked(asked), None),
        Err(CallError::AskedMidway(asked)) => (CallReport::AskedMidway(asked), None),
    }
}
