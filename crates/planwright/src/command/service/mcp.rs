//! `mcp`: plans as tools of the agent that starts this program, over standard input and output.

use super::step_tools::RemoteStep;
use crate::chat::Planner;
use crate::exit::{Exit, Failure};
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::principal::{account, is_agent, user};
use crate::workspace::projections::WorkspaceFiles;
use planwright_core::principal::Principal;
use planwright_engine::port::Servers;
use planwright_engine::with_causes;
use planwright_mcp::{GatewayServer, GatewaySettings, Host, PlanServer, StepServer, serve_stdio};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Offer the tools of the configured servers too, each call judged by policy and journaled
    #[arg(long)]
    gateway: bool,
    /// From inside an executor: offer the tools of its step, and nothing else (docs/agents.md)
    #[arg(long, conflicts_with = "gateway")]
    pub(crate) step: bool,
}

/// Serves the tools of a step. The workspace is not looked at: the gateway of the step decides.
pub(crate) async fn run_step() -> Result<Exit, Failure> {
    let tools = Arc::new(RemoteStep::from_environment()?);
    let served = serve_stdio(StepServer::new(tools)).await;
    served.map_err(|error| Failure::new(Exit::RunFailed, with_causes(&error)))?;
    Ok(Exit::Done)
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Write)?;
    let wanted: BTreeSet<String> = app.roster.ready().map(|spec| spec.name.clone()).collect();
    app.connect(&wanted).await?;
    let host = build_host(&app, (!is_agent()).then(user), None);
    let served = if args.gateway {
        let gateway = GatewayServer::new(host, gateway_settings(&app, context), upstream(&app));
        gateway.take_up_requests();
        let served = Box::pin(serve_stdio(gateway.clone())).await;
        gateway.close().await;
        served
    } else {
        let server = PlanServer::new(host);
        server.take_up_requests();
        Box::pin(serve_stdio(server)).await
    };
    served.map_err(|error| Failure::new(Exit::RunFailed, with_causes(&error)))?;
    Ok(Exit::Done)
}

/// What the servers need of this process.
pub(super) fn build_host(app: &App, person: Option<Principal>, page: Option<String>) -> Host {
    Host {
        engine: app.engine.clone(),
        maker: Arc::new(Planner::new(app.engine.clone(), Vec::new())),
        files: Arc::<WorkspaceFiles>::clone(&app.files),
        person,
        page,
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
        names: table.names(),
        templates: table.passes_templates(),
    }
}
