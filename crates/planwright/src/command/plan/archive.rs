//! `archive` and `unarchive`: puts plans away that are over, and takes them back.

use crate::exit::{Exit, Failure};
use crate::workspace::app::{App, CommandContext, user};
use crate::workspace::plan_source::{load_plan, parse_id};
use crate::workspace::projections::update_plan_files;
use planwright_core::id::PlanId;
use planwright_core::policy::TimeSpan;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ID", required_unless_present = "older_than")]
    plan: Option<String>,
    /// Every plan that has ended and was not changed for this long: 30d, 12h.
    #[arg(long, value_name = "SPAN", conflicts_with = "plan")]
    older_than: Option<TimeSpan>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UnarchiveArgs {
    #[arg(value_name = "ID")]
    plan: String,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open_existing()?;
    let ids = match (&args.plan, args.older_than) {
        (Some(plan), _) => {
            let id = parse_id(plan)?;
            load_plan(&app, &id).await?;
            vec![id]
        }
        (None, Some(span)) => find_old_plans(&app, span).await?,
        (None, None) => return Err(Failure::usage("name a plan, or give --older-than SPAN")),
    };
    for id in &ids {
        let review = app.engine.plans().archive(id, &user()).await?;
        update_plan_files(&app, &review).await;
    }
    if app.printer().json {
        app.printer().document(&json!({ "archived": ids }))?;
    } else {
        for id in &ids {
            app.printer().data(&format!("{id}  archived"))?;
        }
        if ids.is_empty() {
            app.printer().talk("nothing to archive");
        }
    }
    Ok(Exit::Done)
}

/// The plans that are over and were not touched for so long.
async fn find_old_plans(app: &App, span: TimeSpan) -> Result<Vec<PlanId>, Failure> {
    let since = app.now().minus(span.as_duration());
    let mut ids = Vec::new();
    for plan in app.engine.maintenance().ended_plans_since(since).await? {
        let (review, _) = app.engine.plans().load_review(&plan).await?;
        if app.engine.plans().status(&review).await?.is_over() {
            ids.push(plan);
        }
    }
    Ok(ids)
}

pub(crate) async fn unarchive(
    context: &CommandContext,
    args: &UnarchiveArgs,
) -> Result<Exit, Failure> {
    let id = parse_id(&args.plan)?;
    let app = context.open_existing()?;
    load_plan(&app, &id).await?;
    let review = app.engine.plans().unarchive(&id, &user()).await?;
    update_plan_files(&app, &review).await;
    let status = app.engine.plans().status(&review).await?;
    if app.printer().json {
        app.printer()
            .document(&json!({ "id": id, "status": status.as_str() }))?;
    } else {
        app.printer().data(&format!("{id}  {}", status.as_str()))?;
    }
    Ok(Exit::Done)
}
