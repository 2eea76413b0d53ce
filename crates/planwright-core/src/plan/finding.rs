//! Findings of validation.

use super::Code;
use crate::id::StepId;
use serde::Serialize;
use std::fmt;

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The plan does not run.
    Error,
    /// The plan runs all the same.
    Warning,
}

/// One thing that is wrong, where it is and what may help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The kind of finding.
    pub code: Code,
    /// The severity of its code.
    pub severity: Severity,
    /// The step it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepId>,
    /// JSON pointer into the canonical document.
    pub pointer: String,
    /// The finding in words.
    pub message: String,
    /// A remedy, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl Finding {
    /// Makes a finding without a step or a suggestion.
    pub fn new(code: Code, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            step: None,
            pointer: pointer.into(),
            message: message.into(),
            suggestion: None,
        }
    }

    /// Names the step the finding is about.
    pub fn of_step(mut self, step: Option<&StepId>) -> Self {
        self.step = step.cloned();
        self
    }

    /// Adds a remedy.
    pub fn suggest(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }

    /// Returns whether the finding keeps the plan from running.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(step) = &self.step {
            write!(f, " step {step}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Findings as they are made, bounded: a plan of a hundred thousand broken steps is not a hundred
/// thousand messages.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    left_out: usize,
    blocked: bool,
}

impl Findings {
    const MAX: usize = 1_000;

    pub(crate) fn add(&mut self, finding: Finding) {
        self.blocked |= finding.code.blocks_import();
        // An error takes the place of nothing, but warnings never crowd out errors.
        if self.list.len() < Self::MAX || finding.is_error() && self.list.len() < 2 * Self::MAX {
            self.list.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    /// Makes a suggestion, unless there are too many findings to read: looking for near names is
    /// the one costly part of a finding.
    pub(crate) fn hint(&self, make: impl FnOnce() -> Option<String>) -> Option<String> {
        if self.list.len() < 100 { make() } else { None }
    }

    pub(crate) fn has(&self, code: Code) -> bool {
        self.list.iter().any(|finding| finding.code == code)
    }

    /// Returns whether something was found that no further knowledge can mend.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// All findings, errors first, otherwise in the order they were made.
    pub(crate) fn into_vec(mut self) -> Vec<Finding> {
        self.list.sort_by_key(|finding| finding.severity);
        if self.left_out > 0
            && let Some(last) = self.list.last_mut()
        {
            last.message = format!("{} (and {} more findings)", last.message, self.left_out);
        }
        self.list
    }
}
