//! `status`: what runs, what waits for a person, and where all of it is kept.

use super::inbox::load_inbox;
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::plan_status::{StatusNote, load_status_line, status_style};
use crate::terminal::printer::{BOLD, DIM, line};
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::maintenance::run_due_maintenance;
use planwright_core::status::PlanStatus;
use planwright_engine::chat::is_listed;
use serde::Serialize;
use serde_json::json;

/// A plan with a run that has not ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ActivePlan {
    plan_id: String,
    title: String,
    status: String,
    run_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// The statuses of plans whose runs have not ended.
const ACTIVE: [PlanStatus; 4] = [
    PlanStatus::Executing,
    PlanStatus::Waiting,
    PlanStatus::Paused,
    PlanStatus::Stalled,
];

pub(crate) async fn run(context: &CommandContext) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    run_due_maintenance(&app).await;
    let active = load_active(&app).await?;
    let waiting = load_inbox(&app).await?;
    let printer = context.printer;
    let root = context.workspace.root.display().to_string();
    if printer.json {
        let document = json!({ "workspace": root, "active": active, "waiting": waiting });
        printer.document(&document)?;
        return Ok(Exit::Done);
    }
    printer.data(&printer.out(DIM, &line(&root)))?;
    printer.data(&printer.out(BOLD, "Runs"))?;
    if active.is_empty() {
        printer.data("  nothing runs")?;
    }
    for plan in &active {
        let status = printer.out(status_style(&plan.status), &plan.status);
        let note = plan
            .note
            .map(|note| printer.out(DIM, &format!("  ({note})")));
        printer.data(&format!(
            "  {}  {status}  {}{}",
            line(&plan.plan_id),
            line(&plan.title),
            note.unwrap_or_default()
        ))?;
    }
    printer.data(&printer.out(BOLD, "Inbox"))?;
    let count = count_of(waiting.len() as u64, "thing waits", "things wait");
    match waiting.is_empty() {
        true => printer.data("  nothing waits for you")?,
        false => printer.data(&format!("  {count} for you: planwright inbox"))?,
    }
    Ok(Exit::Done)
}

async fn load_active(app: &App) -> Result<Vec<ActivePlan>, Failure> {
    let mut found = Vec::new();
    for wanted in ACTIVE {
        for info in app.engine.inbox().plans_with_status(wanted).await? {
            let plan = &info.status.plan;
            let (review, _) = app.engine.plans().load_review(plan).await?;
            let document = &review.current().document;
            let line = load_status_line(app, &review).await?;
            let run = review.runs().last().map(|opened| opened.run.to_string());
            // The cached status may be behind, and conversations are listed where they are asked for.
            if line.status != wanted || !is_listed(document, None, false) {
                continue;
            }
            found.push(ActivePlan {
                plan_id: plan.to_string(),
                title: document.title.clone().unwrap_or_default(),
                status: line.status.to_string(),
                run_id: run.unwrap_or_default(),
                note: line.note.as_ref().map(StatusNote::short),
            });
        }
    }
    Ok(found)
}
