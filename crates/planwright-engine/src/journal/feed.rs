//! The end of the feed of all records.

use crate::port::{FeedOf, Journal, Position, StoreError};

/// Returns the position of the last record there is. The store has no index of it, and positions
/// only grow, so it is found by doubling and halving.
pub(crate) async fn end_of_feed(store: &dyn Journal) -> Result<Position, StoreError> {
    let mut beyond: u64 = 1;
    while has_after(store, beyond).await? {
        beyond = beyond.saturating_mul(2);
    }
    let mut before = beyond / 2;
    // There is something after `before` (or nothing at all), and nothing after `beyond`.
    while before < beyond {
        let middle = before + (beyond - before) / 2;
        if has_after(store, middle).await? {
            before = middle + 1;
        } else {
            beyond = middle;
        }
    }
    Ok(Position(before))
}

async fn has_after(store: &dyn Journal, position: u64) -> Result<bool, StoreError> {
    Ok(!store
        .feed(&FeedOf::All, Position(position), 1)
        .await?
        .is_empty())
}
