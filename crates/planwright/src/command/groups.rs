//! Commands under nouns. Each is the command of the same name, which also stands at the top, hidden.

use crate::command;
use crate::command::args::Command;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum PlanGroup {
    /// Store plans from files: new ones, or new versions of known ones.
    Import(command::plan::import::Args),
    /// Write a stored plan as a file.
    Export(command::plan::export::Args),
    /// Validate a plan and report every error.
    Validate(command::plan::validate::Args),
    /// Have a model rewrite a plan, or some of its steps.
    Regenerate(command::plan::regenerate::Args),
    /// Show the differences between versions of a plan.
    Diff(command::plan::diff::Args),
    /// List the versions of a plan.
    Versions(command::plan::versions::Args),
    /// Restore an earlier version, as a new version.
    Restore(command::plan::restore::Args),
    /// Submit a draft for review.
    Propose(command::plan::propose::Args),
    /// Archive plans that have ended: they are kept, and left out of lists.
    Archive(command::plan::archive::Args),
    /// Take a plan out of the archive.
    Unarchive(command::plan::archive::UnarchiveArgs),
    /// Delete a plan.
    #[command(alias = "rm")]
    Delete(command::plan::delete::Args),
    /// Save plans with inputs as templates, and create plans from them.
    Template(command::plan::template::Args),
    /// Create a plan from what an agent did through the gateway.
    FromSession(command::plan::recorded::Args),
    /// Show statistics: latency and failures of tools, approvals, predictions, missing tools.
    Stats(command::audit::stats::Args),
    /// Print the JSON Schema of plans.
    Schema,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunGroup {
    /// Show the journal of a run.
    Log(command::audit::log::Args),
    /// Follow the events of a plan, including those of other processes.
    Watch(command::audit::watch::Args),
    /// Pause a run: running calls finish, no new ones start.
    Pause(command::execution::pause::Args),
    /// Cancel a run: running calls are stopped, the remaining steps do not run.
    Cancel(command::execution::cancel::Args),
    /// Mark a run that will not be resumed as failed.
    Fail(command::execution::fail::Args),
    /// Start a run that reuses the results of another one.
    #[command(after_help = crate::exit::EXIT_CODES)]
    Fork(command::execution::fork::Args),
    /// Undo a run: make the declared undo calls, last step first.
    #[command(after_help = crate::exit::EXIT_CODES)]
    Undo(command::execution::undo::Args),
    /// Answer the question of a step or of a tool's server, or list open questions.
    Input(command::execution::input::Args),
    /// Resolve a call whose outcome is unknown.
    Resolve(command::execution::resolve::Args),
    /// Check whether the success criteria of a plan hold after a run: by its own steps, or by
    /// asking a model.
    Check(command::execution::check::Args),
    /// End a run whose journal is damaged, so that its plan can be used again.
    Repair(command::execution::repair::Args),
    /// Replay a run from its journal, without any tool call.
    Replay(command::audit::replay::Args),
    /// Verify that no journal entry is missing or changed.
    Verify(command::audit::verify::Args),
    /// Write a signed receipt of a run: what was approved, sent and returned. Or verify one.
    Receipt(command::audit::receipt::Args),
    /// List and save images, audio and files that steps returned.
    Artifact(command::plan::artifact::Args),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReviewGroup {
    /// Comment on a plan or a step, reply, or resolve a thread.
    Comment(command::review::comment::Args),
    /// Show the comments on a plan.
    Comments(command::review::comments::Args),
    /// Request changes to a plan, without rejecting it.
    RequestChanges(command::review::request_changes::Args),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigGroup {
    /// Check the workspace, the store and the configuration.
    Doctor,
    /// Trust this folder, so that what its files allow beyond the defaults takes effect.
    ///
    /// The files of a folder (planwright.toml, .mcp.json, .vscode/mcp.json, .plans/prompts) can
    /// bring rules that allow calls, programs, servers, places of models, secrets, and addresses
    /// that are told things. This shows exactly what they bring and asks once for all of it. The
    /// answer is kept in your own directory, for exactly what was shown: what changes later is
    /// asked about again. What tightens (rules that ask or deny, limits) counts without a word.
    /// Agents cannot trust.
    Trust(command::setup::trust::Args),
    /// List the tools that plans can use.
    Tools(command::setup::tools::Args),
    /// List and trust the programs that work on agent steps.
    Executors(command::setup::executors::Args),
    /// List the secrets plans can use, and check that they are available. Values are never shown.
    Secrets(command::setup::secrets::Args),
    /// List, test and retry the webhooks that receive events.
    Webhooks(command::service::webhooks::Args),
    /// List what waits for workers at the broker; show, send again or forget what was given up.
    Queue(command::service::queue::Args),
    /// Create, list, rotate and revoke access tokens of the service.
    #[command(subcommand)]
    Token(command::service::token::TokenCommand),
    /// Add Planwright to the configuration of an agent's client: server, hooks and skill.
    ///
    /// The changes are shown first, and `--undo` reverts them. An agent cannot do this: it would
    /// change what guards it.
    Setup(command::agents::setup::Args),
    /// Print the completion script of a shell.
    Completions(command::setup::completions::Args),
}

impl Command {
    /// The command that is meant, also where it was named under a noun.
    pub(crate) fn without_group(self) -> Self {
        match self {
            Self::Plan(PlanGroup::Import(args)) => Self::Import(args),
            Self::Plan(PlanGroup::Export(args)) => Self::Export(args),
            Self::Plan(PlanGroup::Validate(args)) => Self::Validate(args),
            Self::Plan(PlanGroup::Regenerate(args)) => Self::Regenerate(args),
            Self::Plan(PlanGroup::Diff(args)) => Self::Diff(args),
            Self::Plan(PlanGroup::Versions(args)) => Self::Versions(args),
            Self::Plan(PlanGroup::Restore(args)) => Self::Restore(args),
            Self::Plan(PlanGroup::Propose(args)) => Self::Propose(args),
            Self::Plan(PlanGroup::Archive(args)) => Self::Archive(args),
            Self::Plan(PlanGroup::Unarchive(args)) => Self::Unarchive(args),
            Self::Plan(PlanGroup::Delete(args)) => Self::Delete(args),
            Self::Plan(PlanGroup::Template(args)) => Self::Template(args),
            Self::Plan(PlanGroup::FromSession(args)) => Self::FromSession(args),
            Self::Plan(PlanGroup::Stats(args)) => Self::Stats(args),
            Self::Plan(PlanGroup::Schema) => Self::Schema,
            Self::Runs(RunGroup::Log(args)) => Self::Log(args),
            Self::Runs(RunGroup::Watch(args)) => Self::Watch(args),
            Self::Runs(RunGroup::Pause(args)) => Self::Pause(args),
            Self::Runs(RunGroup::Cancel(args)) => Self::Cancel(args),
            Self::Runs(RunGroup::Fail(args)) => Self::Fail(args),
            Self::Runs(RunGroup::Fork(args)) => Self::Fork(args),
            Self::Runs(RunGroup::Undo(args)) => Self::Undo(args),
            Self::Runs(RunGroup::Input(args)) => Self::Input(args),
            Self::Runs(RunGroup::Resolve(args)) => Self::Resolve(args),
            Self::Runs(RunGroup::Check(args)) => Self::Check(args),
            Self::Runs(RunGroup::Repair(args)) => Self::Repair(args),
            Self::Runs(RunGroup::Replay(args)) => Self::Replay(args),
            Self::Runs(RunGroup::Verify(args)) => Self::Verify(args),
            Self::Runs(RunGroup::Receipt(args)) => Self::Receipt(args),
            Self::Runs(RunGroup::Artifact(args)) => Self::Artifact(args),
            Self::Review(ReviewGroup::Comment(args)) => Self::Comment(args),
            Self::Review(ReviewGroup::Comments(args)) => Self::Comments(args),
            Self::Review(ReviewGroup::RequestChanges(args)) => Self::RequestChanges(args),
            Self::Config(ConfigGroup::Doctor) => Self::Doctor,
            Self::Config(ConfigGroup::Trust(args)) => Self::Trust(args),
            Self::Config(ConfigGroup::Tools(args)) => Self::Tools(args),
            Self::Config(ConfigGroup::Executors(args)) => Self::Executors(args),
            Self::Config(ConfigGroup::Secrets(args)) => Self::Secrets(args),
            Self::Config(ConfigGroup::Webhooks(args)) => Self::Webhooks(args),
            Self::Config(ConfigGroup::Queue(args)) => Self::Queue(args),
            Self::Config(ConfigGroup::Token(args)) => Self::Token(args),
            Self::Config(ConfigGroup::Setup(args)) => Self::Setup(args),
            Self::Config(ConfigGroup::Completions(args)) => Self::Completions(args),
            other => other,
        }
    }
}
