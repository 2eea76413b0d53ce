//! Leases: which process may write to a run.

use super::{AcquireError, AppendError, StoreError};
use crate::port::BoxFuture;
use planwright_core::id::RunId;
use planwright_core::time::Timestamp;
use std::fmt;
use std::time::Duration;

/// One process (or one engine) that may own runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(pub String);

/// The right to write to a run, while it lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The run that may be written to.
    pub run: RunId,
    /// The process that may write.
    pub owner: OwnerId,
    /// Grows by one with every new owner. Every record of the run carries it.
    pub epoch: u64,
    /// By the store's clock.
    pub expires_at: Timestamp,
}

/// The condition of an append on the run's lease, checked in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRule {
    /// Plan streams have no owner: the expected head alone decides.
    None,
    /// The run does not exist yet: take the first lease (epoch 1).
    Open {
        /// The process that opens the run.
        owner: OwnerId,
        /// Time until the lease ends without being renewed.
        ttl: Duration,
    },
    /// The lease must still be held with this epoch.
    Held {
        /// Epoch of the writer's lease.
        epoch: u64,
    },
    /// As [`LeaseRule::Held`], and given back with this append.
    Release {
        /// Epoch of the writer's lease.
        epoch: u64,
    },
}

/// Gives each run at most one owner at a time.
pub trait Leases: Send + Sync + fmt::Debug {
    /// Takes over a run whose owner is gone: the lease ran out, was released, or its process is
    /// dead. The new lease has the next epoch.
    fn acquire<'a>(
        &'a self,
        run: &'a RunId,
        owner: &'a OwnerId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AcquireError>>;

    /// Extends a lease; [`AppendError::Fenced`] if it is no longer ours.
    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AppendError>>;

    /// Gives a lease back. Not an error if it is no longer ours.
    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The owner of a lease that was not given back, whether it has run out or not, if the store
    /// knows that its process is alive. A store that cannot know says that there is none.
    fn living_owner<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<OwnerId>, StoreError>>;

    /// Returns whether the store knows that the process of this owner has ended: its leases can be
    /// taken over at once. In doubt it has not, and they have to run out. Cheap enough to ask every
    /// second.
    fn is_dead<'a>(&'a self, owner: &'a OwnerId) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// The current lease of a run, if it is held by a live owner.
    fn lease<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Lease>, StoreError>>;
}
