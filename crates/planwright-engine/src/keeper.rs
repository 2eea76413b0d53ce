//! What time does to plans and runs: nothing happens by itself, so somebody has to look and write it down.
//!
//! Whoever looks (a service on a timer, a command that lists plans) notes what is due. Looking twice, or in two
//! processes at once, notes it once: every entry is decided by the core from the journal, and appended under the head
//! it was decided from.

use crate::engine::Engine;
use crate::journal::{LoadError, load_review};
use crate::plans::ReviewError;
use crate::port::{AcquireError, AppendError, StreamInfo};
use crate::undo::load_any_run;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::review::{Command, Review, ReviewEvent, ReviewState};
use planwright_core::run::{Command as RunCommand, RunEvent, RunState};
use planwright_core::time::Timestamp;
use std::fmt;
use std::time::Duration;

/// How long things are waited for and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// A proposed or approved plan that nobody touched for so many days expires; 0: never.
    pub stale_after_days: u32,
    /// A run that nobody has executed for so long is stalled.
    pub stalled_after: Duration,
    /// A plan that has been over for so many days is put away; 0: never.
    pub archive_after_days: u32,
    /// A plan that has been in the archive for so many days is deleted; 0: never.
    pub delete_after_days: u32,
}

impl Default for Keeping {
    fn default() -> Self {
        Self {
            stale_after_days: 30,
            stalled_after: Duration::from_mins(30),
            archive_after_days: 0,
            delete_after_days: 0,
        }
    }
}

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
    /// Nobody approved the step in time, so it failed.
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
                write!(f, "plan `{plan}` expired: nobody touched it for {after_days} days")
            }
            Self::ApprovalExpired { plan } => {
                write!(f, "the approval of plan `{plan}` expired: it was not used in time")
            }
            Self::RunStalled { plan, run, since, completed, steps } => write!(
                f,
                "plan `{plan}` is stalled: nobody has executed {run} since {since}, {completed}/{steps} steps completed"
            ),
            Self::StepExpired { plan, run, step } => {
                write!(f, "step `{step}` of plan `{plan}` ({run}) expired: nobody approved it in time")
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

/// The rule that puts plans away and deletes them.
fn retention() -> Principal {
    Principal { kind: PrincipalKind::Policy, name: "retention".to_owned() }
}

fn days(days: u32) -> Duration {
    Duration::from_hours(24).saturating_mul(days)
}

impl Engine {
    /// Notes everything that is due. What cannot be read or written is left for the next time; one damaged plan does
    /// not keep the others from being looked at.
    pub async fn tend(&self) -> Result<Tended, LoadError> {
        let mut tended = Tended::default();
        for info in self.env.store.plans().await? {
            let plan = info.status.plan.clone();
            if info.status.status == ReviewState::Deleted.as_str() {
                continue;
            }
            if let Err(error) = self.tend_plan(&info, &mut tended).await {
                tracing::warn!(%plan, %error, "what is due could not be noted");
            }
        }
        Ok(tended)
    }

    async fn tend_plan(&self, info: &StreamInfo, tended: &mut Tended) -> Result<(), ReviewError> {
        let (plan, now, keeping) = (&info.status.plan, self.env.clock.now(), self.env.keeping);
        let runs = self.env.store.runs(plan).await.map_err(LoadError::from)?;
        for run in &runs {
            self.tend_run(run, tended).await?;
        }
        let latest = runs.iter().map(|run| run.updated_at).max();
        let touched_at = latest.map_or(info.updated_at, |at| at.max(info.updated_at));
        match info.status.status.as_str() {
            "archived" => {
                if due(touched_at, keeping.delete_after_days, now, tended) {
                    self.delete_archived(plan, tended).await?;
                }
            }
            "approved" => {
                let expired = self.expire_approvals(plan, tended).await?;
                if !expired && due(info.updated_at, keeping.stale_after_days, now, tended) {
                    self.expire(plan, tended).await?;
                }
            }
            word => {
                // Only what waits expires; what is over is put away. The core knows which it is.
                if word == "proposed" && due(info.updated_at, keeping.stale_after_days, now, tended) {
                    self.expire(plan, tended).await?;
                }
                if due(touched_at, keeping.archive_after_days, now, tended) {
                    self.archive_ended(plan, tended).await?;
                }
            }
        }
        Ok(())
    }

    async fn expire(&self, plan: &PlanId, tended: &mut Tended) -> Result<(), ReviewError> {
        let after_days = self.env.keeping.stale_after_days;
        let noted = self.note_due(plan, |latest_run| Command::Expire { after_days, latest_run }).await?;
        if noted.is_some() {
            tended.notices.push(Notice::PlanExpired { plan: plan.clone(), after_days });
        }
        Ok(())
    }

    async fn expire_approvals(&self, plan: &PlanId, tended: &mut Tended) -> Result<bool, ReviewError> {
        let (review, _) = load_review(&*self.env.store, plan).await?;
        match review.approval_expires_at() {
            Some(at) if at > self.env.clock.now() => tended.wait_for(at),
            Some(_) => {
                let noted = self.note_due(plan, |_| Command::ExpireApprovals).await?;
                if noted.is_some() {
                    tended.notices.push(Notice::ApprovalExpired { plan: plan.clone() });
                }
                return Ok(noted.is_some());
            }
            None => {}
        }
        Ok(false)
    }

    async fn archive_ended(&self, plan: &PlanId, tended: &mut Tended) -> Result<(), ReviewError> {
        let (review, _) = load_review(&*self.env.store, plan).await?;
        if !self.status(&review).await?.is_over() || review.current().document.is_template() {
            return Ok(());
        }
        let by = retention();
        let noted = self.note_due(plan, |latest_run| Command::Archive { by, latest_run }).await?;
        if noted.is_some() {
            tended.notices.push(Notice::PlanArchived { plan: plan.clone() });
        }
        Ok(())
    }

    async fn delete_archived(&self, plan: &PlanId, tended: &mut Tended) -> Result<(), ReviewError> {
        let (review, _) = load_review(&*self.env.store, plan).await?;
        let executing = self.status(&review).await?.is_executing();
        if executing || !review.is_archived() {
            return Ok(());
        }
        let by = retention();
        let noted = self.note_due(plan, |_| Command::Delete { by, executing }).await?;
        if noted.is_some() {
            tended.notices.push(Notice::PlanDeleted { plan: plan.clone() });
        }
        Ok(())
    }

    /// Decides on the journal as it is now, and writes. Somebody who was faster noted it already.
    async fn note_due(
        &self,
        plan: &PlanId,
        command: impl FnOnce(Option<String>) -> Command,
    ) -> Result<Option<Review>, ReviewError> {
        let (review, head) = load_review(&*self.env.store, plan).await?;
        let latest_run = self.latest_status(&review).await?;
        let now = self.env.clock.now();
        let events: Vec<ReviewEvent> = review.decide(&command(latest_run), now)?;
        if events.is_empty() {
            return Ok(None);
        }
        match self.append_review(plan, Some(review), head, (now, events)).await {
            Ok(review) => Ok(Some(review)),
            Err(ReviewError::Append(AppendError::Conflict { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn tend_run(&self, info: &StreamInfo, tended: &mut Tended) -> Result<(), ReviewError> {
        let StreamName::Run(run) = &info.stream else { return Ok(()) };
        let now = self.env.clock.now();
        match info.status.status.as_str() {
            "executing" => {
                let at = info.updated_at.plus(self.env.keeping.stalled_after);
                if self.active.get(run).is_some() {
                    return Ok(());
                }
                if at > now {
                    tended.wait_for(at);
                    return Ok(());
                }
                self.note_stalled(run, info, tended).await
            }
            "waiting" => {
                let Some(span) = self.env.policy.approval.step_expires_after else { return Ok(()) };
                let at = info.updated_at.plus(span.as_duration());
                if at > now {
                    tended.wait_for(at);
                    return Ok(());
                }
                self.note_expired_steps(run, info, tended).await
            }
            _ => Ok(()),
        }
    }

    /// Nobody owns the run, and nothing was written for too long.
    async fn note_stalled(
        &self,
        run: &RunId,
        info: &StreamInfo,
        tended: &mut Tended,
    ) -> Result<(), ReviewError> {
        if self.env.store.lease(run).await.map_err(LoadError::from)?.is_some() {
            return Ok(());
        }
        let (stalled, _) = load_any_run(&self.env, run).await?;
        let commands = match stalled.state() {
            RunState::Running => vec![RunCommand::Stall { since: info.updated_at }],
            // It was ending anyway, and ends now.
            RunState::Stopping { .. } | RunState::Cancelling => vec![RunCommand::Recover, RunCommand::Settle],
            RunState::Paused
            | RunState::Stalled { .. }
            | RunState::Completed
            | RunState::Failed { .. }
            | RunState::GivenUp
            | RunState::Adjusted { .. }
            | RunState::Cancelled => return Ok(()),
        };
        let noted = self.write_due(run, &commands).await?;
        if noted.iter().any(|event| matches!(event, RunEvent::RunStalled { .. })) {
            tended.notices.push(Notice::RunStalled {
                plan: info.status.plan.clone(),
                run: run.clone(),
                since: info.updated_at,
                completed: stalled.completed_steps(),
                steps: stalled.plan().indices().len(),
            });
        }
        Ok(())
    }

    async fn note_expired_steps(
        &self,
        run: &RunId,
        info: &StreamInfo,
        tended: &mut Tended,
    ) -> Result<(), ReviewError> {
        let noted = self.write_due(run, &[RunCommand::Tick, RunCommand::Settle]).await?;
        for event in noted {
            if let RunEvent::StepFailed { step, .. } = event {
                let (plan, run, step) = (info.status.plan.clone(), run.clone(), step.to_string());
                tended.notices.push(Notice::StepExpired { plan, run, step });
            }
        }
        Ok(())
    }

    /// Writes what these commands come to into a run that nobody executes.
    async fn write_due(&self, run: &RunId, commands: &[RunCommand]) -> Result<Vec<RunEvent>, ReviewError> {
        let (current, _) = load_any_run(&self.env, run).await?;
        let now = self.env.clock.now();
        // Taking a run over leaves a trace; nothing is taken for nothing.
        if !commands.iter().any(|command| {
            matches!(command, RunCommand::Recover | RunCommand::Settle)
                && matches!(current.state(), RunState::Stopping { .. } | RunState::Cancelling)
                || current.decide(command, now).is_ok_and(|events| !events.is_empty())
        }) {
            return Ok(Vec::new());
        }
        let lease = match self.env.store.acquire(run, &self.env.owner, self.env.lease_ttl).await {
            Ok(lease) => lease,
            Err(AcquireError::Held { .. } | AcquireError::NoSuchRun(_)) => return Ok(Vec::new()),
            Err(AcquireError::Store(error)) => return Err(LoadError::from(error).into()),
        };
        match self.write_commands(run, &lease, commands).await {
            Ok(events) => Ok(events),
            Err(error) => {
                self.env.store.release(&lease).await.map_err(LoadError::from)?;
                tracing::debug!(%run, %error, "nothing was noted");
                Ok(Vec::new())
            }
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
