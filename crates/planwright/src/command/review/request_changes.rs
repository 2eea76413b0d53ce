//! `request-changes`: asks the author to change something, without rejecting the plan.

use crate::command::review::approve::ShownFlags;
use crate::exit::{Exit, Failure};
use crate::workspace::app::{CommandContext, user};
use crate::workspace::plan_source::{load_plan, parse_id};
use crate::workspace::projections::update_plan_files;
use crate::workspace::servers::Need;
use serde_json::{Map, json};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
    #[command(flatten)]
    shown: ShownFlags,
    /// What has to change. It is kept with the plan.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    if args.reason.trim().is_empty() {
        return Err(Failure::usage(
            "--reason must not be empty: the author needs to know what to change",
        ));
    }
    let id = parse_id(&args.plan)?;
    let app = context.open_existing()?;
    let (review, _) = load_plan(&app, &id).await?;
    app.start_servers(&review.current().document, Need::Look)
        .await?;
    let digest = app
        .engine
        .plans()
        .candidate(&review, &Map::new())
        .await?
        .digest;
    let shown = args.shown.read(
        "request-changes",
        id.as_str(),
        (review.current().number, digest),
    )?;
    let review = app
        .engine
        .plans()
        .request_changes(&id, shown, &user(), &args.reason)
        .await?;
    update_plan_files(&app, &review).await;
    let version = review.current().number;
    let status = review.state().status();
    if app.printer().json {
        let said = json!({ "id": id, "version": version, "status": status, "digest": digest });
        app.printer().document(&said)?;
    } else {
        app.printer()
            .data(&format!("{id}  version {version}  {status}"))?;
        app.printer()
            .hint("edit the plan: the next version can be approved");
    }
    Ok(Exit::Done)
}
