//! The form in which lives are written down: streams of hash-chained records of versioned events.
//!
//! A store keeps [`Record`]s and never looks inside. [`Entry`] is a record with its event decoded.

mod entry;
mod record;

pub use entry::{Cause, DecodeEntryError, Entry, Journaled, VERSION, decode, encode};
pub use record::{ChainError, Head, Record, StreamName, check_chain};
