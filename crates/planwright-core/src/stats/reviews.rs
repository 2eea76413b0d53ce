//! Counts one plan for the statistics.

use super::ModelCosts;
use crate::journal::Entry;
use crate::principal::PrincipalKind;
use crate::review::ReviewEvent;
use crate::time::Timestamp;
use std::time::Duration;

/// Counters of one plan while its journal is read. Handed over to [`Statistics`](super::Statistics)
/// at its end.
#[derive(Debug, Clone, Default)]
pub struct ReviewTally {
    since: Option<Timestamp>,
    pub(super) versions: u64,
    pub(super) approvals: u64,
    pub(super) by_policy: u64,
    pub(super) rejections: u64,
    pub(super) change_requests: u64,
    pub(super) comments: u64,
    pub(super) expiries: u64,
    /// From the proposal of a version to a person's yes to it.
    pub(super) times_to_approval: Vec<Duration>,
    /// Use of models for writing its versions.
    pub(super) models: ModelCosts,
    proposed_at: Option<Timestamp>,
}

impl ReviewTally {
    /// Counts what happened from then on; everything if absent.
    pub fn since(since: Option<Timestamp>) -> Self {
        Self {
            since,
            ..Self::default()
        }
    }

    /// Counts one entry of the plan's journal.
    pub fn record(&mut self, entry: &Entry<ReviewEvent>) {
        use ReviewEvent as E;
        let counts = u64::from(self.since.is_none_or(|since| entry.at >= since));
        match &entry.event {
            E::PlanProposed { planning, .. } => {
                let used = planning
                    .iter()
                    .filter(|_| counts > 0)
                    .flat_map(|planning| &planning.used);
                used.for_each(|used| self.models.record(used));
                self.versions += counts;
                self.proposed_at = Some(entry.at);
            }
            E::DraftProposed { .. } => self.proposed_at = Some(entry.at),
            E::PlanApproved { by, .. } if by.kind == PrincipalKind::Policy => {
                self.by_policy += counts;
            }
            E::PlanApproved { .. } => {
                self.approvals += counts;
                // The first yes to a version says how long it waited.
                if let Some(proposed_at) = self.proposed_at.take().filter(|_| counts > 0) {
                    self.times_to_approval.push(entry.at.since(proposed_at));
                }
            }
            E::PlanRejected { .. } => self.rejections += counts,
            E::ChangesRequested { .. } => self.change_requests += counts,
            E::CommentAdded { .. } => self.comments += counts,
            E::PlanExpired { .. } | E::ApprovalExpired { .. } => self.expiries += counts,
            E::RunOpened { .. }
            | E::RunRequested { .. }
            | E::RunWrittenOff { .. }
            | E::ApprovalRevoked { .. }
            | E::PlanDeleted { .. }
            | E::PlanArchived { .. }
            | E::PlanUnarchived { .. }
            | E::CommentResolved { .. }
            | E::CommentReopened { .. } => {}
        }
    }
}
