//! Noting what time has brought about, whenever somebody looks.

use crate::workspace::app::App;
use crate::workspace::projections::update_plan_files;
use planwright_engine::Notice;

/// Notes what is due and says so. What cannot be noted is no reason not to look.
pub(crate) async fn run_due_maintenance(app: &App) {
    let tended = match app.engine.maintenance().tend().await {
        Ok(tended) => tended,
        Err(error) => {
            app.printer()
                .warn(&format!("what is due could not be found: {error}"));
            return;
        }
    };
    for notice in &tended.notices {
        app.printer().talk(&format!("note: {notice}"));
        if let Some(hint) = notice_hint(notice) {
            app.printer().hint(&hint);
        }
        if let Ok((review, _)) = app.engine.plans().load_review(notice.plan()).await {
            update_plan_files(app, &review).await;
        }
    }
}

/// How a person goes on from there.
fn notice_hint(notice: &Notice) -> Option<String> {
    match notice {
        Notice::PlanExpired { plan, .. } => {
            Some(format!("planwright propose {plan} brings it back"))
        }
        Notice::ApprovalExpired { plan } => Some(format!(
            "planwright show {plan}, then planwright approve {plan} again"
        )),
        Notice::RunStalled { plan, .. } => Some(stalled_hint(plan.as_str())),
        Notice::StepExpired { plan, .. } => Some(format!("planwright show {plan}")),
        Notice::PlanArchived { plan } => Some(format!("planwright unarchive {plan} takes it back")),
        Notice::PlanDeleted { .. } => None,
    }
}

/// What can be done about a run that nobody executes.
pub(crate) fn stalled_hint(plan: &str) -> String {
    format!(
        "planwright resume {plan} goes on, planwright fail {plan} gives it up, planwright cancel {plan} ends it"
    )
}
