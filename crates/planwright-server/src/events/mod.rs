//! Events for listeners: replayed from the journal, then live, without a gap and without a
//! repetition.
//!
//! One task follows the journal for all listeners. A plan that has a listener has a topic: its
//! events are folded once, and the latest are kept as they are sent. Listeners are woken by a
//! number, never handed a payload: they take what comes after the last event they were sent, at
//! their own pace. A listener that is too slow is cut off and comes back with the number of its
//! last event.

pub(crate) mod frame;
pub mod fuzzing;
mod global;
mod global_id;
mod hub;
mod inbox_watch;
mod listen;
mod open_streams;
mod options;
mod plan_stream;
mod progress;
mod reset;
mod response;
mod routes;
mod topic;
mod wire;

pub use hub::Events;
pub(crate) use inbox_watch::InboxWatch;
pub(crate) use listen::{inbox_stream, job_stream};
pub(crate) use open_streams::StreamPermit;
pub use options::EventsOptions;
pub(crate) use response::stream_response;
pub(crate) use routes::{full, routes};
pub(crate) use wire::{Wanted, negotiate_format};
