//! The signals that stop a process which runs until it is told to: the first in good order, the second at once.

use crate::command::execution::hangup::Hangup;
use crate::exit::{Exit, Failure};
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) struct StopSignals {
    keyboard: Signal,
    terminate: Signal,
    hangup: Hangup,
}

impl StopSignals {
    /// Listens from now on. `what` is stopped by them, for people.
    pub(super) fn listen(what: &str) -> Result<Self, Failure> {
        let listening = || {
            io::Result::Ok(Self {
                keyboard: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hangup: Hangup::listen()?,
            })
        };
        listening().map_err(|error| {
            let problem = format!("cannot listen for the signals that stop the {what}: {error}");
            Failure::new(Exit::RunFailed, problem)
        })
    }

    pub(super) async fn first(&mut self) {
        tokio::select! {
            _ = self.keyboard.recv() => {}
            _ = self.terminate.recv() => {}
            () = self.hangup.next() => {}
        }
    }

    /// A terminal that is closed counts only as the first: it may say so more than once.
    pub(super) async fn second(&mut self) {
        tokio::select! {
            _ = self.keyboard.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
