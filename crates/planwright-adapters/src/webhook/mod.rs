//! Webhooks: notices sent to HTTP endpoints, signed as Standard Webhooks has it.
//!
//! The operator names the endpoints, and still nothing is sent to an address inside the operator's
//! network unless that was allowed: a name can change what it means.

mod body;
mod endpoint;
mod options;
mod sign;

pub use body::Format;
pub use endpoint::HttpWebhook;
pub use options::{InvalidWebhook, WebhookOptions};
