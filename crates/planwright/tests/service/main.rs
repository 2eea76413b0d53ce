//! The real `planwright serve` over real HTTP.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]

mod chat;
mod client;
mod contract;
mod decisions;
mod doors;
mod lifecycle;
mod overload;
mod planning;
#[path = "../../../planwright-adapters/tests/provider/mod.rs"]
mod provider;
mod reflection;
mod repeat;
mod revocations;
mod shutdown;
mod tls;
mod tried;
mod two;
#[path = "../it/workbench.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod workbench;
