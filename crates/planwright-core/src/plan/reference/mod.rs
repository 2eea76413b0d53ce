//! `${references}`: parsed once when the plan is read, bound to what they stand for, resolved when
//! a step is called.

mod binding;
mod json_text;
mod literal;
mod names;
mod parse;
mod secret_names;
mod template;

pub(super) use binding::{Shared, StepTemplates, is_loop_name, parse_outputs, parse_references};
pub(crate) use json_text::read_json_text;
pub(crate) use literal::escape;
pub use literal::literal;
pub(super) use names::{Meaning, Names, TooMuchWork, Upstream};
pub(super) use parse::is_name;
pub use parse::{ParseReferenceError, PathSegment, Reference, Root};
pub use template::{ResolveError, Segment, Template, Values};
pub(super) use template::{has_markers, names_secret};
