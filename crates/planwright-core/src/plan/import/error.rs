//! Why a text is not a plan, and where in the text the problem is.

use crate::json::ParseJsonError;
use crate::plan::{Code, Finding};
use std::fmt;

/// Why a text is not a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at {place}")]
pub struct ReadPlanError {
    pub code: Code,
    pub place: Place,
    pub message: String,
    pub suggestion: Option<String>,
}

/// Where in the text the problem is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Counted from 1.
    Text { line: usize, column: usize },
    /// A JSON pointer, in the spelling of the text where that is known.
    Pointer(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { line, column } => write!(f, "line {line}, column {column}"),
            Self::Pointer(pointer) if pointer.is_empty() => f.write_str("the top of the document"),
            Self::Pointer(pointer) => f.write_str(pointer),
        }
    }
}

impl ReadPlanError {
    pub(in crate::plan) fn at(
        code: Code,
        pointer: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            place: Place::Pointer(pointer.into()),
            message: message.into(),
            suggestion: None,
        }
    }

    /// The same as a finding, for interfaces that show findings only.
    pub fn into_finding(self) -> Finding {
        let (pointer, message) = match self.place {
            Place::Pointer(pointer) => (pointer, self.message),
            Place::Text { .. } => (String::new(), format!("{} at {}", self.message, self.place)),
        };
        Finding::new(self.code, pointer, message).suggest(self.suggestion)
    }
}

impl From<ParseJsonError> for ReadPlanError {
    fn from(error: ParseJsonError) -> Self {
        let ParseJsonError {
            line,
            column,
            message,
            suggestion,
        } = error;
        Self {
            code: Code::Syntax,
            place: Place::Text { line, column },
            message,
            suggestion,
        }
    }
}
