//! Event streams over real sockets, from a service that runs in this process over a real database:
//! here its limits can be made small, and it can be stopped and started again between two events.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]

mod client;
mod everything;
mod load;
mod plan;
mod world;
