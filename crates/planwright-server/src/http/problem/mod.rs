//! Errors as RFC 9457 problem documents. The HTTP status of every error is decided here and nowhere
//! else: `status.rs` is a table over the kinds of errors.

mod classified;
mod code;
mod document;
mod next_step;
mod status;

pub use code::ProblemCode;
pub use document::{HttpResult, Problem};
pub(in crate::http) use document::{OwnForm, layer};
