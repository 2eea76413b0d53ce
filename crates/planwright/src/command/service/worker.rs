//! `worker`: executes runs, or carries out single steps by capability, without HTTP.

use super::stop_signals::StopSignals;
use crate::config::file::FILE;
use crate::exit::{Exit, Failure};
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::principal::refuse_agents;
use crate::workspace::projections::WorkspaceFiles;
use planwright_engine::port::PlanFiles;
use planwright_engine::{Supervisor, SupervisorOptions, WorkerError, WorkerOptions};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time that what was begun has to end, once the worker is told to stop. A second signal ends it at once.
const GRACE: Duration = Duration::from_mins(10);
const DEFAULT_CLAIM: Duration = Duration::from_secs(30);
const SHORTEST_CLAIM: Duration = Duration::from_secs(2);
const LONGEST_CLAIM: Duration = Duration::from_mins(10);
/// The longest name of a capability.
const MAX_NAME: usize = 128;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A capability that this worker has: it carries out the steps that name it. Repeat it for several. Without any, the
    /// worker executes runs.
    #[arg(long = "capability", value_name = "NAME")]
    capabilities: Vec<String>,
    /// The number of steps that it carries out at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    /// A file with the MCP servers of this worker, in the format of .mcp.json. It comes before the files of the workspace,
    /// and is trusted because you name it.
    #[arg(long, value_name = "FILE")]
    servers: Option<PathBuf>,
    /// Execute runs as well as steps. The worker needs the servers of every plan then.
    #[arg(long)]
    runs: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let mut context = context.clone();
    check_capabilities(&args.capabilities)?;
    if let Some(path) = &args.servers {
        refuse_agents("name the servers of a worker")?;
        context.config.name_servers_file(check_file(path)?);
    }
    let claim_ttl = read_claim(&context)?;
    let app = context.open(Access::Write)?;
    if app.postgres.is_none() {
        return Err(Failure::refused(
            "workers need a store that several processes on several machines can share",
        )
        .hint("planwright worker --store postgres://USER@HOST/DATABASE"));
    }
    let wanted: BTreeSet<String> = app.roster.ready().map(|spec| spec.name.clone()).collect();
    app.connect(&wanted).await?;
    let mut signals = StopSignals::listen("worker")?;
    let executes_runs = args.runs || args.capabilities.is_empty();
    let supervisor = executes_runs.then(|| start_supervisor(&app));
    let options = WorkerOptions {
        capabilities: args.capabilities.clone(),
        concurrency: usize::from(args.concurrency),
        claim_ttl,
        host: host_name(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let worker = app.engine.workers().start_worker(options).await?;
    announce(&app, args, executes_runs)?;
    signals.first().await;
    app.printer()
        .talk("stopping: what was begun is finished first; a second signal stops at once");
    let stopping = async {
        let (runs, left) = tokio::join!(stop_runs(supervisor), worker.stop(GRACE));
        runs + left
    };
    tokio::select! {
        left = stopping => match left {
            0 => app.printer().talk("stopped"),
            left => app.printer().warn(&format!("stopped, with {left} not finished: others take over")),
        },
        () = signals.second() => {
            app.engine.drain();
            app.context.children.kill().await;
            app.printer().warn("stopped at once: what was in flight is decided by those who take over");
        }
    }
    Ok(Exit::Done)
}

fn start_supervisor(app: &App) -> Supervisor {
    // A person answers at any service of the store while the calls wait.
    app.engine.hold_questions();
    let files: Arc<dyn PlanFiles> = Arc::<WorkspaceFiles>::clone(&app.files);
    let mut options = SupervisorOptions {
        files: Some(files),
        ..SupervisorOptions::default()
    };
    if let Some(max_runs) = app.context.config.serve().max_runs {
        options.max_runs = max_runs.max(1);
    }
    Supervisor::start(app.engine.clone(), &options)
}

async fn stop_runs(supervisor: Option<Supervisor>) -> usize {
    match supervisor {
        Some(supervisor) => supervisor.stop(GRACE).await.cut_off,
        None => 0,
    }
}

fn check_capabilities(names: &[String]) -> Result<(), Failure> {
    let is_name = |name: &String| {
        !name.trim().is_empty()
            && name.len() <= MAX_NAME
            && !name.chars().any(|c| c.is_control() || c.is_whitespace())
    };
    match names.iter().find(|name| !is_name(name)) {
        None => Ok(()),
        Some(name) => Err(Failure::usage(format!(
            "{name:?} is no capability: a word of at most {MAX_NAME} bytes, as steps name it"
        ))),
    }
}

fn check_file(path: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    match absolute.is_file() {
        true => Ok(absolute),
        false => Err(
            Failure::usage(format!("there is no file {}", absolute.display()))
                .hint("a file like .mcp.json: {\"mcpServers\": {\"NAME\": {\"command\": \"…\"}}}"),
        ),
    }
}

fn read_claim(context: &CommandContext) -> Result<Duration, Failure> {
    let claim = context.config.dispatch().claim;
    let claim = claim.map_or(DEFAULT_CLAIM, |claim| claim.as_duration());
    if (SHORTEST_CLAIM..=LONGEST_CLAIM).contains(&claim) {
        return Ok(claim);
    }
    Err(Failure::usage(format!(
        "{FILE}: [dispatch] claim is from 2s to 10m"
    )))
}

/// The name of this machine, for people.
fn host_name() -> String {
    let read = |path| std::fs::read_to_string(path).ok();
    let name = read("/proc/sys/kernel/hostname").or_else(|| read("/etc/hostname"));
    let name = name.or_else(|| std::env::var("HOSTNAME").ok());
    let name = name.unwrap_or_default().trim().to_owned();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}

fn announce(app: &App, args: &Args, executes_runs: bool) -> Result<(), Failure> {
    let steps = args.capabilities.join(", ");
    let does = match (executes_runs, args.capabilities.is_empty()) {
        (true, true) => "runs".to_owned(),
        (true, false) => format!("runs, and steps with the capabilities {steps}"),
        (false, _) => format!("steps with the capabilities {steps}"),
    };
    let id = &app.engine.owner().0;
    app.printer().talk(&format!("worker {id} takes {does}"));
    if app.printer().json {
        app.printer().document(
            &json!({ "worker": id, "capabilities": args.capabilities, "runs": executes_runs }),
        )?;
    }
    Ok(())
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        Self::from_error(Exit::Store, &error)
    }
}
