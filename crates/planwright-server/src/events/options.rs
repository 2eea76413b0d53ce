//! The limits of event streams.

use std::time::Duration;

/// Everything has a limit. The defaults suit a team.
#[derive(Debug, Clone)]
pub struct EventsOptions {
    /// Streams that are open at once.
    pub max_streams: usize,
    /// Streams of one principal.
    pub max_streams_each: usize,
    /// Streams of everything: each of them folds all plans for itself.
    pub max_global_streams: usize,
    /// Streams of everything that one principal has.
    pub max_global_streams_each: usize,
    /// Events of a plan that are kept in memory while it has a listener.
    pub kept_events: usize,
    /// Their bytes.
    pub kept_bytes: usize,
    /// A listener that comes back is sent at most this many events it missed; behind that it is
    /// told to begin anew.
    pub max_replay: u64,
    /// A stream with nothing to say says so this often.
    pub keep_alive: Duration,
    /// A listener that takes nothing for this long is cut off.
    pub stall_timeout: Duration,
    /// A plan that has no listener is forgotten after this time.
    pub linger: Duration,
}

impl Default for EventsOptions {
    fn default() -> Self {
        Self {
            max_streams: 1_000,
            max_streams_each: 200,
            max_global_streams: 128,
            max_global_streams_each: 8,
            kept_events: 2_048,
            kept_bytes: 2 << 20,
            max_replay: 100_000,
            keep_alive: Duration::from_secs(15),
            stall_timeout: Duration::from_secs(30),
            linger: Duration::from_secs(60),
        }
    }
}
