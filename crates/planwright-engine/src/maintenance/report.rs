//! The report of one pass of maintenance: what was noted, and when to look again.

use planwright_core::id::{PlanId, RunId};
use planwright_core::time::Timestamp;
use std::fmt;

/// Something that was due and has been noted, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MaintenanceNotice {
    PlanExpired {
        plan: PlanId,
        after_days: u32,
    },
    ApprovalExpired {
        plan: PlanId,
    },
    RunStalled {
        plan: PlanId,
        run: RunId,
        since: Timestamp,
        completed: usize,
        steps: usize,
    },
    /// No person approved the step in time, so it failed.
    StepExpired {
        plan: PlanId,
        run: RunId,
        step: String,
    },
    PlanArchived {
        plan: PlanId,
    },
    PlanDeleted {
        plan: PlanId,
    },
}

impl MaintenanceNotice {
    pub fn plan(&self) -> &PlanId {
        match self {
            Self::PlanExpired { plan, .. }
            | Self::ApprovalExpired { plan }
            | Self::RunStalled { plan, .. }
            | Self::StepExpired { plan, .. }
            | Self::PlanArchived { plan }
            | Self::PlanDeleted { plan } => plan,
        }
    }
}

impl fmt::Display for MaintenanceNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlanExpired { plan, after_days } => {
                write!(
                    f,
                    "plan `{plan}` expired: it was not touched for {after_days} days"
                )
            }
            Self::ApprovalExpired { plan } => {
                write!(
                    f,
                    "the approval of plan `{plan}` expired: it was not used in time"
                )
            }
            Self::RunStalled {
                plan,
                run,
                since,
                completed,
                steps,
            } => write!(
                f,
                "plan `{plan}` is stalled: no process has executed {run} since {since}, {completed}/{steps} steps completed"
            ),
            Self::StepExpired { plan, run, step } => {
                write!(
                    f,
                    "step `{step}` of plan `{plan}` ({run}) expired: it was not approved in time"
                )
            }
            Self::PlanArchived { plan } => write!(f, "plan `{plan}` was archived"),
            Self::PlanDeleted { plan } => write!(f, "plan `{plan}` was deleted from the archive"),
        }
    }
}

/// What was noted, and when something will be due again as far as can be told now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaintenanceReport {
    pub notices: Vec<MaintenanceNotice>,
    pub next_at: Option<Timestamp>,
}

impl MaintenanceReport {
    pub(super) fn look_again_at(&mut self, at: Timestamp) {
        self.next_at = Some(self.next_at.map_or(at, |next| next.min(at)));
    }
}
