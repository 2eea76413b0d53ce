//! One commit of two runs: what a run decides about a call, and the beginning of the run that makes it.
//!
//! The run that decides writes. It tells its decision before that is durable, and waits for what the
//! other run, which it decided to open, adds. Nothing follows from either before both are written. It does
//! not wait for a run that only reads: that follows its decision, and both may be late.

use crate::port::{Append, AppendError, StoreError};
use tokio::sync::oneshot;

/// What the run that is opened adds to the commit.
#[derive(Debug, Default)]
pub(crate) struct JointPart {
    pub(crate) appends: Vec<Append>,
}

/// The side of the run that writes.
#[derive(Debug)]
pub(crate) struct JointWriter {
    part: oneshot::Receiver<JointPart>,
    written: oneshot::Sender<Result<(), String>>,
}

/// The side of the run that is opened. Dropped, it adds nothing.
#[derive(Debug)]
pub(crate) struct JointOpening {
    part: oneshot::Sender<JointPart>,
    written: oneshot::Receiver<Result<(), String>>,
}

/// Tells the run that is opened what became of its part.
#[derive(Debug)]
pub(crate) struct JointWritten(oneshot::Sender<Result<(), String>>);

/// Makes the two sides of one commit.
pub(crate) fn joint_commit() -> (JointWriter, JointOpening) {
    let (part, parts) = oneshot::channel();
    let (written, told) = oneshot::channel();
    let writer = JointWriter {
        part: parts,
        written,
    };
    let opening = JointOpening {
        part,
        written: told,
    };
    (writer, opening)
}

impl JointWriter {
    /// Waits for what the other run adds. Nothing if it was not opened after all.
    pub(crate) async fn collect(self) -> (Option<JointPart>, JointWritten) {
        (self.part.await.ok(), JointWritten(self.written))
    }

    /// Writes without the other run, which comes after it: it only reads, and its own entries follow.
    pub(crate) fn write_first(self) -> JointWritten {
        JointWritten(self.written)
    }
}

impl JointWritten {
    pub(crate) fn tell(self, written: Result<(), String>) {
        // The other side may be gone; what was written stands.
        drop(self.0.send(written));
    }
}

impl JointOpening {
    /// Adds this to the commit, and returns once all of it is written.
    pub(crate) async fn append(self, part: JointPart) -> Result<(), AppendError> {
        self.part.send(part).map_err(|_| gone())?;
        self.written.await.map_err(|_| gone())?.map_err(failed)
    }

    /// Returns once the decision is written, without this run.
    pub(crate) async fn follow(&mut self) -> Result<(), AppendError> {
        let written = (&mut self.written).await;
        written.map_err(|_| gone())?.map_err(failed)
    }
}

fn failed(reason: String) -> AppendError {
    StoreError::Failed(reason).into()
}

fn gone() -> AppendError {
    failed("the run that decided about it stopped".to_owned())
}
