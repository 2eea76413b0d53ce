//! Durations, kept as counts in buckets of an eighth: quantiles of millions in a few kilobytes, at
//! most 12% off.

use std::collections::BTreeMap;
use std::time::Duration;

/// Buckets between one power of two and the next.
const PARTS: u64 = 8;

/// Many durations, of which only their distribution is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Durations {
    /// The number of durations in each bucket. There are at most a few hundred buckets.
    counts: BTreeMap<u16, u64>,
    count: u64,
    total: Duration,
}

impl Durations {
    /// Adds a duration.
    pub fn record(&mut self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        *self.counts.entry(bucket_of(millis)).or_default() += 1;
        self.count += 1;
        self.total = self.total.saturating_add(duration);
    }

    /// Adds the durations of another set.
    pub fn merge(&mut self, other: &Self) {
        for (&bucket, &count) in &other.counts {
            *self.counts.entry(bucket).or_default() += count;
        }
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean of all durations.
    pub fn mean(&self) -> Option<Duration> {
        let millis = self.total.as_millis().checked_div(u128::from(self.count))?;
        Some(Duration::from_millis(
            u64::try_from(millis).unwrap_or(u64::MAX),
        ))
    }

    /// The duration that so many percent did not exceed.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let rank = self
            .count
            .saturating_mul(percent.min(100))
            .div_ceil(100)
            .max(1);
        let mut seen = 0;
        for (&bucket, &count) in &self.counts {
            seen += count;
            if seen >= rank {
                return Some(Duration::from_millis(upper_bound(bucket)));
            }
        }
        None
    }
}

/// Returns the bucket that a duration falls into.
fn bucket_of(millis: u64) -> u16 {
    let scaled = if millis < PARTS {
        millis
    } else {
        let power = u64::from(millis.ilog2());
        let part = (millis >> (power - u64::from(PARTS.ilog2()))) & (PARTS - 1);
        (power - 2) * PARTS + part
    };
    u16::try_from(scaled).expect("there are fewer than 64 powers of two in milliseconds")
}

/// Returns the longest duration that falls into a bucket.
fn upper_bound(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < PARTS {
        return bucket;
    }
    let power = bucket / PARTS + 2;
    let part = bucket % PARTS;
    let width = 1_u64 << (power - 3);
    (1_u64 << power).saturating_add((part + 1) * width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_at_most_an_eighth_below_what_its_step_says() {
        for millis in (0..5_000).chain([u64::from(u32::MAX), 1 << 40, u64::MAX / 2, u64::MAX]) {
            let upper = upper_bound(bucket_of(millis));
            assert!(
                upper >= millis,
                "{millis} fell into a step that ends at {upper}"
            );
            assert!(
                upper - millis <= millis / 8,
                "{millis} is said to be {upper}"
            );
        }
    }

    #[test]
    fn percentiles_are_those_of_the_durations_noted() {
        let mut durations = Durations::default();
        assert_eq!((durations.percentile(50), durations.mean()), (None, None));
        for millis in 1..=7 {
            durations.record(Duration::from_millis(millis));
        }
        assert_eq!(durations.percentile(50), Some(Duration::from_millis(4)));
        assert_eq!(durations.percentile(95), Some(Duration::from_millis(7)));
        assert_eq!(durations.mean(), Some(Duration::from_millis(4)));
    }
}
