//! Finding the call that ends the process: one that was in flight too often when the process died
//! is made while no other is.
//!
//! It is not made to wait for long, and neither is anything else: after a while it is made beside
//! the others, and after a while others are made beside it. Both spans grow with every time the
//! process dies.

use super::limiter::Limiter;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The time a call is made alone, or waits to be, the first time.
const FIRST_SPAN: Duration = Duration::from_secs(2);
const LONGEST_SPAN: Duration = Duration::from_secs(64);

/// The calls of this process, by what they may be made beside.
#[derive(Debug, Default)]
pub(super) struct Presences {
    calls: usize,
    /// One of them is made alone.
    isolated: bool,
    /// Calls that are to be made alone and wait for the others to end, with how often each of them
    /// was alone when the process died.
    waiting: BTreeMap<u64, u16>,
    next_waiting: u64,
}

/// A call in flight. Over when dropped.
#[derive(Debug)]
pub(crate) struct Presence {
    limiter: Arc<Limiter>,
    alone: bool,
}

/// A call that waits to be made alone. Nothing else starts meanwhile.
#[derive(Debug)]
pub(crate) struct Waiting {
    limiter: Arc<Limiter>,
    number: u64,
}

/// The time a call that was in flight `crashes` times when the process died is made alone.
pub(crate) fn isolation_span(crashes: u16) -> Duration {
    FIRST_SPAN
        .saturating_mul(1 << crashes.min(16))
        .min(LONGEST_SPAN)
}

impl Limiter {
    /// Begins a call, unless one is made alone or is about to be.
    pub(crate) fn try_enter(self: &Arc<Self>) -> Option<Presence> {
        let mut presences = self.presences();
        if presences.isolated || !presences.waiting.is_empty() {
            return None;
        }
        presences.calls += 1;
        drop(presences);
        Some(self.presence(false))
    }

    /// Begins a call that is to be made alone, if no other is in flight and none has more reason to
    /// be the next.
    pub(crate) fn try_isolate(self: &Arc<Self>, waiting: &Waiting) -> Option<Presence> {
        let mut presences = self.presences();
        let own = presences.waiting.get(&waiting.number).copied();
        let first = own == presences.waiting.values().max().copied();
        if presences.calls > 0 || !first {
            return None;
        }
        presences.calls += 1;
        presences.isolated = true;
        drop(presences);
        Some(self.presence(true))
    }

    /// Begins a call that waited in vain to be made alone.
    pub(crate) fn enter_after_waiting(self: &Arc<Self>) -> Option<Presence> {
        let mut presences = self.presences();
        if presences.isolated {
            return None;
        }
        presences.calls += 1;
        drop(presences);
        Some(self.presence(false))
    }

    /// Keeps other calls from starting until this one is made. `accused`: how often it was alone
    /// when the process died.
    pub(crate) fn wait_to_be_alone(self: &Arc<Self>, accused: u16) -> Waiting {
        let mut presences = self.presences();
        let number = presences.next_waiting;
        presences.next_waiting += 1;
        presences.waiting.insert(number, accused);
        drop(presences);
        Waiting {
            limiter: Arc::clone(self),
            number,
        }
    }

    fn presence(self: &Arc<Self>, alone: bool) -> Presence {
        Presence {
            limiter: Arc::clone(self),
            alone,
        }
    }

    fn presences(&self) -> std::sync::MutexGuard<'_, Presences> {
        self.presences
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Presence {
    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    /// Lets other calls be made beside this one.
    pub(crate) fn end_isolation(&mut self) {
        if std::mem::take(&mut self.alone) {
            self.limiter.presences().isolated = false;
            self.limiter.notify_freed();
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut presences = self.limiter.presences();
        presences.calls -= 1;
        presences.isolated &= !self.alone;
        let awaited = self.alone || !presences.waiting.is_empty();
        drop(presences);
        if awaited {
            self.limiter.notify_freed();
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.limiter.presences().waiting.remove(&self.number);
        self.limiter.notify_freed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::ConcurrencyLimits;

    #[test]
    fn nothing_is_made_beside_a_call_that_is_made_alone() {
        let limiter = Limiter::new(ConcurrencyLimits::default());
        let waiting = limiter.wait_to_be_alone(0);
        let mut alone = limiter.try_isolate(&waiting).unwrap();
        drop(waiting);
        assert!(limiter.try_enter().is_none());
        let other = limiter.wait_to_be_alone(9);
        assert!(limiter.try_isolate(&other).is_none());
        assert!(limiter.enter_after_waiting().is_none());
        alone.end_isolation();
        assert!(
            limiter.try_isolate(&other).is_none(),
            "it is still in flight"
        );
        assert!(limiter.enter_after_waiting().is_some());
        drop(alone);
        assert!(limiter.try_isolate(&other).is_some());
    }

    #[test]
    fn the_most_accused_is_the_first() {
        let limiter = Limiter::new(ConcurrencyLimits::default());
        let innocent = limiter.wait_to_be_alone(0);
        let accused = limiter.wait_to_be_alone(2);
        assert!(limiter.try_isolate(&innocent).is_none());
        let alone = limiter.try_isolate(&accused).unwrap();
        drop((accused, alone));
        assert!(limiter.try_isolate(&innocent).is_some());
    }

    #[test]
    fn calls_begin_again_when_nobody_waits_any_more() {
        let limiter = Limiter::new(ConcurrencyLimits::default());
        let call = limiter.try_enter().unwrap();
        let waiting = limiter.wait_to_be_alone(0);
        assert!(
            limiter.try_enter().is_none(),
            "the calls in flight end first"
        );
        assert!(limiter.try_isolate(&waiting).is_none());
        drop(waiting);
        assert!(limiter.try_enter().is_some());
        drop(call);
    }

    #[test]
    fn the_span_grows_and_has_an_end() {
        assert_eq!(isolation_span(0), Duration::from_secs(2));
        assert_eq!(isolation_span(2), Duration::from_secs(8));
        assert_eq!(isolation_span(u16::MAX), Duration::from_secs(64));
    }
}
