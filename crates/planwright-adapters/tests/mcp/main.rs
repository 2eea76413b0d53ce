//! The MCP client against servers that behave, and against servers that do not.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]

mod beside;
mod hostile;
mod http;
mod killed;
mod lifecycle;
mod own_connections;
mod questions;
mod recalled;
mod scene;
mod tools;
mod values;
