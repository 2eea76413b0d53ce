//! The health of a store: whether a write would work, and whether none ever will again.

use super::StoreError;
use crate::port::BoxFuture;
use planwright_core::time::Timestamp;
use std::fmt;
use tokio::sync::watch;

/// Tells whether the store can be written.
pub trait StoreHealth: Send + Sync + fmt::Debug {
    /// Makes a small write that means nothing, durable on return. It fails where any other write
    /// would.
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The time at which the store was adopted from elsewhere, if it was. What was agreed to before
    /// that was agreed to in another place, and is no consent here.
    fn adopted_at(&self) -> Option<Timestamp> {
        None
    }

    /// Holds the reason once the store has failed for good ([`StoreError::Lost`]); it does not
    /// change any more then. While a caller holds the receiver the store looks after itself: a
    /// failure is noticed within a second, also when nothing is written.
    fn failure(&self) -> watch::Receiver<Option<String>>;
}

/// Waits until the store has failed for good, and returns why.
pub(crate) async fn failed_for_good(failure: &mut watch::Receiver<Option<String>>) -> String {
    let reason = failure.wait_for(Option::is_some).await;
    let reason = reason.ok().and_then(|reason| reason.clone());
    match reason {
        Some(reason) => reason,
        // The store that could say so is gone; the next writer is told.
        None => std::future::pending().await,
    }
}
