//! Conversations with language models, as data. Nothing in here asks one.
//!
//! Everything a model writes is text or JSON that is checked like any other input: it is never a
//! template, a command or an approval.

mod json_text;
mod message;
mod usage;

pub use json_text::find_json;
pub use message::{AnswerSchema, Message, OfferedTool, WantedCall};
pub use usage::{Cost, ModelRole, ModelUse, ParseModelRoleError, TokenUsage};
