//! The outcome of a version: sent back, or opened for a run.

use crate::digest::Digest;
use crate::id::RunId;
use crate::principal::Principal;
use crate::time::Timestamp;

/// A version that was sent back, and what has to change.
#[derive(Debug, Clone)]
pub struct Rejection {
    /// The version that was shown.
    pub version: u32,
    /// The principal who sent it back.
    pub by: Principal,
    /// The change that is asked for, in their words.
    pub reason: String,
    /// The time at which it was sent back.
    pub at: Timestamp,
}

/// A run whose journal is damaged, and which a person ended: what it did after the damage is not
/// known.
#[derive(Debug, Clone)]
pub struct WrittenOffRun {
    /// The run as it was opened.
    pub opened: OpenedRun,
    /// The person who accepted the loss.
    pub by: Principal,
    /// The damage that was found.
    pub loss: String,
    /// The time at which it was written off.
    pub at: Timestamp,
}

/// A run that spent the approvals of a version.
#[derive(Debug, Clone)]
pub struct OpenedRun {
    /// The run's id.
    pub run: RunId,
    /// The version it executes.
    pub version: u32,
    /// The digest of what it executes, with the tools as they were then.
    pub digest: Digest,
    /// The time at which it was opened.
    pub at: Timestamp,
}
