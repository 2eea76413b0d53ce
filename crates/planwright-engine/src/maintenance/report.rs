//! The report of one pass of maintenance: what was noted, and when to look again.

use planwright_core::id::{PlanId, RunId};
use planwright_core::time::Timestamp;
use std::fmt;

/// Something that was due and has been noted, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MaintenanceNotice {
    /// A plan was not touched for too long, so it expired.
    PlanExpired {
        /// The plan.
        plan: PlanId,
        /// The limit in days.
        after_days: u32,
    },
    /// An approval was not used in time.
    ApprovalExpired {
        /// The plan.
        plan: PlanId,
    },
    /// No process executes a run that has not ended.
    RunStalled {
        /// The plan.
        plan: PlanId,
        /// The run.
        run: RunId,
        /// Time from which no process executed it.
        since: Timestamp,
        /// Number of completed steps.
        completed: usize,
        /// Number of steps.
        steps: usize,
    },
    /// No person approved the step in time, so it failed.
    StepExpired {
        /// The plan.
        plan: PlanId,
        /// The run.
        run: RunId,
        /// The step that waited for approval.
        step: String,
    },
    /// A plan that is over was archived.
    PlanArchived {
        /// The plan.
        plan: PlanId,
    },
    /// The journal of a plan that was put away left the database for a sealed file, or was removed
    /// for good: its files are not needed any more.
    PlanSealed {
        /// The plan.
        plan: PlanId,
    },
    /// A plan was deleted after its time in the archive.
    PlanDeleted {
        /// The plan.
        plan: PlanId,
    },
}

impl MaintenanceNotice {
    /// Returns the plan that the notice is about.
    pub fn plan(&self) -> &PlanId {
        match self {
            Self::PlanExpired { plan, .. }
            | Self::ApprovalExpired { plan }
            | Self::RunStalled { plan, .. }
            | Self::StepExpired { plan, .. }
            | Self::PlanArchived { plan }
            | Self::PlanSealed { plan }
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
            Self::PlanSealed { plan } => write!(f, "the journal of plan `{plan}` was sealed"),
            Self::PlanDeleted { plan } => write!(f, "plan `{plan}` was deleted from the archive"),
        }
    }
}

/// What was noted, and when something will be due again as far as can be told now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaintenanceReport {
    /// Everything that this pass recorded.
    pub notices: Vec<MaintenanceNotice>,
    /// The earliest time at which something else becomes due.
    pub next_at: Option<Timestamp>,
}

impl MaintenanceReport {
    pub(super) fn look_again_at(&mut self, at: Timestamp) {
        self.next_at = Some(self.next_at.map_or(at, |next| next.min(at)));
    }
}
