//! The real `planwright serve` over real HTTP: what only the program can show. What the service does
//! is tested in its own crate, in process.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]

mod chat;
mod client;
mod decisions;
mod doors;
mod files;
#[path = "../../../planwright-adapters/tests/provider/mod.rs"]
mod provider;
mod repeat;
mod revocations;
mod shutdown;
mod tls;
mod tried;
mod two;
#[path = "../it/workbench.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod workbench;
