//! Ctrl-C, SIGTERM and the end of the terminal while a run executes or a question is open.

use crate::command::execution::hangup::Hangup;
use crate::exit::{Exit, Failure};
use crate::workspace::app::{App, user};
use planwright_core::id::RunId;
use planwright_engine::RunCommand;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Received signals, Ctrl-C and SIGTERM: the first pauses the run, the second cancels it. The end of
/// the terminal pauses it too, and never cancels it: it may be told more than once.
#[derive(Debug)]
pub(crate) struct Interrupts {
    signals: tokio::sync::Mutex<Signals>,
    count: AtomicU8,
    /// How many of them were SIGTERM.
    terminations: AtomicU8,
}

#[derive(Debug)]
struct Signals {
    keyboard: Signal,
    terminate: Signal,
    hangup: Hangup,
}

impl Interrupts {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let failed = |error| {
            Failure::new(
                Exit::RunFailed,
                format!("cannot listen for signals: {error}"),
            )
        };
        let signals = Signals {
            keyboard: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
            hangup: Hangup::listen().map_err(failed)?,
        };
        Ok(Self {
            signals: tokio::sync::Mutex::new(signals),
            count: AtomicU8::new(0),
            terminations: AtomicU8::new(0),
        })
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Waits for the next signal and returns how many were received.
    pub(crate) async fn next_signal(&self) -> u8 {
        let mut signals = self.signals.lock().await;
        let Signals {
            keyboard,
            terminate,
            hangup,
        } = &mut *signals;
        tokio::select! {
            _ = keyboard.recv() => {}
            _ = terminate.recv() => {
                self.terminations.fetch_add(1, Ordering::Relaxed);
            }
            () = hangup.next(), if !self.is_interrupted() => {}
        }
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sends what the signals mean to the run. `say` writes where progress does not paint over it.
    pub(crate) async fn forward_to_run(&self, app: &App, run: &RunId, say: &dyn Fn(&str)) {
        loop {
            let command = match self.next_signal().await {
                1 => {
                    say("pausing: running calls finish; press Ctrl-C again to cancel");
                    RunCommand::Pause { by: user() }
                }
                _ => {
                    say("cancelling: running calls are stopped");
                    RunCommand::Cancel { by: user() }
                }
            };
            let at_once = self.terminations.load(Ordering::Relaxed) > 1;
            // Sent on its own, so that the next signal is heard while this one is obeyed.
            let app = app.clone();
            let run = run.clone();
            tokio::spawn(async move {
                let obeyed = app.engine.runs().command(&run, command).await;
                if at_once {
                    // The sender of a second SIGTERM does not wait. The calls have been told, so they
                    // know that they were stopped.
                    app.context.children.kill().await;
                }
                obeyed
            });
        }
    }
}

/// Asks on a blocking thread, so that Ctrl-C is handled while the question is open.
pub(crate) async fn ask_unless_interrupted<T: Send + 'static>(
    interrupts: &Interrupts,
    question: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<Option<T>, Failure> {
    tokio::select! {
        answered = tokio::task::spawn_blocking(question) => {
            answered.map_err(|error| Failure::refused(format!("cannot ask: {error}")))?.map(Some)
        }
        _ = interrupts.next_signal() => Ok(None),
    }
}
