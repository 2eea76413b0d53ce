//! The command line: one variant per command, each with its arguments in its own file.

use crate::command;
use crate::config::passphrase::Unlock;
use crate::exit::EXIT_CODES;
use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Plans people can trust: propose, review, approve, run, resume and audit.
#[derive(Debug, Parser)]
#[command(name = "planwright", version, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The workspace; default: the nearest directory above with `.plans/`, else the current one.
    #[arg(long, global = true, env = "PLANWRIGHT_DIR", value_name = "PATH")]
    pub(crate) dir: Option<PathBuf>,
    /// Print exactly one JSON document on stdout.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No colours. NO_COLOR does the same.
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Trust every server that a file of the workspace names, without asking. For automation.
    #[arg(
        long,
        global = true,
        env = "PLANWRIGHT_TRUST_PROJECT_SERVERS",
        hide_env_values = true
    )]
    #[arg(value_parser = FalseyValueParser::new())]
    pub(crate) trust_project_servers: bool,
    #[command(flatten)]
    pub(crate) unlock: Unlock,
    #[command(flatten)]
    pub(crate) log: crate::telemetry::LogArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See the whole story in ten seconds: review, approval, a parallel run, a crash, the recovery.
    Demo(command::demo::Args),
    /// Have a model write a plan for a goal.
    Create(command::plan::create::Args),
    /// Have a model write a plan, or some of its steps, again.
    Regenerate(command::plan::regenerate::Args),
    /// Write a plan to start from.
    New(command::plan::new::Args),
    /// Store plans from files: new ones, or new versions of known ones.
    Import(command::plan::import::Args),
    /// Write a stored plan as a file.
    Export(command::plan::export::Args),
    /// Report everything that is wrong with a plan.
    Validate(command::plan::validate::Args),
    /// Show a plan, its steps and its runs.
    Show(command::plan::show::Args),
    /// List the plans.
    List(command::plan::list::Args),
    /// Change a plan: single changes, a file, or an editor. Every change is a new version.
    Edit(command::plan::edit::Args),
    /// Show what differs between versions of a plan.
    Diff(command::plan::diff::Args),
    /// List the versions of a plan.
    Versions(command::plan::versions::Args),
    /// Make the content of an earlier version the next one.
    Restore(command::plan::restore::Args),
    /// Put a draft forward, so that people can decide about it.
    Propose(command::plan::propose::Args),
    /// Run a plan.
    #[command(after_help = EXIT_CODES)]
    Run(command::execution::run::Args),
    /// Go on with a run that was paused, interrupted, or waited for a person.
    #[command(after_help = EXIT_CODES)]
    Resume(command::execution::resume::Args),
    /// Pause a run: what is in flight finishes, nothing new starts.
    Pause(command::execution::pause::Args),
    /// Cancel a run: what is in flight is stopped, the rest never runs.
    Cancel(command::execution::cancel::Args),
    /// Declare a run failed that nobody will go on with.
    Fail(command::execution::fail::Args),
    /// Approve a plan, or one step of its run, by the version or digest that was shown.
    Approve(command::review::approve::Args),
    /// Reject a plan, or one step of its run.
    Reject(command::review::reject::Args),
    /// Ask the author of a plan to change something, without rejecting it.
    RequestChanges(command::review::request_changes::Args),
    /// Say something about a plan or a step, answer, or settle a thread.
    Comment(command::review::comment::Args),
    /// Show what was said about a plan.
    Comments(command::review::comments::Args),
    /// Answer what a step or a tool's server asks, or list what is asked.
    Input(command::execution::input::Args),
    /// Say what became of a call whose outcome is unknown.
    Resolve(command::execution::resolve::Args),
    /// Start a run that reuses the results of another one.
    #[command(after_help = EXIT_CODES)]
    Fork(command::execution::fork::Args),
    /// Find out whether the success criteria of a plan hold after it ran: by its own steps, or by
    /// asking a model.
    #[command(display_order = 24)]
    Check(command::execution::check::Args),
    /// Take back what a run did: the declared undo calls, last step first.
    #[command(after_help = EXIT_CODES)]
    Undo(command::execution::undo::Args),
    /// Talk with a model that can use the tools; everything that changes something is asked about.
    Chat(command::execution::chat::Args),
    /// Keep plans with inputs, and make plans from them.
    Template(command::plan::template::Args),
    /// Fold a run again from its journal, without one tool call.
    Replay(command::audit::replay::Args),
    /// Show the journal of a run.
    Log(command::audit::log::Args),
    /// Show what happens to a plan, as it happens, also in other processes.
    Watch(command::audit::watch::Args),
    /// Check that nothing was lost or changed.
    Verify(command::audit::verify::Args),
    /// Put away plans that are over: kept, and left out of lists.
    Archive(command::plan::archive::Args),
    /// Take a plan out of the archive.
    Unarchive(command::plan::archive::UnarchiveArgs),
    /// Show figures: latency and failures of tools, approvals, predictions, missing tools.
    Stats(command::audit::stats::Args),
    /// Delete a plan.
    Delete(command::plan::delete::Args),
    /// List the tools that plans can use.
    Tools(command::setup::tools::Args),
    /// List the secrets plans can use, and check that they are there. Values are never shown.
    Secrets(command::setup::secrets::Args),
    /// List, trust and check the MCP servers that bring tools.
    #[command(subcommand)]
    Servers(command::setup::servers::ServersCommand),
    /// List the models that plan, think and reflect, and check that they answer. Keys are never
    /// shown.
    Models(command::setup::models::Args),
    /// List and trust the programs that work on agent steps.
    Executors(command::setup::executors::Args),
    /// List, test and retry the webhooks that are told what happens.
    Webhooks(command::service::webhooks::Args),
    /// Check the policy, or say what it means for a plan.
    Policy(command::setup::policy::Args),
    /// Encrypt, back up, restore and check the store.
    #[command(subcommand)]
    Store(command::store::StoreCommand),
    /// Give and take access to the service.
    #[command(subcommand)]
    Token(command::service::token::TokenCommand),
    /// Serve the plans over HTTP, and execute their runs.
    Serve(command::service::serve::Args),
    /// From inside an executor: call a tool of the plan, or list those in scope.
    Call(command::service::call::Args),
    /// Print the JSON Schema of plans.
    Schema,
    /// Check the workspace, the store and the configuration.
    Doctor,
    /// Print the completion script of a shell.
    Completions(command::setup::completions::Args),
}
