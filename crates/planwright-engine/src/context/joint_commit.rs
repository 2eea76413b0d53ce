//! One commit of two runs: what a run decides about a call, and the beginning of the run that makes it.
//!
//! The run that decides writes. It tells its decision before that is durable, and waits for what the
//! other run, which it decided to open, adds. Nothing follows from either before both are written.

use crate::port::{Append, AppendError, StoreError};
use tokio::sync::oneshot;

/// What the run that is opened adds to the commit.
#[derive(Debug, Default)]
pub(crate) struct JointPart {
    pub(crate) appends: Vec<Append>,
    /// It may be written a little later than it is acted on: it changes nothing.
    pub(crate) may_be_late: bool,
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
        let failed = |reason: String| AppendError::from(StoreError::Failed(reason));
        let gone = || failed("the run that decided about it stopped".to_owned());
        self.part.send(part).map_err(|_| gone())?;
        self.written.await.map_err(|_| gone())?.map_err(failed)
    }
}
