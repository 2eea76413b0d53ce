//! `${name.field[0]["odd key"]}`: one reference, parsed once when the plan is loaded.

use super::StepIx;

/// A parsed reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    pub root: Root,
    pub path: Vec<PathSegment>,
    /// The text between the braces, for messages.
    pub source: Box<str>,
}

/// What the first name of a reference stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Root {
    Variable(Box<str>),
    Step(StepIx),
    /// Resolved only when the call is sent; never stored or shown.
    Secret(Box<str>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum PathSegment {
    /// `.name`: a field, or an index when it is a number and the value is a list.
    Field(Box<str>),
    /// `[0]`
    Index(usize),
}
