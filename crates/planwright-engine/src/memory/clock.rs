//! Two clocks: one that is set by hand, one that follows the world.

use crate::port::{BoxFuture, Clock};
use planwright_core::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// A clock that stands still until it is advanced. Clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<ClockHands>);

#[derive(Debug)]
struct ClockHands {
    now: watch::Sender<Timestamp>,
    /// How many sleepers wait for each instant.
    sleepers: Mutex<BTreeMap<Timestamp, usize>>,
}

impl ClockHands {
    fn sleepers(&self) -> MutexGuard<'_, BTreeMap<Timestamp, usize>> {
        self.sleepers
            .lock()
            .expect("nothing panics while it holds the sleepers")
    }
}

impl ManualClock {
    /// Starts the clock at this time, where it stays.
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(ClockHands {
            now: watch::Sender::new(now),
            sleepers: Mutex::default(),
        }))
    }

    /// Moves the clock to `at`. It never runs backwards: an earlier instant changes nothing.
    pub fn set(&self, at: Timestamp) {
        self.0.now.send_if_modified(|now| {
            let later = at > *now;
            if later {
                *now = at;
            }
            later
        });
    }

    /// Moves the clock on, and wakes everything that is due.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }

    /// The earliest instant a task sleeps for, so that a simulation can jump straight to it.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        self.0.sleepers().keys().next().copied()
    }
}

/// Registers a sleeper for as long as its future lives.
struct Sleeper {
    clock: Arc<ClockHands>,
    at: Timestamp,
}

impl Sleeper {
    fn new(clock: Arc<ClockHands>, at: Timestamp) -> Self {
        *clock.sleepers().entry(at).or_default() += 1;
        Self { clock, at }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let mut sleepers = self.clock.sleepers();
        if let Some(count) = sleepers.get_mut(&self.at) {
            *count -= 1;
            if *count == 0 {
                sleepers.remove(&self.at);
            }
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.now.borrow()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        if self.now() >= at {
            return Box::pin(async {});
        }
        // Registered before the first poll: a simulation that asks for the next wake-up must not
        // miss it.
        let sleeper = Sleeper::new(Arc::clone(&self.0), at);
        let mut now = self.0.now.subscribe();
        Box::pin(async move {
            now.wait_for(|now| *now >= at)
                .await
                .expect("the sleeper keeps the clock alive");
            drop(sleeper);
        })
    }
}

/// The world's clock, read once and then advanced by the monotonic one, so that it never runs
/// backwards when the operator sets the time.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    wall: Timestamp,
    anchor: Instant,
}

impl SystemClock {
    /// Makes a clock that shows the time of the system.
    pub fn new() -> Self {
        // A clock before 1970 is not worth an error: every instant is then counted from there.
        let since_epoch = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            wall: Timestamp::from_millis(0).plus(since_epoch),
            anchor: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.wall.plus(self.anchor.elapsed())
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        let clock = *self;
        Box::pin(async move {
            // The timer and this clock round differently: a wake-up may be a hair too early.
            loop {
                let left = at.since(clock.now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left).await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_when_the_clock_is_advanced_far_enough() {
        let clock = ManualClock::at(Timestamp::from_millis(10));
        let sleep = tokio::spawn(clock.sleep_until(Timestamp::from_millis(20)));
        assert_eq!(clock.next_wakeup(), Some(Timestamp::from_millis(20)));
        clock.advance(Duration::from_millis(9));
        tokio::task::yield_now().await;
        assert!(!sleep.is_finished());
        clock.advance(Duration::from_millis(1));
        sleep.await.unwrap();
        assert_eq!(clock.next_wakeup(), None);
    }

    #[test]
    fn a_manual_clock_never_runs_backwards() {
        let clock = ManualClock::at(Timestamp::from_millis(10));
        clock.set(Timestamp::from_millis(3));
        assert_eq!(clock.now(), Timestamp::from_millis(10));
    }

    #[test]
    fn a_dropped_sleep_is_forgotten() {
        let clock = ManualClock::at(Timestamp::from_millis(0));
        let at = Timestamp::from_millis(5);
        let one = clock.sleep_until(at);
        let two = clock.sleep_until(at);
        drop(one);
        assert_eq!(clock.next_wakeup(), Some(at));
        drop(two);
        assert_eq!(clock.next_wakeup(), None);
    }

    #[tokio::test]
    async fn the_system_clock_sleeps_until_the_instant_asked_for() {
        let clock = SystemClock::new();
        let at = clock.now().plus(Duration::from_millis(2));
        clock.sleep_until(at).await;
        assert!(clock.now() >= at);
    }
}
