//! The real program with a real language model on this machine, and a real server for its tools.
//! The model is far too small to plan well: this shows that nothing between the program and a model
//! is mocked away.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]

mod answers;
mod plans;
mod server;
mod watcher;
mod work;
