//! Masks what calls give back, before it is stored or shown.

use crate::port::{CallError, LoggedLine, Outcome, Progress, ProgressSink};
use crate::redaction::known_secrets::Redaction;
use planwright_core::run::{Asked, Question};
use planwright_core::secret::Redactor;
use serde_json::Value;

/// Values up to about this size are searched where they are.
const SMALL_BYTES: usize = 8 << 10;
/// What any value counts, besides its text.
const VALUE_BYTES: usize = 8;

/// Masks what came of a call, with everything that is known to be secret by now.
pub(crate) async fn mask_outcome(redaction: &Redaction, outcome: Outcome) -> Outcome {
    let redactor = redaction.redactor();
    if redactor.is_empty() {
        return outcome;
    }
    let mask = move |outcome| match outcome {
        Ok(mut value) => {
            redactor.value(&mut value);
            Ok(value)
        }
        Err(error) => Err(mask_error(&redactor, error)),
    };
    if outcome.as_ref().is_ok_and(is_small) {
        return mask(outcome);
    }
    // A large value takes a while, and other calls go on meanwhile.
    let masked = tokio::task::spawn_blocking(move || mask(outcome));
    masked.await.unwrap_or_else(|_| {
        Err(CallError::Lost(
            "the result could not be searched for secrets".into(),
        ))
    })
}

/// Returns whether a value is searched in less time than it takes to hand it to another thread.
fn is_small(value: &Value) -> bool {
    fn take(value: &Value, left: usize) -> Option<usize> {
        let left = left.checked_sub(VALUE_BYTES)?;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Some(left),
            Value::String(text) => left.checked_sub(text.len()),
            Value::Array(items) => items.iter().try_fold(left, |left, item| take(item, left)),
            Value::Object(fields) => fields.iter().try_fold(left, |left, (key, value)| {
                take(value, left.checked_sub(key.len())?)
            }),
        }
    }
    take(value, SMALL_BYTES).is_some()
}

fn mask_error(redactor: &Redactor, error: CallError) -> CallError {
    let text = |text: &str| redactor.text(text).into_owned();
    match error {
        CallError::Failed {
            code,
            message,
            retryable,
            effect,
        } => CallError::Failed {
            code: text(code.as_str()).into(),
            message: text(&message),
            retryable,
            effect,
        },
        CallError::Unavailable(message) => CallError::Unavailable(text(&message)),
        CallError::Cancelled => CallError::Cancelled,
        CallError::Lost(reason) => CallError::Lost(text(&reason)),
        CallError::InputRequired(asked) => {
            CallError::InputRequired(Box::new(mask_questions(redactor, *asked)))
        }
        CallError::AskedMidway(asked) => {
            CallError::AskedMidway(Box::new(mask_questions(redactor, *asked)))
        }
    }
}

pub(crate) fn mask_questions(redactor: &Redactor, asked: Asked) -> Asked {
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

/// Progress and lines of logs are shown at once, so they are masked on their way.
pub(crate) fn mask_progress(redaction: &Redaction, sink: ProgressSink) -> ProgressSink {
    let redaction = redaction.clone();
    let of_log = redaction.clone();
    let log = sink.clone();
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
    .with_log(move |line: LoggedLine| {
        let redactor = of_log.redactor();
        log.report_log(LoggedLine {
            logger: line
                .logger
                .map(|logger| redactor.text(&logger).into_owned()),
            text: redactor.text(&line.text).into_owned(),
            ..line
        });
    })
}
