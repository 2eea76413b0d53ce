//! The end of the terminal that the program was started from.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Received hangups (SIGHUP). None comes if the program was told to ignore them, as `nohup` does:
/// then it goes on without its terminal.
#[derive(Debug)]
pub(crate) struct Hangup(Option<Signal>);

impl Hangup {
    pub(crate) fn listen() -> io::Result<Self> {
        // Who listens is not ignored any more, and asking afterwards would say so.
        static IGNORED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        if *IGNORED.get_or_init(is_ignored) {
            return Ok(Self(None));
        }
        signal(SignalKind::hangup()).map(|signal| Self(Some(signal)))
    }

    pub(crate) async fn next(&mut self) {
        match &mut self.0 {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    }
}

/// The standard library cannot ask for the disposition of a signal; Linux shows it.
fn is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .is_some_and(|mask| ignores_hangup(mask.trim()))
}

/// SIGHUP is the first signal, and so the last bit.
fn ignores_hangup(mask: &str) -> bool {
    u64::from_str_radix(mask, 16).is_ok_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_says_whether_hangups_are_ignored() {
        assert!(ignores_hangup("0000000000001001"));
        assert!(!ignores_hangup("0000000000001000"));
        assert!(!ignores_hangup(""));
    }
}
