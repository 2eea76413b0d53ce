//! `mcp`: plans as tools of the agent that starts this program, over standard input and output.

use crate::chat::Planner;
use crate::exit::{Exit, Failure};
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::principal::{is_agent, user};
use crate::workspace::projections::WorkspaceFiles;
use planwright_engine::with_causes;
use planwright_mcp::{Host, serve_stdio};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(context: &CommandContext, _: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Write)?;
    let wanted: BTreeSet<String> = app.roster.ready().map(|spec| spec.name.clone()).collect();
    app.connect(&wanted).await?;
    let host = Host {
        engine: app.engine.clone(),
        maker: Arc::new(Planner::new(app.engine.clone(), Vec::new())),
        files: Arc::<WorkspaceFiles>::clone(&app.files),
        person: (!is_agent()).then(user),
    };
    let served = serve_stdio(host).await;
    served.map_err(|error| Failure::new(Exit::RunFailed, with_causes(&error)))?;
    Ok(Exit::Done)
}
