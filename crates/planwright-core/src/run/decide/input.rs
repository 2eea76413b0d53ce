//! Asking a person for values, and taking what they say.

use crate::digest::Digest;
use crate::id::AttemptNo;
use crate::json::compile_schema;
use crate::plan::{Action, StepIx};
use crate::principal::{Principal, PrincipalKind};
use crate::run::{
    Asked, CallEffect, Question, Refusal, Reply, Run, RunEvent, RunState, StepError, StepErrorCode,
    StepState, StoredValue, Tally,
};
use crate::time::Timestamp;
use serde_json::{Value, json};

/// The most questions one call may ask at once.
const MAX_QUESTIONS: usize = 20;
/// The number of times one step may ask before it is taken for one that never stops.
const MAX_ROUNDS: usize = 10;
/// The longest text of a question that is shown.
const MAX_BYTES: usize = StoredValue::MAX_INLINE_BYTES;
/// What is wrong with a reply, at most this often.
const MAX_FINDINGS: usize = 20;

impl Run {
    pub(super) fn decide_ask_input(
        &self,
        ix: StepIx,
        message: Option<&str>,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let step = self.step_id(ix).clone();
        let refused = || Refusal::CannotStart {
            step: self.step_id(ix).to_string(),
            state: self.step(ix).status(),
        };
        let Some(Action::Input(input)) = self.definition(ix).action() else {
            return Err(refused());
        };
        let gated = self.needs_approval(ix);
        let ready =
            matches!(self.step(ix), StepState::Ready { approved, .. } if *approved || !gated);
        if self.state != RunState::Running || self.loops(ix) || !ready || self.definition(ix).skip {
            return Err(refused());
        }
        let question = Question {
            key: "input".to_owned(),
            message: message.unwrap_or_default().to_owned(),
            schema: asked_schema(&input.schema),
            url: None,
        };
        let asked = Asked {
            questions: vec![question],
            state: None,
        };
        match too_large(&asked) {
            None => Ok(vec![RunEvent::InputRequested {
                step,
                attempt: None,
                asked: Box::new(asked),
                held: false,
            }]),
            Some(problem) => Ok(vec![RunEvent::StepFailed {
                step,
                error: StepError::new(StepErrorCode::BadQuestion, problem),
            }]),
        }
    }

    /// The tool of a call in flight asks a person first.
    pub(super) fn decide_asked(
        &self,
        ix: StepIx,
        tally: Tally,
        asked: &Asked,
        now: Timestamp,
    ) -> RunEvent {
        let step = self.step_id(ix).clone();
        let attempt = tally.attempts;
        if self.state == RunState::Cancelling {
            return RunEvent::AttemptCancelled { step, attempt };
        }
        let converses = self
            .definition(ix)
            .agent
            .as_deref()
            .is_some_and(|agent| agent.converse);
        if self.answered(ix).len() >= MAX_ROUNDS && !converses {
            let message = format!("the tool asked {MAX_ROUNDS} times and wants to ask again");
            return self.failed(
                ix,
                tally,
                StepError::new(StepErrorCode::TooManyQuestions, message)
                    .with_effect(CallEffect::None),
                now,
            );
        }
        if let Some(problem) = too_large(asked) {
            return self.failed(
                ix,
                tally,
                StepError::new(StepErrorCode::BadQuestion, problem).with_effect(CallEffect::None),
                now,
            );
        }
        RunEvent::InputRequested {
            step,
            attempt: Some(attempt),
            asked: Box::new(asked.clone()),
            held: false,
        }
    }

    /// The tool of a call in flight asks a person, and waits for the answer. Refused if it may not
    /// ask now: it is told that it gets none.
    pub(super) fn decide_hold(
        &self,
        ix: StepIx,
        tally: Tally,
        asked: &Asked,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let goes_on = matches!(self.state, RunState::Running | RunState::Paused);
        let is_free = self.step(ix).question().is_none();
        let asks_too_often = self.answered(ix).len() >= MAX_ROUNDS;
        if !goes_on || !is_free || asks_too_often || too_large(asked).is_some() {
            return Err(Refusal::NothingToAnswer {
                step: self.step_id(ix).to_string(),
                state: self.step(ix).status(),
            });
        }
        Ok(vec![RunEvent::InputRequested {
            step: self.step_id(ix).clone(),
            attempt: Some(tally.attempts),
            asked: Box::new(asked.clone()),
            held: true,
        }])
    }

    /// The attempt that asks, or nothing if the step itself does; and what is asked.
    fn open_question(&self, ix: StepIx) -> Option<(Option<AttemptNo>, &Asked)> {
        let asked = self.step(ix).question()?;
        let attempt = if let StepState::AwaitingInput { attempt, .. } = self.step(ix) {
            *attempt
        } else {
            Some(self.step(ix).tally().attempts)
        };
        Some((attempt, asked))
    }

    pub(super) fn decide_give_input(
        &self,
        step: &str,
        by: &Principal,
        question: Digest,
        replies: &[Reply],
    ) -> Result<Vec<RunEvent>, Refusal> {
        let ix = self.find_step(step)?;
        if by.kind != PrincipalKind::Person {
            return Err(Refusal::MayNotAnswer(by.clone()));
        }
        let Some((attempt, asked)) = self.open_question(ix) else {
            return Err(Refusal::NothingToAnswer {
                step: step.to_owned(),
                state: self.step(ix).status(),
            });
        };
        if asked.digest() != question {
            return Err(Refusal::OtherQuestion {
                step: step.to_owned(),
            });
        }
        self.check_replies(ix, attempt, asked, replies)
            .map_err(|findings| Refusal::BadInput {
                step: step.to_owned(),
                findings,
            })?;
        let step = self.step_id(ix).clone();
        let by = by.clone();
        Ok(vec![RunEvent::InputGiven {
            step,
            attempt,
            by,
            replies: replies.to_vec(),
        }])
    }

    /// Holds every reply against the schema it was asked with, and reports everything that does not
    /// fit.
    fn check_replies(
        &self,
        ix: StepIx,
        attempt: Option<AttemptNo>,
        asked: &Asked,
        replies: &[Reply],
    ) -> Result<(), Vec<String>> {
        if replies.len() != asked.questions.len() {
            return Err(vec![format!(
                "{} questions, {} answers",
                asked.questions.len(),
                replies.len()
            )]);
        }
        let bytes = serde_json::to_vec(replies).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_BYTES {
            return Err(vec![format!(
                "the answer has {bytes} bytes, at most {MAX_BYTES} are kept"
            )]);
        }
        let mut findings = Vec::new();
        for (question, reply) in asked.questions.iter().zip(replies) {
            let Reply::Values(values) = reply else {
                continue;
            };
            let (schema, value) = match (attempt, self.definition(ix).action()) {
                (None, Some(Action::Input(input))) if wraps(&input.schema) => (
                    &input.schema,
                    values.get(VALUE).cloned().unwrap_or_default(),
                ),
                _ => (&question.schema, Value::Object(values.clone())),
            };
            if question.url.is_some() && values.is_empty() {
                continue;
            }
            if !StoredValue::can_keep(&value) {
                findings.push(format!(
                    "it nests deeper than {} levels",
                    StoredValue::MAX_DEPTH
                ));
                continue;
            }
            match compile_schema(schema) {
                Err(problem) => {
                    findings.push(format!(
                        "the schema of the question cannot be used: {problem}"
                    ));
                }
                Ok(schema) => {
                    let validator = match schema.for_value(&value) {
                        Ok(validator) => validator,
                        Err(problem) => {
                            findings.push(problem.to_string());
                            continue;
                        }
                    };
                    let errors = validator.iter_errors(&value);
                    findings.extend(errors.take(MAX_FINDINGS).map(|error| {
                        let place = error.instance_path().to_string();
                        let place = if place.is_empty() {
                            String::new()
                        } else {
                            format!("at {place}: ")
                        };
                        format!("{place}{error}")
                    }));
                }
            }
        }
        if findings.is_empty() {
            Ok(())
        } else {
            Err(findings)
        }
    }

    /// What an `input` step comes to; nothing if the person declined.
    pub(in crate::run) fn input_value(&self, ix: StepIx, replies: &[Reply]) -> Option<Value> {
        let Some(Action::Input(input)) = self.definition(ix).action() else {
            return None;
        };
        match replies {
            [Reply::Values(values)] if wraps(&input.schema) => {
                Some(values.get(VALUE).cloned().unwrap_or_default())
            }
            [Reply::Values(values)] => Some(Value::Object(values.clone())),
            _ => None,
        }
    }
}

/// Under which name a person gives a value that is no object.
const VALUE: &str = "value";

/// Returns whether the values asked for are no object, so that they need a name of their own.
fn wraps(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind != "object",
        Some(Value::Array(kinds)) => !kinds.iter().any(|kind| kind == "object"),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            schema.get("properties").is_none() && schema.get("enum").is_some()
        }
    }
}

fn asked_schema(schema: &Value) -> Value {
    if wraps(schema) {
        json!({"type": "object", "properties": {VALUE: schema}, "required": [VALUE]})
    } else {
        schema.clone()
    }
}

fn too_large(asked: &Asked) -> Option<String> {
    let count = asked.questions.len();
    if count == 0 || count > MAX_QUESTIONS {
        return Some(format!(
            "{count} questions were asked at once, 1 to {MAX_QUESTIONS} can be"
        ));
    }
    if asked
        .questions
        .iter()
        .any(|question| !StoredValue::can_keep(&question.schema))
    {
        return Some(format!(
            "a schema nests deeper than {} levels",
            StoredValue::MAX_DEPTH
        ));
    }
    let bytes = serde_json::to_vec(asked).map_or(usize::MAX, |text| text.len());
    (bytes > MAX_BYTES)
        .then(|| format!("the question has {bytes} bytes, at most {MAX_BYTES} are asked"))
}
