//! The time and fresh ids.

use super::BoxFuture;
use planwright_core::time::Timestamp;
use std::fmt;
use std::time::Duration;

/// Tells the time in three ways, which jump differently.
///
/// What is written down or expires goes by [`Clock::now`]: that is the time people and other
/// machines mean. How long something may take goes by one of the others, which cannot be set.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time of day. It jumps, in either direction, when the clock of the machine is set, and
    /// forwards when the machine wakes up.
    fn now(&self) -> Timestamp;

    /// The time since some instant, including the time for which the machine slept. It never runs
    /// backwards and cannot be set. For leases: another machine may count while this one sleeps.
    fn uptime(&self) -> Duration;

    /// As [`Clock::uptime`], but it stands still while the machine sleeps. For timeouts and
    /// retries: a call that could not answer because its machine slept has not taken too long.
    fn awake(&self) -> Duration;

    /// Waits until [`Clock::now`] has reached `at`, whichever way it gets there.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()>;

    /// Waits until [`Clock::awake`] has advanced by `time`.
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()>;
}

/// Brings randomness for ids.
pub trait Ids: Send + Sync + fmt::Debug {
    /// Returns 64 random bits.
    fn entropy(&self) -> u64;
}
