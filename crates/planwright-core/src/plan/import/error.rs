//! The error for a text that is not a plan, with the location of the problem.

use crate::json::ParseJsonError;
use crate::plan::{Code, Finding};
use std::fmt;

/// The reason a text is not a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at {place}")]
pub struct ReadPlanError {
    /// The code of the finding this error is.
    pub code: Code,
    /// The location of the problem.
    pub place: SourceLocation,
    /// Description of the problem.
    pub message: String,
    /// A remedy, where one is known.
    pub suggestion: Option<String>,
}

/// The location of a problem in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceLocation {
    /// Counted from 1.
    Text {
        /// Line of the text.
        line: usize,
        /// Column of the line.
        column: usize,
    },
    /// A JSON pointer, in the spelling of the text where that is known.
    Pointer(String),
}

impl fmt::Display for SourceLocation {
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
            place: SourceLocation::Pointer(pointer.into()),
            message: message.into(),
            suggestion: None,
        }
    }

    /// The same as a finding, for interfaces that show findings only.
    pub fn into_finding(self) -> Finding {
        let (pointer, message) = match self.place {
            SourceLocation::Pointer(pointer) => (pointer, self.message),
            SourceLocation::Text { .. } => {
                (String::new(), format!("{} at {}", self.message, self.place))
            }
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
            place: SourceLocation::Text { line, column },
            message,
            suggestion,
        }
    }
}
