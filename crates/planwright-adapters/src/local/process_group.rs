//! A command and everything it started, ended together.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::process::ExitStatus;
use tokio::process::Child;
use tokio::task::JoinHandle;

/// A child that leads its own process group. Signals go to the group.
///
/// The child is not reaped before the group is: as long as its process is there, if only as a
/// zombie, the number of the group cannot come to mean another group. Dropping ends the group. A
/// process that made a group of its own has left; it is not found again.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    child: Child,
    /// `None` once the number may mean something else.
    id: Option<Pid>,
    ended: JoinHandle<()>,
}

impl ProcessGroup {
    /// Takes a child that was started with `process_group(0)`.
    pub(crate) fn of(child: Child) -> Self {
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let ended = tokio::task::spawn_blocking(move || {
            let Some(id) = id else { return };
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(id), options), Err(Errno::INTR)) {}
        });
        Self { child, id, ended }
    }

    /// Waits until the child itself has ended. Others of the group may live on. May be called
    /// again.
    pub(crate) async fn ended(&mut self) {
        if !self.ended.is_finished()
            && let Err(error) = (&mut self.ended).await
        {
            tracing::warn!(%error, "the watch over a command was stopped");
        }
    }

    /// The number of the group, which is the child's own. `None` if the child was gone at once.
    pub(crate) fn id(&self) -> Option<Pid> {
        self.id
    }

    /// Asks the whole group to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends what is left of the group, then learns how the child ended.
    pub(crate) async fn kill(mut self) -> std::io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.ended().await;
        // A process that the child started between the signal and its own end is caught by the
        // second one.
        self.signal(Signal::KILL);
        self.id = None;
        self.child.wait().await
    }

    fn signal(&self, signal: Signal) {
        let Some(id) = self.id else { return };
        match kill_process_group(id, signal) {
            // No process is left to hear it.
            Ok(()) | Err(Errno::SRCH | Errno::PERM) => {}
            Err(error) => tracing::warn!(%error, "a process group could not be signalled"),
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
