//! The command line: one variant per command, each with its arguments in its own file.

use crate::command;
use crate::command::groups::{ConfigGroup, PlanGroup, ReviewGroup, RunGroup};
use crate::command::help::TOP_HELP;
use crate::command::later::{Later, describe_at_once};
use crate::config::passphrase::Unlock;
use crate::exit::EXIT_CODES;
use crate::workspace::plan_source::PlanSource;
use clap::builder::FalseyValueParser;
use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::path::PathBuf;

/// Plans people can trust: propose, review, approve, run, resume and audit.
#[derive(Debug, Parser)]
#[command(name = "planwright", version, after_help = EXIT_CODES, max_term_width = 110, help_template = TOP_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Reads the command line of this process, with the plan that it is about.
pub(crate) fn read_command_line() -> Result<(Cli, Option<String>), clap::Error> {
    let matches = Cli::command().try_get_matches()?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut Cli::command()))?;
    Ok((cli, find_plan(&matches)))
}

/// Describes all commands at once, for those who want to know more than the one that was named.
pub(crate) fn describe_all_commands() -> clap::Command {
    let mut command = describe_at_once(Cli::command);
    command.build();
    command
}

/// Returns the id that a command or one below it takes as its plan. A file is not one.
fn find_plan(matches: &ArgMatches) -> Option<String> {
    if let Some((_, below)) = matches.subcommand() {
        return find_plan(below);
    }
    let plan = matches.try_get_one::<String>("plan").ok().flatten()?;
    matches!(PlanSource::parse(plan), Ok(PlanSource::Id(_))).then(|| plan.clone())
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
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
    /// Trust the servers, models and executors that files of the workspace describe, for this
    /// command. For automation; an agent cannot.
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
    /// Set up this folder: a configuration with what is found on this machine.
    Init(Later<command::start::init::Args>),
    /// Show active runs and what is waiting for you.
    #[command(hide = true)]
    Status,
    /// Review, decide and watch in a full-screen interface.
    Tui,
    /// List what is waiting for you, with the command for each.
    Inbox,
    /// Stop a run: running calls finish, and `resume` continues it. With --cancel it ends.
    Stop(Later<command::start::stop::Args>),
    /// Explain a code of a finding or an error, or print a page of the documentation.
    #[command(hide = true)]
    Explain(Later<command::start::explain::Args>),
    /// Print the version.
    #[command(hide = true)]
    Version,
    /// Show a review, an approval, a parallel run, a crash and the recovery in ten seconds.
    Demo(Later<command::demo::Args>),
    /// Have a model write a plan for a goal.
    Create(Later<command::plan::create::Args>),
    /// Have a model rewrite a plan, or some of its steps.
    #[command(hide = true)]
    Regenerate(Later<command::plan::regenerate::Args>),
    /// Write a first plan to edit.
    New(Later<command::plan::new::Args>),
    /// Store plans from files: new ones, or new versions of known ones.
    #[command(hide = true)]
    Import(Later<command::plan::import::Args>),
    /// Write a stored plan as a file.
    #[command(hide = true)]
    Export(Later<command::plan::export::Args>),
    /// Validate a plan and report every error.
    #[command(hide = true)]
    Validate(Later<command::plan::validate::Args>),
    /// Show a plan, its steps and its runs.
    Show(Later<command::plan::show::Args>),
    /// List the plans.
    #[command(alias = "ls")]
    List(Later<command::plan::list::Args>),
    /// Change a plan: single changes, a file, or an editor. Every change is a new version.
    Edit(Later<command::plan::edit::Args>),
    /// Show the differences between versions of a plan.
    #[command(hide = true)]
    Diff(Later<command::plan::diff::Args>),
    /// List the versions of a plan.
    #[command(hide = true)]
    Versions(Later<command::plan::versions::Args>),
    /// Restore an earlier version, as a new version.
    #[command(hide = true)]
    Restore(Later<command::plan::restore::Args>),
    /// Submit a draft for review.
    #[command(hide = true)]
    Propose(Later<command::plan::propose::Args>),
    /// Run a plan.
    #[command(after_help = EXIT_CODES)]
    Run(Later<command::execution::run::Args>),
    /// Continue a run that was paused, interrupted, or waits for a person.
    #[command(after_help = EXIT_CODES)]
    Resume(Later<command::execution::resume::Args>),
    /// Pause a run: running calls finish, no new ones start.
    #[command(hide = true)]
    Pause(Later<command::execution::pause::Args>),
    /// Cancel a run: running calls are stopped, the remaining steps do not run.
    #[command(hide = true)]
    Cancel(Later<command::execution::cancel::Args>),
    /// Mark a run that will not be resumed as failed.
    #[command(hide = true)]
    Fail(Later<command::execution::fail::Args>),
    /// End a run whose journal is damaged, so that its plan can be used again.
    #[command(hide = true)]
    Repair(Later<command::execution::repair::Args>),
    /// Approve a plan, or one step of its run, by the version or digest that was shown.
    Approve(Later<command::review::approve::Args>),
    /// Reject a plan, or one step of its run.
    Reject(Later<command::review::reject::Args>),
    /// Request changes to a plan, without rejecting it.
    #[command(hide = true)]
    RequestChanges(Later<command::review::request_changes::Args>),
    /// Comment on a plan or a step, reply, or resolve a thread.
    #[command(hide = true)]
    Comment(Later<command::review::comment::Args>),
    /// Show the comments on a plan.
    #[command(hide = true)]
    Comments(Later<command::review::comments::Args>),
    /// Answer the question of a step or of a tool's server, or list open questions.
    #[command(hide = true)]
    Input(Later<command::execution::input::Args>),
    /// Resolve a call whose outcome is unknown.
    #[command(hide = true)]
    Resolve(Later<command::execution::resolve::Args>),
    /// Start a run that reuses the results of another one.
    #[command(after_help = EXIT_CODES)]
    #[command(hide = true)]
    Fork(Later<command::execution::fork::Args>),
    /// Check whether the success criteria of a plan hold after a run: by its own steps, or by
    /// asking a model.
    #[command(display_order = 24)]
    #[command(hide = true)]
    Check(Later<command::execution::check::Args>),
    /// Undo a run: make the declared undo calls, last step first.
    #[command(after_help = EXIT_CODES)]
    #[command(hide = true)]
    Undo(Later<command::execution::undo::Args>),
    /// Chat with a model that can use the tools; every call that writes needs your approval.
    Chat(Later<command::execution::chat::Args>),
    /// Save plans with inputs as templates, and create plans from them.
    #[command(hide = true)]
    Template(Later<command::plan::template::Args>),
    /// Commands for plan documents and their lifecycle.
    #[command(subcommand)]
    Plan(Later<PlanGroup>),
    /// Commands about runs.
    #[command(subcommand)]
    Runs(Later<RunGroup>),
    /// Commands for discussing a plan.
    #[command(subcommand)]
    Review(Later<ReviewGroup>),
    /// Commands for setting up a workspace.
    #[command(subcommand)]
    Config(Later<ConfigGroup>),
    /// Create a plan from what an agent did through the gateway.
    #[command(hide = true)]
    FromSession(Later<command::plan::recorded::Args>),
    /// List and save images, audio and files that steps returned.
    #[command(hide = true)]
    Artifact(Later<command::plan::artifact::Args>),
    /// Replay a run from its journal, without any tool call.
    #[command(hide = true)]
    Replay(Later<command::audit::replay::Args>),
    /// Show the journal of a run.
    #[command(hide = true)]
    Log(Later<command::audit::log::Args>),
    /// Follow the events of a plan, including those of other processes.
    #[command(hide = true)]
    Watch(Later<command::audit::watch::Args>),
    /// Verify that no journal entry is missing or changed.
    #[command(hide = true)]
    Verify(Later<command::audit::verify::Args>),
    /// Write a signed receipt of a run: what was approved, sent and returned. Or verify one.
    #[command(hide = true)]
    Receipt(Later<command::audit::receipt::Args>),
    /// Archive plans that have ended: they are kept, and left out of lists.
    #[command(hide = true)]
    Archive(Later<command::plan::archive::Args>),
    /// Take a plan out of the archive.
    #[command(hide = true)]
    Unarchive(Later<command::plan::archive::UnarchiveArgs>),
    /// Show statistics: latency and failures of tools, approvals, predictions, missing tools.
    #[command(hide = true)]
    Stats(Later<command::audit::stats::Args>),
    /// Delete a plan.
    #[command(hide = true, alias = "rm")]
    Delete(Later<command::plan::delete::Args>),
    /// Trust this folder, so that what its files allow beyond the defaults takes effect.
    ///
    /// The files of a folder (planwright.toml, .mcp.json, .vscode/mcp.json, .plans/prompts) can
    /// bring rules that allow calls, programs, servers, places of models, secrets, and addresses
    /// that are told things. This shows exactly what they bring and asks once for all of it. The
    /// answer is kept in your own directory, for exactly what was shown: what changes later is
    /// asked about again. What tightens (rules that ask or deny, limits) counts without a word.
    /// Agents cannot trust.
    #[command(hide = true)]
    Trust(Later<command::setup::trust::Args>),
    /// List the tools that plans can use.
    #[command(hide = true)]
    Tools(Later<command::setup::tools::Args>),
    /// List the secrets plans can use, and check that they are available. Values are never shown.
    #[command(hide = true, alias = "secret")]
    Secrets(Later<command::setup::secrets::Args>),
    /// List, trust and check the MCP servers that bring tools.
    #[command(subcommand)]
    #[command(name = "server", alias = "servers")]
    Servers(Later<command::setup::servers::ServersCommand>),
    /// List the models that plan, think and reflect, and check that they answer. Keys are never
    /// shown.
    #[command(name = "model", alias = "models")]
    Models(Later<command::setup::models::Args>),
    /// List and trust the programs that work on agent steps.
    #[command(hide = true, alias = "executor")]
    Executors(Later<command::setup::executors::Args>),
    /// List, test and retry the webhooks that receive events.
    #[command(hide = true, alias = "webhook")]
    Webhooks(Later<command::service::webhooks::Args>),
    /// List what waits for workers at the broker; show, send again or forget what was given up.
    #[command(hide = true)]
    Queue(Later<command::service::queue::Args>),
    /// Check the policy, or explain what it decides about a plan.
    Policy(Later<command::setup::policy::Args>),
    /// Encrypt, back up, restore and check the store.
    #[command(subcommand)]
    Store(Later<command::store::StoreCommand>),
    /// Create, list, rotate and revoke access tokens of the service.
    #[command(subcommand)]
    #[command(hide = true)]
    Token(Later<command::service::token::TokenCommand>),
    /// Serve the plans over HTTP, and execute their runs.
    Serve(Later<command::service::serve::Args>),
    /// Execute runs, or carry out single steps, without HTTP. Needs a store in Postgres.
    ///
    /// A worker with capabilities carries out the steps that name one of them, with its own servers and secrets, which never
    /// travel. Which capabilities are carried out by workers is said where the plans run: [dispatch] in planwright.toml.
    /// SIGTERM ends it when what it does is done.
    #[command(hide = true)]
    Worker(Later<command::service::worker::Args>),
    /// List the workers, and what they do.
    #[command(hide = true)]
    Workers,
    /// Offer the plans as tools to the MCP client that starts this program (standard input and output).
    #[command(hide = true)]
    Mcp(Later<command::service::mcp::Args>),
    /// Answer a hook of an agent's client: decide about a call, store a plan, list what is waiting.
    ///
    /// A client such as Claude Code runs this with its question on standard input. Everything that goes wrong
    /// blocks the call. `planwright setup` writes it into the client's configuration.
    #[command(hide = true)]
    Hook(Later<command::agents::hook::Args>),
    /// Add Planwright to the configuration of an agent's client: server, hooks and skill.
    ///
    /// The changes are shown first, and `--undo` reverts them. An agent cannot do this: it would
    /// change what guards it.
    #[command(hide = true)]
    Setup(Later<command::agents::setup::Args>),
    /// From inside an executor: call a tool of the plan, or list those in scope.
    #[command(hide = true)]
    Call(Later<command::service::call::Args>),
    /// Print the JSON Schema of plans.
    #[command(hide = true)]
    Schema,
    /// Check the workspace, the store and the configuration.
    #[command(hide = true)]
    Doctor,
    /// Print the completion script of a shell.
    #[command(hide = true)]
    Completions(Later<command::setup::completions::Args>),
}
