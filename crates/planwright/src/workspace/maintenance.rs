//! Maintenance before a command shows plans: expiry, stalls, archiving.

use crate::workspace::app::App;
use crate::workspace::projections::update_plan_files;
use planwright_engine::MaintenanceNotice;

/// Runs the maintenance that is due and reports it. A failure is a warning: the plans can be shown
/// all the same.
pub(crate) async fn run_due_maintenance(app: &App) {
    // Nothing is due in a store that can only be read.
    if app
        .sqlite
        .as_ref()
        .is_some_and(|store| store.foreign().is_some())
    {
        return;
    }
    let report = match app.engine.maintenance().run_maintenance().await {
        Ok(report) => report,
        Err(error) => {
            app.printer().warn(&format!("maintenance failed: {error}"));
            return;
        }
    };
    for notice in &report.notices {
        // That a journal is in a file of its own changes nothing for those who read it.
        if !matches!(notice, MaintenanceNotice::PlanSealed { .. }) {
            app.printer().talk(&format!("note: {notice}"));
        }
        if let Some(hint) = notice_hint(notice) {
            app.printer().hint(&hint);
        }
        if let Ok((review, _)) = app.engine.plans().load_review(notice.plan()).await {
            update_plan_files(app, &review).await;
        }
    }
}

/// Returns the next command after a maintenance notice.
fn notice_hint(notice: &MaintenanceNotice) -> Option<String> {
    match notice {
        MaintenanceNotice::PlanExpired { plan, .. } => {
            Some(format!("planwright propose {plan} proposes it again"))
        }
        MaintenanceNotice::ApprovalExpired { plan } => Some(format!(
            "planwright show {plan}, then planwright approve {plan} again"
        )),
        MaintenanceNotice::RunStalled { plan, .. } => Some(stalled_hint(plan.as_str())),
        MaintenanceNotice::StepExpired { plan, .. } => Some(format!("planwright show {plan}")),
        MaintenanceNotice::PlanArchived { plan } => {
            Some(format!("planwright unarchive {plan} restores it"))
        }
        MaintenanceNotice::PlanDeleted { .. } | MaintenanceNotice::PlanSealed { .. } => None,
    }
}

/// Returns the commands that continue or end a stalled run.
pub(crate) fn stalled_hint(plan: &str) -> String {
    format!(
        "To continue: planwright resume {plan}; to mark it failed: planwright fail {plan}; to stop it: planwright cancel {plan}"
    )
}
