//! Ids that come out the same in every execution.

use crate::port::Ids;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts up from a start value. The ids are readable and reproducible, and not secret at all.
#[derive(Debug, Default)]
pub struct SequentialIds(AtomicU64);

impl SequentialIds {
    /// Counts on from this number.
    pub fn starting_at(first: u64) -> Self {
        Self(AtomicU64::new(first))
    }
}

impl Ids for SequentialIds {
    fn entropy(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Ids that cannot be guessed, from the randomness the standard library seeds its hash maps with.
#[derive(Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn entropy(&self) -> u64 {
        use std::hash::{BuildHasher as _, RandomState};
        RandomState::new().hash_one(0_u64)
    }
}
