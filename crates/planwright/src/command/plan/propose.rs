//! `propose`: puts a draft forward, so that people can decide about it.

use crate::exit::{Exit, Failure};
use crate::terminal::plan_status::load_status_line;
use crate::workspace::app::{CommandContext, user};
use crate::workspace::plan_source::{load_plan, parse_id};
use crate::workspace::projections::update_plan_files;
use crate::workspace::servers::Need;
use planwright_api::Imported;
use serde_json::Map;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let id = parse_id(&args.plan)?;
    let app = context.open_existing()?;
    let (review, _) = load_plan(&app, &id).await?;
    app.start_servers(&review.current().document, Need::Look)
        .await?;
    let review = app.engine.plans().propose_draft(&id, &user()).await?;
    update_plan_files(&app, &review).await;
    let candidate = app.engine.plans().candidate(&review, &Map::new()).await?;
    let version = review.current().number;
    let digest = candidate.digest;
    let status = load_status_line(&app, &review).await?.status;
    app.printer().findings(&candidate.findings);
    if app.printer().json {
        app.printer().document(&Imported {
            id,
            version,
            status: status.to_string(),
            digest,
        })?;
        return Ok(Exit::Done);
    }
    app.printer()
        .data(&format!("{id}  version {version}  {status}  {digest}"))?;
    app.printer()
        .hint(&format!("planwright approve {id} --digest {digest}"));
    Ok(Exit::Done)
}
