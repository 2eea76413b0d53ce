//! Waiting to a fraction of a millisecond.
//!
//! Tokio's own timer is a millisecond or two late, which adds up in plans that are meant to show
//! how little is lost between steps. One thread of its own, asleep until the next alarm, is exact
//! enough for any number of them.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

type Alarms = BTreeMap<(Instant, u64), oneshot::Sender<()>>;

#[derive(Default)]
struct Clock {
    alarms: Mutex<Alarms>,
    changed: Condvar,
}

/// Takes the alarm back once the future that waits for it is dropped.
struct Pending((Instant, u64));

static CLOCK: OnceLock<Option<&'static Clock>> = OnceLock::new();

/// Completes once `wait` has passed.
pub(super) async fn after(wait: Duration) {
    if wait.is_zero() {
        return;
    }
    let Some(clock) = *CLOCK.get_or_init(Clock::start) else {
        return tokio::time::sleep(wait).await;
    };
    let (ring, rung) = oneshot::channel();
    let pending = clock.set(Instant::now() + wait, ring);
    // An error would mean that the thread is gone, which it never is.
    drop(rung.await);
    drop(pending);
}

impl Clock {
    /// Starts the thread. `None` if the system gives none: then Tokio's timer has to do.
    fn start() -> Option<&'static Self> {
        let clock: &'static Self = Box::leak(Box::default());
        let thread = std::thread::Builder::new().name("planwright-alarm".to_owned());
        thread.spawn(|| clock.ring()).ok().map(|_| clock)
    }

    fn alarms(&self) -> MutexGuard<'_, Alarms> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, at: Instant, ring: oneshot::Sender<()>) -> Pending {
        let mut alarms = self.alarms();
        let mut key = (at, 0);
        while alarms.contains_key(&key) {
            key.1 += 1;
        }
        alarms.insert(key, ring);
        let first = alarms
            .first_key_value()
            .is_some_and(|(first, _)| *first == key);
        drop(alarms);
        if first {
            self.changed.notify_one();
        }
        Pending(key)
    }

    fn ring(&self) {
        let mut alarms = self.alarms();
        loop {
            let now = Instant::now();
            match alarms.first_entry() {
                Some(next) if next.key().0 <= now => drop(next.remove().send(())),
                Some(next) => {
                    let wait = next.key().0 - now;
                    let woken = self.changed.wait_timeout(alarms, wait);
                    alarms = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => {
                    alarms = self
                        .changed
                        .wait(alarms)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(Some(clock)) = CLOCK.get() {
            drop(clock.alarms().remove(&self.0));
        }
    }
}
