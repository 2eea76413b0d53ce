//! `restore`: makes the content of an earlier version the next one. Nothing in between is lost.

use crate::command::plan::edit::{check_base_version, report_stored_version};
use crate::exit::{Exit, Failure};
use crate::terminal::diff;
use crate::workspace::app::{CommandContext, user};
use crate::workspace::plan_source::{load_plan, parse_id};
use crate::workspace::servers::Need;
use planwright_core::review::ReviewRefusal;
use planwright_engine::Editing;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
    /// The version to take the content from.
    #[arg(value_name = "VERSION")]
    version: u32,
    /// Why. It is kept with the version.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The version that is current, as far as you know. If the plan has moved on since, nothing is
    /// stored.
    #[arg(long, value_name = "VERSION")]
    base: Option<u32>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let id = parse_id(&args.plan)?;
    let app = context.open_existing()?;
    let (review, _) = load_plan(&app, &id).await?;
    let current = check_base_version(&review, args.base)?.number;
    let plans = app.engine.plans();
    let earlier = plans.load_version(&review, args.version).await?;
    let earlier = earlier.ok_or(ReviewRefusal::NoSuchVersion(args.version))?;
    app.start_servers(&earlier.document, Need::Look).await?;
    let diff = plans.diff(&review, current, args.version).await?;
    if !app.printer().json {
        diff::talk_diff(app.printer(), &diff);
    }
    let reason = args
        .reason
        .clone()
        .filter(|reason| !reason.trim().is_empty());
    let editing = Editing {
        based_on: current,
        by: user(),
        reason,
    };
    let (restored, findings) = app
        .engine
        .plans()
        .restore(&id, args.version, &editing)
        .await?;
    app.printer().findings(&findings);
    report_stored_version(&app, &review, &restored, diff).await?;
    Ok(Exit::Done)
}
