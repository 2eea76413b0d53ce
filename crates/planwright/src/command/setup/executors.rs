//! `executors`: the programs that work on agent steps, and the user's word about those that a
//! project brings.

use crate::config::executors::{DescribedExecutor, trust_name};
use crate::config::file::FILE;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, DIM, GREEN, YELLOW, line};
use crate::terminal::trust_prompt::{self, Detail};
use crate::trust::{Trust, executor_loosening};
use crate::workspace::app::CommandContext;
use crate::workspace::principal::refuse_agents;
use anstyle::Style;
use planwright_adapters::executor::AgentKind;
use planwright_core::text::nearest_names;
use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<ExecutorsCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum ExecutorsCommand {
    /// Names, commands, and which of them may be started. This is the default.
    List,
    /// Trust an executor that the project's file describes, with exactly the launch line it names.
    Trust(TrustArgs),
    /// Revoke trust.
    Untrust(UntrustArgs),
}

#[derive(Debug, clap::Args)]
struct TrustArgs {
    /// The executor, as the file names it.
    name: String,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
}

#[derive(Debug, clap::Args)]
struct UntrustArgs {
    /// The executor, as the file names it.
    name: String,
}

pub(crate) fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        None | Some(ExecutorsCommand::List) => list_executors(context),
        Some(ExecutorsCommand::Trust(args)) => trust_executor(context, args),
        Some(ExecutorsCommand::Untrust(args)) => untrust_executor(context, args),
    }
}

/// Says whether agent steps can be given to an executor.
#[derive(Debug, Clone, Copy)]
enum ExecutorReadiness {
    Ready,
    Untrusted,
}

impl ExecutorReadiness {
    fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Untrusted => "untrusted",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Ready => GREEN,
            Self::Untrusted => YELLOW,
        }
    }
}

fn list_executors(context: &CommandContext) -> Result<Exit, Failure> {
    let executors = context.executors();
    let printer = context.printer;
    if printer.json {
        printer.document(
            &executors
                .iter()
                .map(executor_document)
                .collect::<Vec<Value>>(),
        )?;
        return Ok(Exit::Done);
    }
    for executor in &executors {
        let obstacle = executor.obstacle();
        let readiness = match obstacle {
            None => ExecutorReadiness::Ready,
            Some(_) => ExecutorReadiness::Untrusted,
        };
        let name = printer.out(BOLD, &format!("{:16}", line(&executor.name)));
        let word = printer.out(readiness.style(), &format!("{:9}", readiness.word()));
        printer.data(&format!(
            "{name}  {word}  {:18}  {}",
            executor.source(),
            line(&executor.line())
        ))?;
        if let Some(obstacle) = &obstacle {
            printer.data(&format!("{:16}  {}", "", printer.out(DIM, &line(obstacle))))?;
        }
    }
    match executors
        .iter()
        .find(|executor| executor.obstacle().is_some())
    {
        Some(_) => printer.hint("To review what it runs and trust it: planwright trust"),
        None if executors.is_empty() => {
            printer.talk("no executor is configured");
            printer.hint("To see how to add one to planwright.toml: planwright explain agents");
        }
        None => {}
    }
    Ok(Exit::Done)
}

fn executor_document(executor: &DescribedExecutor) -> Value {
    json!({
        "name": executor.name,
        "source": executor.source(),
        "command": executor.table.launch_line(&executor.name),
        "kind": executor.table.agent(&executor.name).map(AgentKind::as_str),
        "ownTools": executor.table.own_tools,
        "environment": executor.table.env,
        "directory": executor.table.cwd,
        "timeoutSeconds": executor.table.timeout().as_secs(),
        "digest": executor.digest,
        "trusted": executor.obstacle().is_none(),
        "obstacle": executor.obstacle(),
    })
}

fn trust_executor(context: &CommandContext, args: &TrustArgs) -> Result<Exit, Failure> {
    let executors = context.executors();
    let printer = context.printer;
    let executor = find_executor(&executors, &args.name)?;
    if executor.own {
        printer.talk(&format!(
            "it is in your own {FILE}, so it is trusted already"
        ));
        return trust_prompt::print_trusted(printer, &executor.name, executor.digest);
    }
    let root = &context.workspace.root;
    let shown = executor_loosening(&executor.name, &executor.table, root);
    trust_prompt::show_loosening(printer, &shown, Detail::Full);
    trust_prompt::confirm_trust(
        printer,
        args.yes,
        &format!("executors trust {}", executor.name),
    )?;
    let trust = Trust::read(&context.workspace.root);
    trust.grant(
        &trust_name(&executor.name),
        executor.digest,
        &executor.line(),
    )?;
    trust_prompt::print_trusted(printer, &executor.name, executor.digest)
}

fn untrust_executor(context: &CommandContext, args: &UntrustArgs) -> Result<Exit, Failure> {
    refuse_agents("take trust back")?;
    // What is trusted and no longer described by any file can be taken back too.
    let found = Trust::read(&context.workspace.root).revoke(&trust_name(&args.name))?;
    if !found && find_executor(&context.executors(), &args.name)?.own {
        return Err(
            Failure::usage(format!("it is in your own {FILE}, so it is trusted"))
                .hint("remove it there"),
        );
    }
    trust_prompt::print_untrusted(context.printer, &args.name, found)
}

fn find_executor<'a>(
    executors: &'a [DescribedExecutor],
    name: &str,
) -> Result<&'a DescribedExecutor, Failure> {
    if let Some(found) = executors.iter().find(|executor| executor.name == name) {
        return Ok(found);
    }
    let failure = Failure::usage(format!("no file describes an executor `{}`", line(name)));
    let names = executors.iter().map(|executor| executor.name.clone());
    Err(match nearest_names(name, names).as_slice() {
        [] => failure.hint("To list them: planwright executors"),
        near => failure.hint(format!("did you mean {}?", line(&near.join(" or ")))),
    })
}
