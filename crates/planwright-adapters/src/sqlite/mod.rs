//! The journal in one SQLite file, shared by any number of processes on one machine.
//!
//! One thread per store writes, and commits everything that is queued at once. Nothing that another process can change
//! is remembered between two transactions. What was acknowledged is anchored in a second file, so that a lost tail of
//! the write-ahead log is noticed and reported instead of passing for a shorter journal.

mod anchor;
mod answers;
mod changes;
mod fault;
mod feed;
mod heads;
mod inspect;
mod lease;
mod open;
mod outbox;
mod owner;
mod reader;
mod schema;
mod store;
mod tokens;
mod transaction;
mod writer;

pub use anchor::Loss;
pub use open::{OpenStoreError, Options};
pub use store::SqliteStore;
