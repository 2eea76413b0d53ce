//! When a notice that did not arrive is sent again.

use std::time::Duration;

/// The pauses before each attempt, as Standard Webhooks has them: about four days in all.
const DELAYS: [u64; 10] = [
    0,
    5,
    5 * 60,
    30 * 60,
    2 * 60 * 60,
    5 * 60 * 60,
    10 * 60 * 60,
    14 * 60 * 60,
    20 * 60 * 60,
    24 * 60 * 60,
];

/// After so many attempts a notice is given up.
pub const MAX_ATTEMPTS: u32 = 10;

/// An endpoint may ask for a longer pause, but not for one that outlasts everything.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The pause after `attempts` attempts, or `None` if that was the last. Up to a fifth is added by
/// chance, so that those who failed together do not come back together.
pub fn delay(attempts: u32, retry_after: Option<Duration>, entropy: u64) -> Option<Duration> {
    let seconds = DELAYS.get(usize::try_from(attempts).ok()?)?;
    let planned = Duration::from_secs(*seconds);
    let jitter = planned.mul_f64(0.2 * unit(entropy));
    Some(
        (planned + jitter)
            .max(retry_after.unwrap_or_default())
            .min(LONGEST),
    )
}

/// Between 0 and 1.
fn unit(entropy: u64) -> f64 {
    f64::from(u32::try_from(entropy >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_grow_and_end_after_ten_attempts() {
        let pauses: Vec<u64> = (1..MAX_ATTEMPTS)
            .map(|n| delay(n, None, 0).unwrap().as_secs())
            .collect();
        assert_eq!(
            pauses,
            [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]
        );
        assert_eq!(delay(MAX_ATTEMPTS, None, 0), None);
        assert_eq!(delay(u32::MAX, None, 0), None);
    }

    #[test]
    fn chance_adds_at_most_a_fifth() {
        assert_eq!(delay(1, None, u64::MAX), Some(Duration::from_secs(6)));
        assert_eq!(delay(9, None, u64::MAX), Some(LONGEST));
    }

    #[test]
    fn an_endpoint_can_ask_for_a_longer_pause_but_not_for_a_shorter_one() {
        let asked = |seconds| {
            delay(2, Some(Duration::from_secs(seconds)), 0)
                .unwrap()
                .as_secs()
        };
        assert_eq!(asked(1), 300);
        assert_eq!(asked(900), 900);
        assert_eq!(asked(u64::MAX), LONGEST.as_secs());
    }
}
