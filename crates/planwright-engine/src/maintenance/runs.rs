//! The effects of time on runs that no process executes.

use super::due_plans::log_failure;
use super::{MaintenanceNotice, MaintenanceReport};
use crate::journal::load::LoadError;
use crate::maintenance::Maintenance;
use crate::port::{AcquireError, StreamInfo};
use crate::review::plans::ReviewError;
use crate::run::undo::load_any_run;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_core::run::{Command as RunCommand, RunEvent, RunState};
use planwright_core::status::{CachedStatus, RunStatus};

const EXECUTING: CachedStatus = CachedStatus::Run(RunStatus::Executing);
const WAITING: CachedStatus = CachedStatus::Run(RunStatus::Waiting);

impl Maintenance {
    /// Stalls runs without an owner, and fails the steps that no person approved in time.
    pub(super) async fn expire_runs(
        &self,
        report: &mut MaintenanceReport,
    ) -> Result<(), LoadError> {
        let statuses: &[CachedStatus] =
            match self.context.settings.policy.approval.step_expires_after {
                Some(_) => &[EXECUTING, WAITING],
                None => &[EXECUTING],
            };
        for info in self.context.ports.store.runs_in(statuses).await? {
            if let Err(error) = self.expire_run(&info, report).await {
                log_failure(&info.status.plan, &error);
            }
        }
        Ok(())
    }

    /// Nothing is noted about the runs of plans that were deleted.
    async fn was_deleted(&self, plan: &PlanId) -> Result<bool, ReviewError> {
        let stream = StreamName::Plan(plan.clone());
        let info = self
            .context
            .ports
            .store
            .info(&stream)
            .await
            .map_err(LoadError::from)?;
        Ok(info.is_none_or(|info| info.status.status == CachedStatus::Deleted))
    }

    async fn expire_run(
        &self,
        info: &StreamInfo,
        report: &mut MaintenanceReport,
    ) -> Result<(), ReviewError> {
        let StreamName::Run(run) = &info.stream else {
            return Ok(());
        };
        let now = self.context.ports.clock.now();
        match info.status.status {
            EXECUTING => {
                let at = info
                    .updated_at
                    .plus(self.context.settings.retention.stalled_after);
                if self.context.active.get(run).is_some() {
                    return Ok(());
                }
                if at > now {
                    report.look_again_at(at);
                    return Ok(());
                }
                self.note_stalled(run, info, report).await
            }
            WAITING => {
                let Some(span) = self.context.settings.policy.approval.step_expires_after else {
                    return Ok(());
                };
                let at = info.updated_at.plus(span.as_duration());
                if at > now {
                    report.look_again_at(at);
                    return Ok(());
                }
                self.note_expired_steps(run, info, report).await
            }
            _ => Ok(()),
        }
    }

    /// Notes that no process owns the run, and that nothing was written for too long.
    async fn note_stalled(
        &self,
        run: &RunId,
        info: &StreamInfo,
        report: &mut MaintenanceReport,
    ) -> Result<(), ReviewError> {
        // An owner that is alive and did not renew its lease, because the machine slept say, has
        // not left the run.
        let owned = self
            .runs()
            .is_executed(run)
            .await
            .map_err(LoadError::from)?;
        if owned || self.was_deleted(&info.status.plan).await? {
            return Ok(());
        }
        let (stalled, _) = load_any_run(&self.context, run).await?;
        let commands = match stalled.state() {
            RunState::Running => vec![RunCommand::Stall {
                since: info.updated_at,
            }],
            // It was ending anyway, and ends now.
            RunState::Stopping { .. } | RunState::Cancelling => {
                vec![RunCommand::Recover, RunCommand::Settle]
            }
            RunState::Paused
            | RunState::Stalled { .. }
            | RunState::Completed
            | RunState::Failed { .. }
            | RunState::GivenUp
            | RunState::Adjusted { .. }
            | RunState::Cancelled => return Ok(()),
        };
        let noted = self.write_due(run, &commands).await?;
        if noted
            .iter()
            .any(|event| matches!(event, RunEvent::RunStalled { .. }))
        {
            report.notices.push(MaintenanceNotice::RunStalled {
                plan: info.status.plan.clone(),
                run: run.clone(),
                since: info.updated_at,
                completed: stalled.schedule().completed_steps(),
                steps: stalled.plan().indices().len(),
            });
        }
        Ok(())
    }

    async fn note_expired_steps(
        &self,
        run: &RunId,
        info: &StreamInfo,
        report: &mut MaintenanceReport,
    ) -> Result<(), ReviewError> {
        if self.was_deleted(&info.status.plan).await? {
            return Ok(());
        }
        let noted = self
            .write_due(run, &[RunCommand::Tick, RunCommand::Settle])
            .await?;
        for event in noted {
            if let RunEvent::StepFailed { step, .. } = event {
                let plan = info.status.plan.clone();
                let run = run.clone();
                let step = step.to_string();
                report
                    .notices
                    .push(MaintenanceNotice::StepExpired { plan, run, step });
            }
        }
        Ok(())
    }

    /// Writes what these commands come to into a run that no process executes.
    async fn write_due(
        &self,
        run: &RunId,
        commands: &[RunCommand],
    ) -> Result<Vec<RunEvent>, ReviewError> {
        let (current, _) = load_any_run(&self.context, run).await?;
        let now = self.context.ports.clock.now();
        // Taking a run over leaves a trace; nothing is taken for nothing.
        if !commands.iter().any(|command| {
            matches!(command, RunCommand::Recover | RunCommand::Settle)
                && matches!(
                    current.state(),
                    RunState::Stopping { .. } | RunState::Cancelling
                )
                || current
                    .decide(command, now)
                    .is_ok_and(|events| !events.is_empty())
        }) {
            return Ok(Vec::new());
        }
        if self
            .runs()
            .is_executed(run)
            .await
            .map_err(LoadError::from)?
        {
            return Ok(Vec::new());
        }
        let lease = match self
            .context
            .ports
            .store
            .acquire(
                run,
                &self.context.settings.owner,
                self.context.settings.lease_ttl,
            )
            .await
        {
            Ok(lease) => lease,
            Err(AcquireError::Held { .. } | AcquireError::NoSuchRun(_)) => return Ok(Vec::new()),
            Err(AcquireError::Store(error)) => return Err(LoadError::from(error).into()),
        };
        match self.runs().write_commands(run, &lease, commands).await {
            Ok(events) => Ok(events),
            Err(error) => {
                self.context
                    .ports
                    .store
                    .release(&lease)
                    .await
                    .map_err(LoadError::from)?;
                tracing::debug!(%run, %error, "nothing was noted");
                Ok(Vec::new())
            }
        }
    }
}
