//! The program on several processes, with servers that fail: services and workers on a primary with a standby, behind
//! PgBouncer, and with brokers that lose everything. What happened is judged by a log that a tool of the tests writes.
//!
//! `PLANWRIGHT_FAULTS` says how many faults there are, `PLANWRIGHT_FAULTS_SEED` which.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]
#![expect(
    clippy::print_stdout,
    reason = "what was done, and the seed that shows a failure again, belong to a test's output"
)]

mod audit;
mod cluster;
mod faults;
mod orders;
mod pooled;
mod process;
mod stopped;
mod stream;
