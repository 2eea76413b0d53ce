//! `mcp`: plans as tools of the agent that starts this program, over standard input and output.

use crate::chat::Planner;
use crate::exit::{Exit, Failure};
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::principal::{account, is_agent, user};
use crate::workspace::projections::WorkspaceFiles;
use planwright_core::principal::Principal;
use planwright_engine::port::Servers;
use planwright_engine::with_causes;
use planwright_mcp::{GatewayServer, GatewaySettings, Host, PlanServer, serve_stdio};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Offer the tools of the configured servers too, each call judged by policy and journaled
    #[arg(long)]
    gateway: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Write)?;
    let wanted: BTreeSet<String> = app.roster.ready().map(|spec| spec.name.clone()).collect();
    app.connect(&wanted).await?;
    let host = build_host(&app, (!is_agent()).then(user));
    let served = if args.gateway {
        let gateway = GatewayServer::new(host, gateway_settings(&app, context), upstream(&app));
        let served = serve_stdio(gateway.clone()).await;
        gateway.close().await;
        served
    } else {
        Box::pin(serve_stdio(PlanServer::new(host))).await
    };
    served.map_err(|error| Failure::new(Exit::RunFailed, with_causes(&error)))?;
    Ok(Exit::Done)
}

/// What the servers need of this process.
pub(super) fn build_host(app: &App, person: Option<Principal>) -> Host {
    Host {
        engine: app.engine.clone(),
        maker: Arc::new(Planner::new(app.engine.clone(), Vec::new())),
        files: Arc::<WorkspaceFiles>::clone(&app.files),
        person,
    }
}

/// The servers behind the gateway.
pub(super) fn upstream(app: &App) -> Arc<dyn Servers> {
    Arc::new(app.tools.remote().clone())
}

/// The configuration is its owner's word, also where an agent starts this process.
pub(super) fn gateway_settings(app: &App, context: &CommandContext) -> GatewaySettings {
    let table = context.config.gateway();
    let servers = app.roster.ready().map(|spec| spec.name.clone());
    GatewaySettings {
        mode: table.mode(),
        owner: account(),
        budget: table.budget(),
        servers: servers.collect(),
    }
}
