//! `propose`: puts a draft forward, so that people can decide about it.

use crate::command::execution::resume::existing;
use crate::exit::{Exit, Failure};
use crate::terminal::plan_status::standing;
use crate::workspace::app::{Setting, user};
use crate::workspace::plan_source::{load, parse_id};
use crate::workspace::projections::project;
use crate::workspace::servers::Need;
use planwright_api::Imported;
use serde_json::Map;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
}

pub(crate) async fn run(setting: &Setting, args: &Args) -> Result<Exit, Failure> {
    let id = parse_id(&args.plan)?;
    let app = setting.open(existing(setting))?;
    let (review, _) = load(&app, &id).await?;
    app.start_servers(&review.current().document, Need::Look)
        .await?;
    let review = app.engine.propose_draft(&id, &user()).await?;
    project(&app, &review).await;
    let candidate = app.engine.candidate(&review, &Map::new()).await?;
    let (version, digest) = (review.current().number, candidate.digest);
    let status = standing(&app, &review).await?.word;
    app.printer().findings(&candidate.findings);
    if app.printer().json {
        app.printer().document(&Imported {
            id,
            version,
            status,
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
