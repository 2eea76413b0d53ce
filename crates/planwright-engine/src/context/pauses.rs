//! Growing pauses between attempts at something that may work again soon.

use std::time::Duration;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// Pauses that double, until patience has run out.
#[derive(Debug)]
pub struct Pauses {
    next: Duration,
    until: Instant,
}

impl Pauses {
    /// Starts with a short pause; the last one ends when `patience` has run out.
    pub fn within(patience: Duration) -> Self {
        Self {
            next: FIRST,
            until: Instant::now() + patience,
        }
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let pause = self.next.min(left);
        self.next = (self.next * 2).min(LONGEST);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_limit_and_end_with_patience() {
        let patience = Duration::from_secs(30);
        let started = Instant::now();
        let mut pauses = Vec::new();
        for pause in Pauses::within(patience) {
            tokio::time::sleep(pause).await;
            pauses.push(pause);
        }
        assert_eq!(started.elapsed(), patience);
        assert_eq!(pauses[..3], [FIRST, FIRST * 2, FIRST * 4]);
        assert_eq!(pauses.iter().max(), Some(&LONGEST));
    }
}
