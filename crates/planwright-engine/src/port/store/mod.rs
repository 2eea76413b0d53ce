//! The store: six ports that one database serves together.
//!
//! They are apart because they can be replaced apart: another database replaces all of them, a
//! message broker only [`Changes`] or [`Mailbox`]. Functions ask for the narrowest one they need.

mod changes;
mod error;
mod health;
mod journal;
mod leases;
mod mailbox;
mod stream_index;

pub use changes::Changes;
pub use error::{AcquireError, AppendError, StoreError};
pub use health::StoreHealth;
pub(crate) use health::failed_for_good;
pub use journal::{
    Append, Brought, FeedOf, Journal, MAX_PAGE_BYTES, Placed, Position, is_last_feed_page,
    is_last_page,
};
pub use leases::{Lease, LeaseRule, Leases, OwnerId};
pub use mailbox::{Mailbox, MailboxMessage, MessageId};
pub use stream_index::{StreamCounts, StreamIndex, StreamInfo, StreamStatus};

/// A database that serves all six ports. Everything it acknowledges survives a crash.
///
/// An append is one transaction over all of them: its records, the lease it needs, the cached
/// status it changes and the messages it answers are written together or not at all.
pub trait Store: Journal + StreamIndex + Leases + Mailbox + Changes + StoreHealth {}

impl<T: Journal + StreamIndex + Leases + Mailbox + Changes + StoreHealth> Store for T {}
