//! A plan and all that was said about it, folded from its journal.

use super::{
    Approval, OpenedRun, Rejection, RequestedRun, ReviewStage, ReviewState, Thread, Version,
    VersionSummary, WrittenOffRun,
};
use crate::id::{PlanId, RunId};
use crate::secret::SecretName;
use crate::time::Timestamp;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// A plan and all that was said about it, folded from its journal.
#[derive(Debug, Clone)]
pub struct Review {
    pub(super) id: PlanId,
    pub(super) seq: u64,
    /// The last entry that is no remark.
    pub(super) settled_seq: u64,
    pub(super) versions: Vec<VersionSummary>,
    /// The last of them, with its content.
    pub(super) current: Option<Arc<Version>>,
    /// The versions before it, as far as they are kept to be compared with it.
    pub(super) earlier: VecDeque<Arc<Version>>,
    /// The last version with safeguards that is not kept any more; 0 if there is none.
    pub(super) forgotten: u32,
    /// Secrets that any version refers to.
    pub(super) secret_names: BTreeSet<SecretName>,
    /// Parts of the context that any version keeps beside the journal.
    pub(super) stored_parts: BTreeSet<String>,
    pub(super) state: ReviewState,
    pub(super) approvals: Vec<Approval>,
    pub(super) rejections: Vec<Rejection>,
    pub(super) change_requests: Vec<Rejection>,
    pub(super) threads: Vec<Thread>,
    pub(super) runs: Vec<OpenedRun>,
    pub(super) written_off: Vec<WrittenOffRun>,
    /// The run that is wanted once the plan is approved.
    pub(super) requested: Option<Box<RequestedRun>>,
    pub(super) updated_at: Timestamp,
}

impl Review {
    /// A plan is sent back at most this often before a person has to step in.
    pub const MAX_REJECTIONS: usize = 3;

    /// The plan's id.
    pub fn id(&self) -> &PlanId {
        &self.id
    }

    /// The number of the last entry applied.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The number of the last entry that is about more than comments and requests: those change neither
    /// what the plan does nor where it stands.
    pub fn settled_seq(&self) -> u64 {
        self.settled_seq
    }

    /// The state of the plan in its review.
    pub fn state(&self) -> ReviewState {
        self.state
    }

    /// The stage of the current version, also of an archived plan; `None` once it is deleted.
    pub fn stage(&self) -> Option<ReviewStage> {
        self.state.stage()
    }

    /// Returns true if the plan was put away. It is kept, and left out of lists.
    pub fn is_archived(&self) -> bool {
        matches!(self.state, ReviewState::Archived(_))
    }

    /// The version that is current.
    pub fn current(&self) -> &Version {
        self.current
            .as_deref()
            .expect("a plan's journal begins with its first version")
    }

    /// The version with this number, without its content.
    pub fn version(&self, number: u32) -> Option<&VersionSummary> {
        self.versions
            .iter()
            .find(|version| version.number == number)
    }

    /// Every version without its content, oldest first.
    pub fn versions(&self) -> &[VersionSummary] {
        &self.versions
    }

    /// The names of the secrets that any version refers to.
    pub fn secret_names(&self) -> &BTreeSet<SecretName> {
        &self.secret_names
    }

    /// The names of the parts of the context that any version keeps beside the journal.
    pub fn stored_parts(&self) -> &BTreeSet<String> {
        &self.stored_parts
    }

    /// Every approval that was ever given, oldest first.
    pub fn approvals(&self) -> &[Approval] {
        &self.approvals
    }

    /// Every rejection, oldest first.
    pub fn rejections(&self) -> &[Rejection] {
        &self.rejections
    }

    /// Lists the changes that were asked for without a rejection, oldest first.
    pub fn change_requests(&self) -> &[Rejection] {
        &self.change_requests
    }

    /// The runs that were opened and not written off, oldest first.
    pub fn runs(&self) -> &[OpenedRun] {
        &self.runs
    }

    /// The runs that were given up because their journals are damaged, oldest first.
    pub fn written_off(&self) -> &[WrittenOffRun] {
        &self.written_off
    }

    /// Returns whether the run was given up because its journal is damaged.
    pub fn is_written_off(&self, run: &RunId) -> bool {
        self.written_off
            .iter()
            .any(|written_off| written_off.opened.run == *run)
    }

    /// The time at which the first version was written down.
    pub fn created_at(&self) -> Timestamp {
        self.versions
            .first()
            .map_or(self.updated_at, |version| version.at)
    }

    /// The time at which the last entry was written down.
    pub fn updated_at(&self) -> Timestamp {
        self.updated_at
    }
}
