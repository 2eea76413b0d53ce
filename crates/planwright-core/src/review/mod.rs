//! The life of a plan: versions, approvals, rejections, the runs it was opened for.
//!
//! Consent lives here: [`Review::decide`] opens a run only against an approval of exactly the digest that is about
//! to run, and spends it in the same entry.

mod apply;
mod decide;
mod event;
mod status;

pub use decide::{Command, Refusal};
pub use event::ReviewEvent;
pub use status::PlanStatus;

use crate::digest::Digest;
use crate::id::{PlanId, RunId};
use crate::plan::Document;
use crate::principal::{Assurance, Principal};
use crate::time::Timestamp;
use std::sync::Arc;

/// A plan and all that was said about it, folded from its journal.
#[derive(Debug, Clone)]
pub struct Review {
    id: PlanId,
    seq: u64,
    versions: Vec<Version>,
    state: ReviewState,
    approvals: Vec<Approval>,
    rejections: Vec<Rejection>,
    runs: Vec<OpenedRun>,
    updated_at: Timestamp,
}

/// Where the current version stands with the people who decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewState {
    Proposed,
    Approved,
    Rejected,
    /// Rejected too often: a person has to step in.
    NeedsReview,
    Deleted,
}

/// One immutable version of the document.
#[derive(Debug, Clone)]
pub struct Version {
    pub number: u32,
    pub document: Arc<Document>,
    /// With the tools known when it was proposed.
    pub digest: Digest,
    pub by: Principal,
    pub at: Timestamp,
}

/// A person's or policy's yes to one digest.
#[derive(Debug, Clone)]
pub struct Approval {
    pub version: u32,
    pub digest: Digest,
    pub by: Principal,
    pub assurance: Assurance,
    pub at: Timestamp,
    /// The run that used it up.
    pub spent_by: Option<RunId>,
    /// The version was rejected after all, before anything ran.
    pub taken_back: bool,
}

impl Approval {
    /// Whether a run of this version may still spend it.
    fn is_open(&self, version: u32) -> bool {
        self.version == version && self.spent_by.is_none() && !self.taken_back
    }
}

#[derive(Debug, Clone)]
pub struct Rejection {
    pub version: u32,
    pub by: Principal,
    pub reason: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct OpenedRun {
    pub run: RunId,
    pub version: u32,
    pub digest: Digest,
    pub at: Timestamp,
}

impl Review {
    /// A plan is sent back at most this often before a person has to step in.
    pub const MAX_REJECTIONS: usize = 3;

    pub fn id(&self) -> &PlanId {
        &self.id
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    pub fn state(&self) -> ReviewState {
        self.state
    }

    /// The version that is current.
    pub fn current(&self) -> &Version {
        self.versions.last().expect("a plan's journal begins with its first version")
    }

    pub fn version(&self, number: u32) -> Option<&Version> {
        self.versions.iter().find(|version| version.number == number)
    }

    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    pub fn approvals(&self) -> &[Approval] {
        &self.approvals
    }

    pub fn rejections(&self) -> &[Rejection] {
        &self.rejections
    }

    pub fn runs(&self) -> &[OpenedRun] {
        &self.runs
    }

    pub fn created_at(&self) -> Timestamp {
        self.versions.first().map_or(self.updated_at, |version| version.at)
    }

    pub fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    /// The approval a run of exactly this digest may spend.
    pub fn usable_approval(&self, digest: &Digest) -> Option<&Approval> {
        let version = self.current().number;
        self.approvals.iter().rev().find(|approval| approval.is_open(version) && approval.digest == *digest)
    }
}
