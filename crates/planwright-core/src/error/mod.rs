//! Errors as every face sees them: a kind, a stable code, and a next step.

mod classified;
mod hint;
mod kind;

pub use classified::{ClassifiedError, ErrorClass};
pub use hint::Hint;
pub use kind::ErrorKind;
