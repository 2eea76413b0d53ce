//! Plans that expire, are archived, or are deleted from the archive, because of the time that has
//! passed.

use super::facade::Maintenance;
use super::report::{MaintenanceNotice, MaintenanceReport};
use crate::context::Retention;
use crate::journal::load::{LoadError, load_review};
use crate::port::{AppendError, StreamInfo};
use crate::review::plans::ReviewError;
use planwright_core::id::PlanId;
use planwright_core::journal::StreamName;
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::review::{Review, ReviewCommand, ReviewEvent};
use planwright_core::status::{CachedStatus, RunStatus};
use planwright_core::time::Timestamp;
use std::time::Duration;

/// Cached statuses of plans that can be over; the fold says which of them are.
const OVER: [CachedStatus; 5] = [
    CachedStatus::Opened,
    CachedStatus::Rejected,
    CachedStatus::NeedsReview,
    CachedStatus::ChangesRequested,
    CachedStatus::Expired,
];

/// The rule that puts plans away and deletes them.
fn retention_principal() -> Principal {
    Principal {
        kind: PrincipalKind::Policy,
        name: "retention".to_owned(),
    }
}

pub(super) fn log_failure(plan: &PlanId, error: &ReviewError) {
    tracing::warn!(%plan, %error, "what is due could not be noted");
}

fn in_days(days: u32) -> Duration {
    Duration::from_hours(24).saturating_mul(days)
}

impl Maintenance {
    /// Ends the wait of plans that wait for a person, and of approvals that wait for being used,
    /// once it is over.
    pub(super) async fn expire_plans(
        &self,
        report: &mut MaintenanceReport,
    ) -> Result<(), LoadError> {
        for info in self
            .context
            .ports
            .store
            .plans_in(&[CachedStatus::Proposed, CachedStatus::Approved], None)
            .await?
        {
            if let Err(error) = self.expire_waiting(&info, report).await {
                log_failure(&info.status.plan, &error);
            }
        }
        Ok(())
    }

    async fn expire_waiting(
        &self,
        info: &StreamInfo,
        report: &mut MaintenanceReport,
    ) -> Result<(), ReviewError> {
        let plan = &info.status.plan;
        let now = self.context.ports.clock.now();
        let approved = info.status.status == CachedStatus::Approved;
        if approved && self.expire_approvals(plan, report).await? {
            return Ok(());
        }
        if is_due(
            info.updated_at,
            self.context.settings.retention.stale_after_days,
            now,
            report,
        ) {
            self.expire(plan, report).await?;
        }
        Ok(())
    }

    /// Puts away what has been over for long, and deletes what has been in the archive for long.
    pub(super) async fn put_away(&self, report: &mut MaintenanceReport) -> Result<(), LoadError> {
        let Retention {
            archive_after,
            delete_after,
            ..
        } = self.context.settings.retention;
        for plan in self.untouched(&OVER, archive_after).await? {
            if let Err(error) = self.archive_ended(&plan, report).await {
                log_failure(&plan, &error);
            }
        }
        for plan in self
            .untouched(&[CachedStatus::Archived], delete_after)
            .await?
        {
            if let Err(error) = self.delete_archived(&plan, report).await {
                log_failure(&plan, &error);
            }
        }
        Ok(())
    }

    async fn untouched(
        &self,
        statuses: &[CachedStatus],
        after: Option<Duration>,
    ) -> Result<Vec<PlanId>, LoadError> {
        let Some(after) = after else {
            return Ok(Vec::new());
        };
        self.untouched_since(statuses, self.context.ports.clock.now().minus(after))
            .await
    }

    /// The plans that may be over and that nothing happened to since then, neither to them nor to
    /// their runs.
    pub async fn ended_plans_since(&self, since: Timestamp) -> Result<Vec<PlanId>, LoadError> {
        self.backfill_statuses().await?;
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
                Err(error) => log_failure(&plan, &LoadError::from(error).into()),
            }
        }
        Ok(plans)
    }

    async fn expire(
        &self,
        plan: &PlanId,
        report: &mut MaintenanceReport,
    ) -> Result<(), ReviewError> {
        let after_days = self.context.settings.retention.stale_after_days;
        let noted = self
            .note_due(plan, |latest_run| ReviewCommand::Expire {
                after_days,
                latest_run,
            })
            .await?;
        if noted.is_some() {
            report.notices.push(MaintenanceNotice::PlanExpired {
                plan: plan.clone(),
                after_days,
            });
        }
        Ok(())
    }

    async fn expire_approvals(
        &self,
        plan: &PlanId,
        report: &mut MaintenanceReport,
    ) -> Result<bool, ReviewError> {
        let (review, _) = load_review(&*self.context.ports.store, plan).await?;
        match review.approval_expires_at() {
            Some(at) if at > self.context.ports.clock.now() => report.look_again_at(at),
            Some(_) => {
                let noted = self
                    .note_due(plan, |_| ReviewCommand::ExpireApprovals)
                    .await?;
                if noted.is_some() {
                    report
                        .notices
                        .push(MaintenanceNotice::ApprovalExpired { plan: plan.clone() });
                }
                return Ok(noted.is_some());
            }
            None => {}
        }
        Ok(false)
    }

    async fn archive_ended(
        &self,
        plan: &PlanId,
        report: &mut MaintenanceReport,
    ) -> Result<(), ReviewError> {
        let (review, _) = load_review(&*self.context.ports.store, plan).await?;
        if !self.plans().status(&review).await?.is_over() || review.current().document.is_template()
        {
            return Ok(());
        }
        let by = retention_principal();
        let noted = self
            .note_due(plan, |latest_run| ReviewCommand::Archive { by, latest_run })
            .await?;
        if noted.is_some() {
            report
                .notices
                .push(MaintenanceNotice::PlanArchived { plan: plan.clone() });
        }
        Ok(())
    }

    async fn delete_archived(
        &self,
        plan: &PlanId,
        report: &mut MaintenanceReport,
    ) -> Result<(), ReviewError> {
        let (review, _) = load_review(&*self.context.ports.store, plan).await?;
        let executing = self.plans().status(&review).await?.is_executing();
        if executing || !review.is_archived() {
            return Ok(());
        }
        self.restore_for_writing(&StreamName::Plan(plan.clone()))
            .await?;
        let by = retention_principal();
        let noted = self
            .note_due(plan, |_| ReviewCommand::Delete { by, executing })
            .await?;
        if noted.is_some() {
            report
                .notices
                .push(MaintenanceNotice::PlanDeleted { plan: plan.clone() });
        }
        Ok(())
    }

    /// Decides on the journal as it is now, and writes. A process that was faster noted it already.
    async fn note_due(
        &self,
        plan: &PlanId,
        command: impl FnOnce(Option<RunStatus>) -> ReviewCommand,
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

/// Returns whether `days` have passed since then; if not, says when they will have. Never, for no
/// days.
fn is_due(
    since: Timestamp,
    after_days: u32,
    now: Timestamp,
    report: &mut MaintenanceReport,
) -> bool {
    if after_days == 0 {
        return false;
    }
    let at = since.plus(in_days(after_days));
    if at > now {
        report.look_again_at(at);
    }
    at <= now
}
