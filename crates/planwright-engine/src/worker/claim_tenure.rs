//! The time a worker may act on the last word that it had from the store about a claim.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A claim, and when the store last confirmed it. As with the lease of a run, the worker counts from before it asked, on a
/// clock that goes on while the machine sleeps.
#[derive(Debug)]
pub(super) struct ClaimTenure {
    ttl: Duration,
    asked_at: Mutex<Duration>,
}

impl ClaimTenure {
    pub(super) fn new(ttl: Duration, asked_at: Duration) -> Self {
        Self {
            ttl,
            asked_at: Mutex::new(asked_at),
        }
    }

    pub(super) fn ttl(&self) -> Duration {
        self.ttl
    }

    fn age(&self, uptime: Duration) -> Duration {
        let asked_at = self.asked_at.lock().unwrap_or_else(PoisonError::into_inner);
        uptime.saturating_sub(*asked_at)
    }

    /// The store confirmed the claim when it was asked at `asked_at`.
    pub(super) fn confirm(&self, asked_at: Duration) {
        *self.asked_at.lock().unwrap_or_else(PoisonError::into_inner) = asked_at;
    }

    /// Returns whether the call may be made: the other half of the time is for it to be stopped.
    pub(super) fn allows_call(&self, uptime: Duration) -> bool {
        self.age(uptime) < self.ttl / 2
    }

    /// Returns whether the claim has run out, as far as the worker can tell.
    pub(super) fn is_over(&self, uptime: Duration) -> bool {
        self.age(uptime) >= self.ttl
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_claim_is_a_fence() {
        let seconds = Duration::from_secs;
        let tenure = ClaimTenure::new(seconds(30), seconds(100));
        assert!(tenure.allows_call(seconds(114)) && !tenure.allows_call(seconds(115)));
        assert!(!tenure.is_over(seconds(129)) && tenure.is_over(seconds(130)));
        tenure.confirm(seconds(120));
        assert!(tenure.allows_call(seconds(134)) && !tenure.is_over(seconds(149)));
    }
}
