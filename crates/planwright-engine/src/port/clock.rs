//! The time and fresh ids.

use planwright_core::time::Timestamp;
use std::fmt;

/// Tells the time. Within one process it never runs backwards.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the time.
    fn now(&self) -> Timestamp;

    /// Waits until [`Clock::now`] has reached `at`.
    fn sleep_until(&self, at: Timestamp) -> super::BoxFuture<'static, ()>;
}

/// Brings randomness for ids.
pub trait Ids: Send + Sync + fmt::Debug {
    /// Returns 64 random bits.
    fn entropy(&self) -> u64;
}
