//! The real program for a while: under constant load, killed and stopped at random, on a disk that
//! fails and under a clock that jumps. What happened is judged by a log that the tools write.
//!
//! The same tests run for seconds in a check and for minutes in a proof: `cargo xtask prove` sets how
//! long.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]
#![expect(
    clippy::print_stdout,
    reason = "what was measured, and the seed that shows a failure again, belong to a test's output"
)]

mod chaos;
mod clock;
mod disk;
mod effects;
mod processes;
mod settle;
mod soak;
mod world;
