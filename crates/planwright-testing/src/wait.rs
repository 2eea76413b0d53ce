//! Waiting for what another process or thread does.

use std::time::{Duration, Instant};

/// How long another process may take to get somewhere, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Looking costs the starting of a process in many tests.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Looks again and again until `done`, and panics when that takes too long.
#[track_caller]
pub fn wait_until(awaited: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    let mut pause = Duration::from_millis(1);
    while !done() {
        assert!(since.elapsed() < PATIENCE, "waited too long for {awaited}");
        std::thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}
