//! Notices: what the outside is told about plans and runs, by webhooks.
//!
//! They are read from the feed of the journal, so they tell only what is durable, and a restart
//! forgets none. An endpoint that fails touches no run and no other endpoint.

mod belonging;
mod courier;
mod endpoint;
mod notice;
mod schedule;

pub use belonging::Belongs;
pub use courier::{Courier, CourierWatch, DeliveryOutcome};
pub use endpoint::{SendNoticeError, Webhook};
pub use notice::{About, KINDS, Notice, notices_of};
pub use schedule::{MAX_ATTEMPTS, delay};
