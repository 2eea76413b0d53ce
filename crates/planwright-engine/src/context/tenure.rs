//! The time the owner of a run may act on the last word it had from the store.
//!
//! A lease that could not be renewed may be taken over when it has run out, and the owner cannot
//! see that happen. So it counts by itself, from before it asked, on a clock that goes on while the
//! machine sleeps: after a third of the lease it asks again, after half of it it makes no new call,
//! and after all of it it lets go.

use crate::port::Lease;
use std::time::Duration;

/// A lease, and when the store was asked for it.
#[derive(Debug, Clone)]
pub(crate) struct Tenure {
    lease: Lease,
    ttl: Duration,
    /// By [`Clock::uptime`](crate::port::Clock::uptime), before the store was asked.
    asked_at: Duration,
    /// When the store is asked again.
    ask_at: Duration,
}

impl Tenure {
    /// A lease that the store was asked for at `asked_at`.
    pub(crate) fn new(lease: Lease, ttl: Duration, asked_at: Duration) -> Self {
        Self {
            lease,
            ttl,
            asked_at,
            ask_at: asked_at + ttl / 3,
        }
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Returns whether a call may be made: the store has confirmed the lease within half of its
    /// length. The other half is for the call to be stopped.
    pub(crate) fn allows_calls(&self, uptime: Duration) -> bool {
        uptime.saturating_sub(self.asked_at) < self.ttl / 2
    }

    /// Returns whether the lease has run out, as far as its owner can tell.
    pub(crate) fn is_over(&self, uptime: Duration) -> bool {
        uptime.saturating_sub(self.asked_at) >= self.ttl
    }

    /// The time until the store is to be asked for a renewal.
    pub(crate) fn renewal_due_in(&self, uptime: Duration) -> Duration {
        self.ask_at.saturating_sub(uptime)
    }

    /// The store renewed the lease when it was asked at `asked_at`.
    pub(crate) fn renew(&mut self, lease: Lease, asked_at: Duration) {
        *self = Self::new(lease, self.ttl, asked_at);
    }

    /// The store could not be asked; it is asked again soon.
    pub(crate) fn postpone(&mut self, uptime: Duration) {
        self.ask_at = uptime + self.ttl / 12;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::OwnerId;
    use planwright_core::id::RunId;
    use planwright_core::time::Timestamp;

    const TTL: Duration = Duration::from_secs(30);

    fn tenure(asked_at: u64) -> Tenure {
        let lease = Lease {
            run: RunId::mint(1),
            owner: OwnerId("a".into()),
            epoch: 1,
            expires_at: Timestamp::from_millis(0),
        };
        Tenure::new(lease, TTL, Duration::from_secs(asked_at))
    }

    #[test]
    fn half_a_lease_is_a_fence() {
        let at = |seconds| tenure(100).allows_calls(Duration::from_secs(seconds));
        assert!(at(100) && at(114));
        assert!(!at(115) && !at(10_000));
    }

    #[test]
    fn a_renewal_counts_from_before_it_was_asked_for() {
        let mut tenure = tenure(100);
        let lease = tenure.lease().clone();
        tenure.renew(lease, Duration::from_secs(110));
        assert!(tenure.allows_calls(Duration::from_secs(124)));
        assert!(!tenure.allows_calls(Duration::from_secs(125)));
        assert!(!tenure.is_over(Duration::from_secs(139)));
        assert!(tenure.is_over(Duration::from_secs(140)));
    }

    #[test]
    fn it_is_renewed_well_before_the_fence() {
        let mut tenure = tenure(100);
        let seconds = Duration::from_secs;
        assert_eq!(tenure.renewal_due_in(seconds(104)), seconds(6));
        assert_eq!(tenure.renewal_due_in(seconds(500)), seconds(0));
        tenure.postpone(seconds(110));
        assert!(tenure.renewal_due_in(seconds(110)) < TTL / 6);
    }
}
