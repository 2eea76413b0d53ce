//! Text from outside in entries and commands: which there is, and how it is masked.
//!
//! Documents and the variables of a run are not masked. They are what was digested and approved,
//! and what runs: a masked argument would be another call than the one a person agreed to.

use super::call_results::mask_questions;
use planwright_core::adjust::Adjustment;
use planwright_core::review::ReviewEvent;
use planwright_core::run::{Reply, Resolution, RunEvent, StepError, StoredValue};
use planwright_core::secret::Redactor;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Something that is written down and may repeat a secret.
pub(crate) trait EntryText {
    /// Masks the text that came from outside. Ids, names and digests are the plan's own words.
    fn mask(&mut self, redactor: &Redactor);
}

pub(crate) fn mask_text(redactor: &Redactor, text: &mut String) {
    if let Cow::Owned(masked) = redactor.text(text) {
        *text = masked;
    }
}

impl EntryText for RunEvent {
    /// Values of calls are masked already, before they are stored.
    fn mask(&mut self, redactor: &Redactor) {
        let mask = |text: &mut String| mask_text(redactor, text);
        match self {
            Self::AttemptFailed { error, .. } | Self::StepFailed { error, .. } => {
                let StepError { code, message, .. } = error;
                if let Cow::Owned(masked) = redactor.text(code.as_str()) {
                    *code = masked.into();
                }
                mask(message);
            }
            Self::AttemptInterrupted { reason, .. }
            | Self::OutcomeLost { reason, .. }
            | Self::StepSkipped { reason, .. }
            | Self::RunGivenUp { reason, .. }
            | Self::ApprovalDenied { reason, .. } => mask(reason),
            Self::OutcomeResolved {
                resolution: Resolution::Happened { value },
                ..
            } => {
                mask_stored(redactor, value);
            }
            Self::InputRequested { asked, .. } => {
                **asked = mask_questions(redactor, (**asked).clone());
            }
            Self::InputGiven { replies, .. } => {
                replies
                    .iter_mut()
                    .for_each(|reply| mask_reply(redactor, reply));
            }
            Self::RunReflected {
                reasoning,
                adjustments,
                ..
            } => {
                mask(reasoning);
                mask_adjustments(redactor, adjustments);
            }
            Self::AgentTurn { text, calls, .. } => {
                text.iter_mut().for_each(|text| mask_stored(redactor, text));
                calls
                    .iter_mut()
                    .for_each(|call| mask_stored(redactor, &mut call.args));
            }
            Self::CriteriaChecked { checks, used: _ } => {
                checks
                    .iter_mut()
                    .for_each(|check| mask(&mut check.evidence));
            }
            // Every kind is named, so that a new one has to be decided on.
            Self::RunStarted { .. }
            | Self::ResultReused { .. }
            | Self::AttemptStarted { .. }
            | Self::AttemptSucceeded { .. }
            | Self::AttemptCancelled { .. }
            | Self::OutcomeResolved { .. }
            | Self::ChildParked { .. }
            | Self::ChildResumed { .. }
            | Self::ApprovalRequested { .. }
            | Self::ApprovalGranted { .. }
            | Self::LoopOpened { .. }
            | Self::LoopClosed { .. }
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::RunStalled { .. }
            | Self::RunQueued { .. }
            | Self::StepIsolated { .. }
            | Self::IsolationEnded { .. }
            | Self::CancelRequested { .. }
            | Self::RunCompleted { .. }
            | Self::RunFailed { .. }
            | Self::RunCancelled { .. }
            | Self::ModelUsed { .. }
            | Self::RunAdjusted { .. }
            | Self::UndoOpened { .. }
            | Self::StepUndone { .. } => {}
        }
    }
}

impl EntryText for ReviewEvent {
    fn mask(&mut self, redactor: &Redactor) {
        match self {
            Self::PlanRejected { reason, .. } | Self::ChangesRequested { reason, .. } => {
                mask_text(redactor, reason);
            }
            Self::PlanProposed { reason, .. } | Self::ApprovalRevoked { reason, .. } => {
                if let Some(reason) = reason {
                    mask_text(redactor, reason);
                }
            }
            Self::CommentAdded { text, .. } => mask_text(redactor, text),
            Self::DraftProposed { .. }
            | Self::PlanApproved { .. }
            | Self::RunOpened { .. }
            | Self::RunRequested { .. }
            | Self::RunWrittenOff { .. }
            | Self::PlanDeleted { .. }
            | Self::PlanExpired { .. }
            | Self::ApprovalExpired { .. }
            | Self::PlanArchived { .. }
            | Self::PlanUnarchived { .. }
            | Self::CommentResolved { .. }
            | Self::CommentReopened { .. } => {}
        }
    }
}

/// Returns whether the entry has text that a person typed or a program sent: the secrets that the
/// plan names have to be known before it is written.
pub(crate) fn has_typed_text(event: &ReviewEvent) -> bool {
    match event {
        ReviewEvent::PlanRejected { .. }
        | ReviewEvent::ChangesRequested { .. }
        | ReviewEvent::CommentAdded { .. } => true,
        ReviewEvent::PlanProposed { reason, .. } | ReviewEvent::ApprovalRevoked { reason, .. } => {
            reason.is_some()
        }
        ReviewEvent::DraftProposed { .. }
        | ReviewEvent::PlanApproved { .. }
        | ReviewEvent::RunOpened { .. }
        | ReviewEvent::RunRequested { .. }
        | ReviewEvent::RunWrittenOff { .. }
        | ReviewEvent::PlanDeleted { .. }
        | ReviewEvent::PlanExpired { .. }
        | ReviewEvent::ApprovalExpired { .. }
        | ReviewEvent::PlanArchived { .. }
        | ReviewEvent::PlanUnarchived { .. }
        | ReviewEvent::CommentResolved { .. }
        | ReviewEvent::CommentReopened { .. } => false,
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

pub(crate) fn mask_reply(redactor: &Redactor, reply: &mut Reply) {
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

pub(crate) fn mask_stored(redactor: &Redactor, stored: &mut StoredValue) {
    if let StoredValue::Inline(value) = stored {
        let mut masked = Value::clone(value);
        redactor.value(&mut masked);
        *value = Arc::new(masked);
    }
}
