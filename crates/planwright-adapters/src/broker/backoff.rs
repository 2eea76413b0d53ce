//! Growing pauses between attempts to reach a broker.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
/// A broker that returns is noticed after this time at the latest.
const LONGEST: Duration = Duration::from_secs(4);

/// The pauses of one series of attempts.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Returns the next pause. Workers that lost their broker together do not return together: a
    /// pause is between half of its length and all of it.
    pub(super) fn next_pause(&mut self) -> Duration {
        let longest = LONGEST.min(FIRST * 2_u32.saturating_pow(self.failures.min(16)));
        self.failures = self.failures.saturating_add(1);
        let random = getrandom::u32().unwrap_or(u32::MAX);
        let share = f64::from(random) / f64::from(u32::MAX);
        longest / 2 + (longest / 2).mul_f64(share)
    }

    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_begin_again() {
        let mut backoff = Backoff::default();
        let first = backoff.next_pause();
        assert!(first <= FIRST, "{first:?}");
        let last = (0..100).map(|_| backoff.next_pause()).last().unwrap();
        assert!(last >= LONGEST / 2 && last <= LONGEST, "{last:?}");
        backoff.reset();
        assert!(backoff.next_pause() <= FIRST);
    }
}
