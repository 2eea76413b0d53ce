//! A child and everything it started, ended together.

use super::children::{Children, signal_group};
use super::leftovers;
use super::record::{Found, Record};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use std::process::ExitStatus;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::task::JoinHandle;

/// A child that leads its own process group. Signals go to the group.
///
/// The child is not reaped before the group is: as long as its process is there, if only as a
/// zombie, the number of the group cannot come to mean another group. Dropping ends the group. A
/// process that made a group of its own is found by its mark: when the call is stopped, and when we
/// end.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    children: Children,
    number: u64,
    mark: String,
    child: Child,
    /// `None` once the number may mean something else.
    id: Option<Pid>,
    record: Option<Record>,
    ended: JoinHandle<()>,
}

/// The ends of the pipes to a child that are ours.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

impl ProcessGroup {
    /// Takes a child that was started with `process_group(0)`. `id` is its number, unless it was
    /// gone at once.
    pub(super) fn new(
        children: Children,
        number: u64,
        mark: String,
        child: Child,
        id: Option<Pid>,
        record: Option<Record>,
    ) -> Self {
        let ended = tokio::task::spawn_blocking(move || {
            let Some(id) = id else { return };
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(id), options), Err(Errno::INTR)) {}
        });
        Self {
            children,
            number,
            mark,
            child,
            id,
            record,
            ended,
        }
    }

    pub(crate) fn take_pipes(&mut self) -> Pipes {
        Pipes {
            stdin: self.child.stdin.take(),
            stdout: self.child.stdout.take(),
            stderr: self.child.stderr.take(),
        }
    }

    /// The processes that this one is one of.
    pub(crate) fn children(&self) -> &Children {
        &self.children
    }

    /// Waits until the child itself has ended. Others of the group may live on. May be called
    /// again.
    pub(crate) async fn wait_until_ended(&mut self) {
        if !self.ended.is_finished()
            && let Err(error) = (&mut self.ended).await
        {
            tracing::warn!(%error, "the watch over a child was stopped");
        }
    }

    /// Asks the whole group to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends what is left of the group, then learns how the child ended.
    pub(crate) async fn kill(mut self) -> std::io::Result<ExitStatus> {
        self.kill_group().await;
        let status = self.reap().await;
        self.record.take().into_iter().for_each(Record::remove);
        status
    }

    /// Ends the group and the processes that left it: nothing that the child started goes on.
    pub(crate) async fn kill_with_escaped(mut self) -> std::io::Result<ExitStatus> {
        self.kill_group().await;
        let status = self.reap().await;
        self.children.end_marked(self.mark.clone()).await;
        self.record.take().into_iter().for_each(Record::remove);
        status
    }

    async fn kill_group(&mut self) {
        self.signal(Signal::KILL);
        self.wait_until_ended().await;
        // A process that the child started between the signal and its own end is caught by the
        // second one.
        self.signal(Signal::KILL);
    }

    async fn reap(&mut self) -> std::io::Result<ExitStatus> {
        self.forget();
        self.child.wait().await
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            signal_group(id, signal);
        }
    }

    fn forget(&mut self) {
        if let Some(id) = self.id.take() {
            self.children.forget(self.number, id);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        self.forget();
        if let Some(record) = self.record.take() {
            end_apart(record.into_found(std::mem::take(&mut self.mark)));
        }
    }
}

/// No call waits for the end of a group that is dropped, so a thread of its own does. If it gets no
/// thread or no time, the record stays for the next owner of the run.
fn end_apart(found: Found) {
    let ending = std::thread::Builder::new().spawn(move || {
        if let Err(error) = leftovers::end(&found) {
            tracing::warn!(%error, "cannot end the processes of an abandoned call");
        }
    });
    if let Err(error) = ending {
        tracing::warn!(%error, "the end of a call that was given up is not watched");
    }
}
