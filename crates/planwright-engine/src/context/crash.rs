//! Numbered places where a debug build can be killed, so that tests can crash it at every one of
//! them.
//!
//! With `PLANWRIGHT_CRASH_AT=<n>` the process ends itself with SIGKILL when it passes its n-th
//! point (counted from 1 over all threads), after adding the point's name to the file in
//! `PLANWRIGHT_CRASH_LOG`. With `PLANWRIGHT_STOP_AT=<name>` it stands still, by SIGSTOP, when it first passes the point of
//! that name. With `PLANWRIGHT_CRASH_COUNT=<file>` every point writes how many were
//! passed so far. Release builds contain none of this.

/// Passes a point. `name` says where it is, for the log.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_name: &'static str) {}

/// Returns how many points were passed so far.
#[cfg(not(debug_assertions))]
pub fn count() -> u64 {
    0
}

#[cfg(debug_assertions)]
pub use armed::{count, point};

#[cfg(debug_assertions)]
mod armed {
    use rustix::process::{Signal, getpid, kill_process};
    use std::io::Write as _;
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::Duration;

    const TIME_TO_STOP: Duration = Duration::from_secs(2);

    static PASSED: AtomicU64 = AtomicU64::new(0);
    static STOPPED: AtomicBool = AtomicBool::new(false);
    static SETTINGS: OnceLock<Settings> = OnceLock::new();

    struct Settings {
        crash_at: Option<u64>,
        log: Option<PathBuf>,
        count: Option<PathBuf>,
        stop_at: Option<String>,
    }

    impl Settings {
        fn from_environment() -> Self {
            Self {
                crash_at: std::env::var("PLANWRIGHT_CRASH_AT")
                    .ok()
                    .and_then(|n| n.parse().ok()),
                log: std::env::var_os("PLANWRIGHT_CRASH_LOG").map(Into::into),
                count: std::env::var_os("PLANWRIGHT_CRASH_COUNT").map(Into::into),
                stop_at: std::env::var("PLANWRIGHT_STOP_AT").ok(),
            }
        }
    }

    /// Passes a point. `name` says where it is, for the log.
    pub fn point(name: &'static str) {
        let settings = SETTINGS.get_or_init(Settings::from_environment);
        let passed = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
        // The files are for the test that watches: a failure to write them shows there.
        if let Some(file) = &settings.count {
            drop(std::fs::write(file, passed.to_string()));
        }
        if settings.stop_at.as_deref() == Some(name) && !STOPPED.swap(true, Ordering::SeqCst) {
            signal_self(Signal::STOP);
            // Another thread may be the one that gets the signal: until it runs, this one must not go on.
            std::thread::sleep(TIME_TO_STOP);
        }
        if settings.crash_at == Some(passed) {
            if let Some(file) = &settings.log {
                let log = std::fs::OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(file);
                drop(log.and_then(|mut log| writeln!(log, "{passed} {name}")));
            }
            die();
        }
    }

    /// Returns how many points were passed so far.
    pub fn count() -> u64 {
        PASSED.load(Ordering::SeqCst)
    }

    /// No destructor runs, no buffer is flushed, no other thread gets any further.
    fn die() -> ! {
        signal_self(Signal::KILL);
        std::process::abort()
    }

    fn signal_self(signal: Signal) {
        // There is nothing that could be done about a failure.
        let _ = kill_process(getpid(), signal);
    }
}
