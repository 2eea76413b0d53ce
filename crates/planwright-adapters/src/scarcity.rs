//! Waiting for what the system is short of: file descriptors and processes.
//!
//! That none is free says nothing about the step that wanted one, and often passes within a moment,
//! when another call ends. So opening a file or starting a program is tried again for a while
//! before the call fails, and the failure is one that may pass.

use planwright_engine::Pauses;
use rustix::io::Errno;
use std::io;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// After this time the call fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns whether the system was short of descriptors or processes.
pub(crate) fn is_scarce(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN)
    )
}

/// Returns how long to wait after this failure; `None` if waiting does not help, or not any more.
fn pause_after(error: &io::Error, pauses: &mut Pauses) -> Option<Duration> {
    if is_scarce(error) {
        pauses.next()
    } else {
        None
    }
}

/// Tries until there is room, for as long as the call is wanted.
pub(crate) async fn wait_for_room<T>(
    cancelled: &CancellationToken,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let mut pauses = Pauses::within(PATIENCE);
    loop {
        let error = match attempt() {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let Some(pause) = pause_after(&error, &mut pauses) else {
            return Err(error);
        };
        tokio::select! {
            () = cancelled.cancelled() => return Err(error),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The same on a thread that may block.
pub(crate) fn wait_for_room_blocking<T>(
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let mut pauses = Pauses::within(PATIENCE);
    loop {
        let error = match attempt() {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        match pause_after(&error, &mut pauses) {
            Some(pause) => std::thread::sleep(pause),
            None => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails so often with this error, then works.
    fn failing(times: usize, errno: Errno) -> impl FnMut() -> io::Result<usize> {
        let mut tried = 0;
        move || {
            tried += 1;
            if tried > times {
                Ok(tried)
            } else {
                Err(errno.into())
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_system_is_short_of_is_waited_for() {
        let wanted = CancellationToken::new();
        for errno in [Errno::MFILE, Errno::NFILE, Errno::AGAIN] {
            let done = wait_for_room(&wanted, failing(5, errno)).await;
            assert_eq!(done.unwrap(), 6);
        }
        assert_eq!(wait_for_room_blocking(failing(2, Errno::MFILE)).unwrap(), 3);
    }

    #[tokio::test]
    async fn other_errors_and_cancelled_calls_are_not_waited_for() {
        let wanted = CancellationToken::new();
        assert!(
            wait_for_room(&wanted, failing(1, Errno::NOENT))
                .await
                .is_err()
        );
        wanted.cancel();
        assert!(
            wait_for_room(&wanted, failing(1, Errno::MFILE))
                .await
                .is_err()
        );
    }
}
