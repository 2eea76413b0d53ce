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
    shown: watch::Sender<Shown>,
    /// The number of sleepers that wait for each instant.
    sleepers: Mutex<BTreeMap<Wake, usize>>,
}

/// The time that the clock shows.
#[derive(Debug, Clone, Copy)]
struct Shown {
    now: Timestamp,
    uptime: Duration,
    awake: Duration,
}

/// The time that a sleeper waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wake {
    At(Timestamp),
    Awake(Duration),
}

impl Wake {
    fn is_due(self, shown: &Shown) -> bool {
        match self {
            Self::At(at) => shown.now >= at,
            Self::Awake(awake) => shown.awake >= awake,
        }
    }

    /// The time of day at which it is due, if nothing jumps.
    fn expected_at(self, shown: &Shown) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Awake(awake) => shown.now.plus(awake.saturating_sub(shown.awake)),
        }
    }
}

impl ClockHands {
    fn sleepers(&self) -> MutexGuard<'_, BTreeMap<Wake, usize>> {
        self.sleepers
            .lock()
            .expect("nothing panics while it holds the sleepers")
    }
}

impl ManualClock {
    /// Starts the clock at this time, where it stays.
    pub fn at(now: Timestamp) -> Self {
        let shown = Shown {
            now,
            uptime: Duration::ZERO,
            awake: Duration::ZERO,
        };
        Self(Arc::new(ClockHands {
            shown: watch::Sender::new(shown),
            sleepers: Mutex::default(),
        }))
    }

    /// Lets time pass until `at`. An earlier instant changes nothing: time never runs backwards.
    pub fn set(&self, at: Timestamp) {
        self.advance(at.since(self.now()));
    }

    /// Lets time pass, and wakes everything that is due.
    pub fn advance(&self, by: Duration) {
        self.0.shown.send_modify(|shown| {
            shown.now = shown.now.plus(by);
            shown.uptime += by;
            shown.awake += by;
        });
    }

    /// Lets the machine sleep for so long: the time of day goes on, and nothing else happens.
    pub fn suspend(&self, by: Duration) {
        self.0.shown.send_modify(|shown| {
            shown.now = shown.now.plus(by);
            shown.uptime += by;
        });
    }

    /// Sets the time of day, forwards or backwards, as an operator does. No time passes.
    pub fn set_time_of_day(&self, now: Timestamp) {
        self.0.shown.send_modify(|shown| shown.now = now);
    }

    /// The earliest instant a task sleeps for, so that a simulation can jump straight to it.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        let shown = *self.0.shown.borrow();
        let sleepers = self.0.sleepers();
        sleepers.keys().map(|wake| wake.expected_at(&shown)).min()
    }

    fn sleep_for(&self, wake: Wake) -> BoxFuture<'static, ()> {
        if wake.is_due(&self.0.shown.borrow()) {
            return Box::pin(async {});
        }
        // Registered before the first poll: a simulation that asks for the next wake-up must not
        // miss it.
        let sleeper = Sleeper::new(Arc::clone(&self.0), wake);
        let mut shown = self.0.shown.subscribe();
        Box::pin(async move {
            shown
                .wait_for(|shown| wake.is_due(shown))
                .await
                .expect("the sleeper keeps the clock alive");
            drop(sleeper);
        })
    }
}

/// Registers a sleeper for as long as its future lives.
struct Sleeper {
    clock: Arc<ClockHands>,
    wake: Wake,
}

impl Sleeper {
    fn new(clock: Arc<ClockHands>, wake: Wake) -> Self {
        *clock.sleepers().entry(wake).or_default() += 1;
        Self { clock, wake }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let mut sleepers = self.clock.sleepers();
        if let Some(count) = sleepers.get_mut(&self.wake) {
            *count -= 1;
            if *count == 0 {
                sleepers.remove(&self.wake);
            }
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.0.shown.borrow().now
    }

    fn uptime(&self) -> Duration {
        self.0.shown.borrow().uptime
    }

    fn awake(&self) -> Duration {
        self.0.shown.borrow().awake
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        self.sleep_for(Wake::At(at))
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.sleep_for(Wake::Awake(self.awake() + time))
    }
}

/// A wait for a time of day looks at the clock this often: the clock may be set meanwhile, and
/// timers stand still while the machine sleeps.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The clocks of the machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Makes a clock that shows the time of the system.
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
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
        // A clock before 1970 is not worth an error: every instant is then counted from there.
        let since_epoch = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_millis(0).plus(since_epoch)
    }

    fn uptime(&self) -> Duration {
        let read = rustix::time::clock_gettime(UPTIME);
        Duration::new(
            u64::try_from(read.tv_sec).unwrap_or_default(),
            u32::try_from(read.tv_nsec).unwrap_or_default(),
        )
    }

    fn awake(&self) -> Duration {
        // Rust's monotonic clock is the one that stands still in suspend, and tokio's timers go by
        // it.
        self.started.elapsed()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        let clock = *self;
        Box::pin(async move {
            loop {
                let left = at.since(clock.now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(LOOK_AGAIN)).await;
            }
        })
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        // A timer would come a millisecond late.
        if time.is_zero() {
            return Box::pin(async {});
        }
        Box::pin(tokio::time::sleep(time))
    }
}

/// The clock that goes on while the machine sleeps.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UPTIME: rustix::time::ClockId = rustix::time::ClockId::Boottime;
/// Elsewhere the monotonic clock of the system is the one that goes on.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const UPTIME: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

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

    #[test]
    fn time_of_day_is_set_either_way_and_only_it_jumps() {
        let clock = ManualClock::at(Timestamp::from_millis(10));
        clock.set_time_of_day(Timestamp::from_millis(3));
        assert_eq!(clock.now(), Timestamp::from_millis(3));
        assert_eq!(
            (clock.uptime(), clock.awake()),
            (Duration::ZERO, Duration::ZERO)
        );
    }

    #[tokio::test]
    async fn a_machine_that_sleeps_wakes_those_who_wait_for_a_time_of_day() {
        let clock = ManualClock::at(Timestamp::from_millis(0));
        let day = tokio::spawn(clock.sleep_until(Timestamp::from_millis(50)));
        let pause = clock.sleep(Duration::from_millis(50));
        clock.suspend(Duration::from_millis(60));
        day.await.unwrap();
        let pause = tokio::spawn(pause);
        tokio::task::yield_now().await;
        assert!(!pause.is_finished(), "no time passed for it");
        clock.advance(Duration::from_millis(50));
        pause.await.unwrap();
        assert_eq!(clock.uptime(), Duration::from_millis(110));
        assert_eq!(clock.awake(), Duration::from_millis(50));
    }

    #[test]
    fn the_system_clock_reads_the_time_of_day_every_time() {
        let clock = SystemClock::new();
        let since_epoch = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap();
        let shown = Duration::from_millis(u64::try_from(clock.now().as_millis()).unwrap());
        assert!(shown.abs_diff(since_epoch) < Duration::from_secs(5));
        assert!(
            clock.uptime() > clock.awake(),
            "the machine is up for longer than this test"
        );
    }

    #[tokio::test]
    async fn the_system_clock_sleeps_until_the_instant_asked_for() {
        let clock = SystemClock::new();
        let at = clock.now().plus(Duration::from_millis(2));
        clock.sleep_until(at).await;
        assert!(clock.now() >= at);
    }
}
