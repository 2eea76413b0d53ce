//! The effects of time on plans and runs: nothing happens by itself, so a process has to look and
//! write it down.
//!
//! The process that looks (a service on a timer, a command that lists plans) notes what is due.
//! Looking twice, or in two processes at once, notes it once: every entry is decided by the core
//! from the journal, and appended under the head it was decided from.

mod runs;
mod store_check;
mod words;

pub use store_check::CheckStoreError;

use crate::context::{Context, Keeping};
use crate::journal::load::{LoadError, load_review};
use crate::port::{AppendError, StreamInfo};
use crate::review::plans::{Plans, ReviewError};
use crate::run::runs::Runs;
use planwright_core::id::{PlanId, RunId};
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::review::{Command, Review, ReviewEvent};
use planwright_core::status::{CachedStatus, RunStatus};
use planwright_core::time::Timestamp;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Something that was due and has been noted, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
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

impl Notice {
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

impl fmt::Display for Notice {
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
pub struct Tended {
    pub notices: Vec<Notice>,
    pub next_at: Option<Timestamp>,
}

impl Tended {
    fn wait_for(&mut self, at: Timestamp) {
        self.next_at = Some(self.next_at.map_or(at, |next| next.min(at)));
    }
}

/// Cached statuses of plans that can be over; the fold says which of them are.
const OVER: [CachedStatus; 5] = [
    CachedStatus::Opened,
    CachedStatus::Rejected,
    CachedStatus::NeedsReview,
    CachedStatus::ChangesRequested,
    CachedStatus::Expired,
];

/// The rule that puts plans away and deletes them.
fn retention() -> Principal {
    Principal {
        kind: PrincipalKind::Policy,
        name: "retention".to_owned(),
    }
}

fn not_noted(plan: &PlanId, error: &ReviewError) {
    tracing::warn!(%plan, %error, "what is due could not be noted");
}

fn days(days: u32) -> Duration {
    Duration::from_hours(24).saturating_mul(days)
}

/// Notes what time does to plans and runs.
///
/// Cheap to clone: it shares the engine's context.
///
/// ```
/// # use planwright_engine::{Engine, FunctionTools};
/// # use std::sync::Arc;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder(Arc::new(FunctionTools::new())).build();
/// engine.maintenance().check_store().await?;
/// assert!(engine.maintenance().tend().await?.notices.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Maintenance {
    context: Arc<Context>,
}

impl Maintenance {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self {
            context: Arc::clone(context),
        }
    }

    fn plans(&self) -> Plans {
        Plans::new(&self.context)
    }

    fn runs(&self) -> Runs {
        Runs::new(&self.context)
    }

    /// Notes everything that is due. What cannot be read or written is left for the next time; one
    /// damaged plan does not keep the others from being looked at. Only plans and runs that
    /// something can be due for are looked at.
    pub async fn tend(&self) -> Result<Tended, LoadError> {
        let mut tended = Tended::default();
        self.correct_words().await?;
        self.tend_runs(&mut tended).await?;
        self.tend_waiting(&mut tended).await?;
        self.put_away(&mut tended).await?;
        Ok(tended)
    }

    /// Ends the wait of plans that wait for a person, and of approvals that wait for being used,
    /// once it is over.
    async fn tend_waiting(&self, tended: &mut Tended) -> Result<(), LoadError> {
        for info in self
            .context
            .ports
            .store
            .plans_in(&[CachedStatus::Proposed, CachedStatus::Approved], None)
            .await?
        {
            if let Err(error) = self.expire_waiting(&info, tended).await {
                not_noted(&info.status.plan, &error);
            }
        }
        Ok(())
    }

    async fn expire_waiting(
        &self,
        info: &StreamInfo,
        tended: &mut Tended,
    ) -> Result<(), ReviewError> {
        let plan = &info.status.plan;
        let now = self.context.ports.clock.now();
        let approved = info.status.status == CachedStatus::Approved;
        if approved && self.expire_approvals(plan, tended).await? {
            return Ok(());
        }
        if due(
            info.updated_at,
            self.context.settings.keeping.stale_after_days,
            now,
            tended,
        ) {
            self.expire(plan, tended).await?;
        }
        Ok(())
    }

    /// Puts away what has been over for long, and deletes what has been in the archive for long.
    async fn put_away(&self, tended: &mut Tended) -> Result<(), LoadError> {
        let Keeping {
            archive_after_days,
            delete_after_days,
            ..
        } = self.context.settings.keeping;
        for plan in self.untouched(&OVER, archive_after_days).await? {
            if let Err(error) = self.archive_ended(&plan, tended).await {
                not_noted(&plan, &error);
            }
        }
        for plan in self
            .untouched(&[CachedStatus::Archived], delete_after_days)
            .await?
        {
            if let Err(error) = self.delete_archived(&plan, tended).await {
                not_noted(&plan, &error);
            }
        }
        Ok(())
    }

    async fn untouched(
        &self,
        statuses: &[CachedStatus],
        after_days: u32,
    ) -> Result<Vec<PlanId>, LoadError> {
        if after_days == 0 {
            return Ok(Vec::new());
        }
        self.untouched_since(
            statuses,
            self.context.ports.clock.now().minus(days(after_days)),
        )
        .await
    }

    /// The plans that may be over and that nothing happened to since then, neither to them nor to
    /// their runs.
    pub async fn may_be_over_since(&self, since: Timestamp) -> Result<Vec<PlanId>, LoadError> {
        self.correct_words().await?;
        self.untouched_since(&OVER, since).await
    }

    async fn untouched_since(
        &self,
        statuses: &[CachedStatus],
        since: Timestamp,
    ) -> Result<Vec<PlanId>, LoadError> {
        let mut plans = Vec::new();
        for info in self
            .context
            .ports
            .store
            .plans_in(statuses, Some(since))
            .await?
        {
            let plan = info.status.plan;
            match self.context.ports.store.runs(&plan).await {
                Ok(runs) if runs.iter().all(|run| run.updated_at <= since) => plans.push(plan),
                Ok(_) => {}
                Err(error) => not_noted(&plan, &LoadError::from(error).into()),
            }
        }
        Ok(plans)
    }

    async fn expire(&self, plan: &PlanId, tended: &mut Tended) -> Result<(), ReviewError> {
        let after_days = self.context.settings.keeping.stale_after_days;
        let noted = self
            .note_due(plan, |latest_run| Command::Expire {
                after_days,
                latest_run,
            })
            .await?;
        if noted.is_some() {
            tended.notices.push(Notice::PlanExpired {
                plan: plan.clone(),
                after_days,
            });
        }
        Ok(())
    }

    async fn expire_approvals(
        &self,
        plan: &PlanId,
        tended: &mut Tended,
    ) -> Result<bool, ReviewError> {
        let (review, _) = load_review(&*self.context.ports.store, plan).await?;
        match review.approval_expires_at() {
            Some(at) if at > self.context.ports.clock.now() => tended.wait_for(at),
            Some(_) => {
                let noted = self.note_due(plan, |_| Command::ExpireApprovals).await?;
                if noted.is_some() {
                    tended
                        .notices
                        .push(Notice::ApprovalExpired { plan: plan.clone() });
                }
                return Ok(noted.is_some());
            }
            None => {}
        }
        Ok(false)
    }

    async fn archive_ended(&self, plan: &PlanId, tended: &mut Tended) -> Result<(), ReviewError> {
        let (review, _) = load_review(&*self.context.ports.store, plan).await?;
        if !self.plans().status(&review).await?.is_over() || review.current().document.is_template()
        {
            return Ok(());
        }
        let by = retention();
        let noted = self
            .note_due(plan, |latest_run| Command::Archive { by, latest_run })
            .await?;
        if noted.is_some() {
            tended
                .notices
                .push(Notice::PlanArchived { plan: plan.clone() });
        }
        Ok(())
    }

    async fn delete_archived(&self, plan: &PlanId, tended: &mut Tended) -> Result<(), ReviewError> {
        let (review, _) = load_review(&*self.context.ports.store, plan).await?;
        let executing = self.plans().status(&review).await?.is_executing();
        if executing || !review.is_archived() {
            return Ok(());
        }
        let by = retention();
        let noted = self
            .note_due(plan, |_| Command::Delete { by, executing })
            .await?;
        if noted.is_some() {
            tended
                .notices
                .push(Notice::PlanDeleted { plan: plan.clone() });
        }
        Ok(())
    }

    /// Decides on the journal as it is now, and writes. A process that was faster noted it already.
    async fn note_due(
        &self,
        plan: &PlanId,
        command: impl FnOnce(Option<RunStatus>) -> Command,
    ) -> Result<Option<Review>, ReviewError> {
        let (review, head) = load_review(&*self.context.ports.store, plan).await?;
        let latest_run = self.plans().latest_run_status(&review).await?;
        let now = self.context.ports.clock.now();
        let events: Vec<ReviewEvent> = review.decide(&command(latest_run), now)?;
        if events.is_empty() {
            return Ok(None);
        }
        match self
            .plans()
            .append_review(review, head, (now, events))
            .await
        {
            Ok(review) => Ok(Some(review)),
            Err(ReviewError::Append(AppendError::Conflict { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether `days` have passed since then; if not, says when they will have. Never, for no days.
fn due(since: Timestamp, after_days: u32, now: Timestamp, tended: &mut Tended) -> bool {
    if after_days == 0 {
        return false;
    }
    let at = since.plus(days(after_days));
    if at > now {
        tended.wait_for(at);
    }
    at <= now
}
