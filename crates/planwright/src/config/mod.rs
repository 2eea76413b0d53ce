//! `planwright.toml` and what it configures, one table per file.

pub(crate) mod always;
pub(crate) mod dispatch;
pub(crate) mod executors;
pub(crate) mod file;
pub(crate) mod json_text;
pub(crate) mod models;
pub(crate) mod passphrase;
pub(crate) mod prompts;
mod retention;
pub(crate) mod secrets;
pub(crate) mod sign_in;
pub(crate) mod webhooks;
