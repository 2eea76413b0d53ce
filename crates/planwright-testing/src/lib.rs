//! What the tests of several crates share: a dice, a provider that answers from a script, an HTTP
//! client, and the real program in a workspace of its own.
//!
//! Only tests depend on it, and it depends on no other crate of the workspace: the core's tests use
//! it too, and a dependency on the core would compile that a second time.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]

pub mod bank;
pub mod brokers;
mod commits;
pub mod connect;
pub mod deceptive;
pub mod dice;
pub mod http;
mod keeper;
pub mod mcp_client;
pub mod objects;
pub mod peers;
pub mod pgbouncer;
pub mod postgres;
pub mod provider;
pub mod proxy;
pub mod service;
pub mod spellings;
pub mod steps;
pub mod terminal;
pub mod tmux;
pub mod wait;
pub mod workbench;
