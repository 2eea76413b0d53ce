//! The one place where what comes from outside is searched for secrets, before it is kept or told
//! to anybody.

use crate::port::{CallError, Outcome, Progress, ProgressSink};
use crate::redaction::known_secrets::Redaction;
use planwright_core::adjust::Adjustment;
use planwright_core::run::{Asked, Question, Reply, Resolution, RunEvent, StepError, StoredValue};
use planwright_core::secret::Redactor;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Masks what came of a call, with everything that is known to be secret by now.
pub(crate) async fn mask_outcome(redaction: &Redaction, outcome: Outcome) -> Outcome {
    let redactor = redaction.redactor();
    if redactor.is_empty() {
        return outcome;
    }
    // A large value takes a while, and other calls go on meanwhile.
    let masked = tokio::task::spawn_blocking(move || match outcome {
        Ok(mut value) => {
            redactor.value(&mut value);
            Ok(value)
        }
        Err(error) => Err(mask_error(&redactor, error)),
    });
    masked.await.unwrap_or_else(|_| {
        Err(CallError::Lost(
            "the result could not be searched for secrets".into(),
        ))
    })
}

fn mask_error(redactor: &Redactor, error: CallError) -> CallError {
    let text = |text: &str| redactor.text(text).into_owned();
    match error {
        CallError::Failed {
            code,
            message,
            retryable,
        } => CallError::Failed {
            code: text(code.as_str()).into(),
            message: text(&message),
            retryable,
        },
        CallError::Unavailable(message) => CallError::Unavailable(text(&message)),
        CallError::Cancelled => CallError::Cancelled,
        CallError::Lost(reason) => CallError::Lost(text(&reason)),
        CallError::InputRequired(asked) => {
            CallError::InputRequired(Box::new(mask_questions(redactor, *asked)))
        }
    }
}

fn mask_questions(redactor: &Redactor, asked: Asked) -> Asked {
    let text = |text: String| redactor.text(&text).into_owned();
    let question = |Question {
                        key,
                        message,
                        mut schema,
                        url,
                    }| {
        redactor.value(&mut schema);
        Question {
            key: text(key),
            message: text(message),
            schema,
            url: url.map(text),
        }
    };
    Asked {
        questions: asked.questions.into_iter().map(question).collect(),
        state: asked.state.map(text),
    }
}

/// Progress is shown at once, so it is masked on its way.
pub(crate) fn mask_progress(redaction: &Redaction, sink: ProgressSink) -> ProgressSink {
    let redaction = redaction.clone();
    ProgressSink::new(move |progress: Progress| {
        let redactor = redaction.redactor();
        let message = progress
            .message
            .map(|message| redactor.text(&message).into_owned());
        sink.report(Progress {
            message,
            ..progress
        });
    })
}

/// Masks the texts that an entry brings from outside. Values of calls are masked already, before
/// they are stored; ids, names and digests are the plan's own words.
pub(crate) fn mask_event(redaction: &Redaction, event: &mut RunEvent) {
    let redactor = redaction.redactor();
    if redactor.is_empty() {
        return;
    }
    let mask = |text: &mut String| {
        if let std::borrow::Cow::Owned(masked) = redactor.text(text) {
            *text = masked;
        }
    };
    match event {
        RunEvent::AttemptFailed { error, .. } | RunEvent::StepFailed { error, .. } => {
            let StepError { code, message, .. } = error;
            if let std::borrow::Cow::Owned(masked) = redactor.text(code.as_str()) {
                *code = masked.into();
            }
            mask(message);
        }
        RunEvent::AttemptInterrupted { reason, .. }
        | RunEvent::OutcomeLost { reason, .. }
        | RunEvent::StepSkipped { reason, .. }
        | RunEvent::RunGivenUp { reason, .. }
        | RunEvent::ApprovalDenied { reason, .. } => mask(reason),
        RunEvent::OutcomeResolved {
            resolution: Resolution::Happened { value },
            ..
        } => {
            mask_stored(&redactor, value);
        }
        RunEvent::InputRequested { asked, .. } => {
            **asked = mask_questions(&redactor, (**asked).clone());
        }
        RunEvent::InputGiven { replies, .. } => {
            replies
                .iter_mut()
                .for_each(|reply| mask_reply(&redactor, reply));
        }
        RunEvent::RunReflected {
            reasoning,
            adjustments,
            ..
        } => {
            mask(reasoning);
            mask_adjustments(&redactor, adjustments);
        }
        RunEvent::AgentTurn { text, calls, .. } => {
            text.iter_mut()
                .for_each(|text| mask_stored(&redactor, text));
            calls
                .iter_mut()
                .for_each(|call| mask_stored(&redactor, &mut call.args));
        }
        RunEvent::CriteriaChecked { checks, used: _ } => {
            checks
                .iter_mut()
                .for_each(|check| mask(&mut check.evidence));
        }
        // Every kind is named, so that a new one has to be decided on.
        RunEvent::RunStarted { .. }
        | RunEvent::ResultReused { .. }
        | RunEvent::AttemptStarted { .. }
        | RunEvent::AttemptSucceeded { .. }
        | RunEvent::AttemptCancelled { .. }
        | RunEvent::OutcomeResolved { .. }
        | RunEvent::ChildParked { .. }
        | RunEvent::ChildResumed { .. }
        | RunEvent::ApprovalRequested { .. }
        | RunEvent::ApprovalGranted { .. }
        | RunEvent::LoopOpened { .. }
        | RunEvent::LoopClosed { .. }
        | RunEvent::RunPaused { .. }
        | RunEvent::RunResumed { .. }
        | RunEvent::RunStalled { .. }
        | RunEvent::CancelRequested { .. }
        | RunEvent::RunCompleted { .. }
        | RunEvent::RunFailed { .. }
        | RunEvent::RunCancelled { .. }
        | RunEvent::ModelUsed { .. }
        | RunEvent::RunAdjusted { .. }
        | RunEvent::UndoOpened { .. }
        | RunEvent::StepUndone { .. } => {}
    }
}

/// What a model proposes is masked like what a tool says. A set that cannot be read back any more
/// is left out whole.
fn mask_adjustments(redactor: &Redactor, adjustments: &mut Vec<Adjustment>) {
    let Ok(mut value) = serde_json::to_value(&*adjustments) else {
        return adjustments.clear();
    };
    redactor.value(&mut value);
    *adjustments = serde_json::from_value(value).unwrap_or_default();
}

fn mask_reply(redactor: &Redactor, reply: &mut Reply) {
    if let Reply::Values(values) = reply {
        let mut masked = Value::Object(std::mem::take(values));
        redactor.value(&mut masked);
        // A value that could not be masked piece by piece became one text.
        *values = match masked {
            Value::Object(values) => values,
            other => Map::from_iter([("masked".to_owned(), other)]),
        };
    }
}

fn mask_stored(redactor: &Redactor, stored: &mut StoredValue) {
    if let StoredValue::Inline(value) = stored {
        let mut masked = Value::clone(value);
        redactor.value(&mut masked);
        *value = Arc::new(masked);
    }
}
