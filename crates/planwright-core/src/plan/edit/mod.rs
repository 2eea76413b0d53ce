//! Changes to a plan document, as people and programs ask for them.
//!
//! An edit knows the document and nothing else: whether the result is a sound plan is said by
//! validation, once, about the whole.

mod apply;
mod error;
mod error_kind;
mod operation;
mod path;
mod place;

pub use error::EditError;
pub use operation::Edit;
pub(super) use path::segment;
