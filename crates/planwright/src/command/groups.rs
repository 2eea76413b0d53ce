//! Commands under nouns. Each is the command of the same name, which also stands at the top, hidden.

use crate::command;
use crate::command::args::Command;
use crate::command::later::Later;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum PlanGroup {
    /// Store plans from files: new ones, or new versions of known ones.
    Import(Later<command::plan::import::Args>),
    /// Write a stored plan as a file.
    Export(Later<command::plan::export::Args>),
    /// Validate a plan and report every error.
    Validate(Later<command::plan::validate::Args>),
    /// Have a model rewrite a plan, or some of its steps.
    Regenerate(Later<command::plan::regenerate::Args>),
    /// Show the differences between versions of a plan.
    Diff(Later<command::plan::diff::Args>),
    /// List the versions of a plan.
    Versions(Later<command::plan::versions::Args>),
    /// Restore an earlier version, as a new version.
    Restore(Later<command::plan::restore::Args>),
    /// Submit a draft for review.
    Propose(Later<command::plan::propose::Args>),
    /// Archive plans that have ended: they are kept, and left out of lists.
    Archive(Later<command::plan::archive::Args>),
    /// Take a plan out of the archive.
    Unarchive(Later<command::plan::archive::UnarchiveArgs>),
    /// Delete a plan.
    #[command(alias = "rm")]
    Delete(Later<command::plan::delete::Args>),
    /// Save plans with inputs as templates, and create plans from them.
    Template(Later<command::plan::template::Args>),
    /// Create a plan from what an agent did through the gateway.
    FromSession(Later<command::plan::recorded::Args>),
    /// Show statistics: latency and failures of tools, approvals, predictions, missing tools.
    Stats(Later<command::audit::stats::Args>),
    /// Print the JSON Schema of plans.
    Schema,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunGroup {
    /// Show the journal of a run.
    Log(Later<command::audit::log::Args>),
    /// Follow the events of a plan, including those of other processes.
    Watch(Later<command::audit::watch::Args>),
    /// Pause a run: running calls finish, no new ones start.
    Pause(Later<command::execution::pause::Args>),
    /// Cancel a run: running calls are stopped, the remaining steps do not run.
    Cancel(Later<command::execution::cancel::Args>),
    /// Mark a run that will not be resumed as failed.
    Fail(Later<command::execution::fail::Args>),
    /// Start a run that reuses the results of another one.
    #[command(after_help = crate::exit::EXIT_CODES)]
    Fork(Later<command::execution::fork::Args>),
    /// Undo a run: make the declared undo calls, last step first.
    #[command(after_help = crate::exit::EXIT_CODES)]
    Undo(Later<command::execution::undo::Args>),
    /// Answer the question of a step or of a tool's server, or list open questions.
    Input(Later<command::execution::input::Args>),
    /// Resolve a call whose outcome is unknown.
    Resolve(Later<command::execution::resolve::Args>),
    /// Check whether the success criteria of a plan hold after a run: by its own steps, or by
    /// asking a model.
    Check(Later<command::execution::check::Args>),
    /// End a run whose journal is damaged, so that its plan can be used again.
    Repair(Later<command::execution::repair::Args>),
    /// Replay a run from its journal, without any tool call.
    Replay(Later<command::audit::replay::Args>),
    /// Verify that no journal entry is missing or changed.
    Verify(Later<command::audit::verify::Args>),
    /// Write a signed receipt of a run: what was approved, sent and returned. Or verify one.
    Receipt(Later<command::audit::receipt::Args>),
    /// List and save images, audio and files that steps returned.
    Artifact(Later<command::plan::artifact::Args>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReviewGroup {
    /// Comment on a plan or a step, reply, or resolve a thread.
    Comment(Later<command::review::comment::Args>),
    /// Show the comments on a plan.
    Comments(Later<command::review::comments::Args>),
    /// Request changes to a plan, without rejecting it.
    RequestChanges(Later<command::review::request_changes::Args>),
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
    Trust(Later<command::setup::trust::Args>),
    /// List the tools that plans can use.
    Tools(Later<command::setup::tools::Args>),
    /// List and trust the programs that work on agent steps.
    Executors(Later<command::setup::executors::Args>),
    /// List the secrets plans can use, and check that they are available. Values are never shown.
    Secrets(Later<command::setup::secrets::Args>),
    /// List, test and retry the webhooks that receive events.
    Webhooks(Later<command::service::webhooks::Args>),
    /// List what waits for workers at the broker; show, send again or forget what was given up.
    Queue(Later<command::service::queue::Args>),
    /// Create, list, rotate and revoke access tokens of the service.
    #[command(subcommand)]
    Token(Later<command::service::token::TokenCommand>),
    /// Add Planwright to the configuration of an agent's client: server, hooks and skill.
    ///
    /// The changes are shown first, and `--undo` reverts them. An agent cannot do this: it would
    /// change what guards it.
    Setup(Later<command::agents::setup::Args>),
    /// Print the completion script of a shell.
    Completions(Later<command::setup::completions::Args>),
}

impl Command {
    /// The command that is meant, also where it was named under a noun.
    pub(crate) fn without_group(self) -> Self {
        match self {
            Self::Plan(Later(PlanGroup::Import(args))) => Self::Import(args),
            Self::Plan(Later(PlanGroup::Export(args))) => Self::Export(args),
            Self::Plan(Later(PlanGroup::Validate(args))) => Self::Validate(args),
            Self::Plan(Later(PlanGroup::Regenerate(args))) => Self::Regenerate(args),
            Self::Plan(Later(PlanGroup::Diff(args))) => Self::Diff(args),
            Self::Plan(Later(PlanGroup::Versions(args))) => Self::Versions(args),
            Self::Plan(Later(PlanGroup::Restore(args))) => Self::Restore(args),
            Self::Plan(Later(PlanGroup::Propose(args))) => Self::Propose(args),
            Self::Plan(Later(PlanGroup::Archive(args))) => Self::Archive(args),
            Self::Plan(Later(PlanGroup::Unarchive(args))) => Self::Unarchive(args),
            Self::Plan(Later(PlanGroup::Delete(args))) => Self::Delete(args),
            Self::Plan(Later(PlanGroup::Template(args))) => Self::Template(args),
            Self::Plan(Later(PlanGroup::FromSession(args))) => Self::FromSession(args),
            Self::Plan(Later(PlanGroup::Stats(args))) => Self::Stats(args),
            Self::Plan(Later(PlanGroup::Schema)) => Self::Schema,
            Self::Runs(Later(RunGroup::Log(args))) => Self::Log(args),
            Self::Runs(Later(RunGroup::Watch(args))) => Self::Watch(args),
            Self::Runs(Later(RunGroup::Pause(args))) => Self::Pause(args),
            Self::Runs(Later(RunGroup::Cancel(args))) => Self::Cancel(args),
            Self::Runs(Later(RunGroup::Fail(args))) => Self::Fail(args),
            Self::Runs(Later(RunGroup::Fork(args))) => Self::Fork(args),
            Self::Runs(Later(RunGroup::Undo(args))) => Self::Undo(args),
            Self::Runs(Later(RunGroup::Input(args))) => Self::Input(args),
            Self::Runs(Later(RunGroup::Resolve(args))) => Self::Resolve(args),
            Self::Runs(Later(RunGroup::Check(args))) => Self::Check(args),
            Self::Runs(Later(RunGroup::Repair(args))) => Self::Repair(args),
            Self::Runs(Later(RunGroup::Replay(args))) => Self::Replay(args),
            Self::Runs(Later(RunGroup::Verify(args))) => Self::Verify(args),
            Self::Runs(Later(RunGroup::Receipt(args))) => Self::Receipt(args),
            Self::Runs(Later(RunGroup::Artifact(args))) => Self::Artifact(args),
            Self::Review(Later(ReviewGroup::Comment(args))) => Self::Comment(args),
            Self::Review(Later(ReviewGroup::Comments(args))) => Self::Comments(args),
            Self::Review(Later(ReviewGroup::RequestChanges(args))) => Self::RequestChanges(args),
            Self::Config(Later(ConfigGroup::Doctor)) => Self::Doctor,
            Self::Config(Later(ConfigGroup::Trust(args))) => Self::Trust(args),
            Self::Config(Later(ConfigGroup::Tools(args))) => Self::Tools(args),
            Self::Config(Later(ConfigGroup::Executors(args))) => Self::Executors(args),
            Self::Config(Later(ConfigGroup::Secrets(args))) => Self::Secrets(args),
            Self::Config(Later(ConfigGroup::Webhooks(args))) => Self::Webhooks(args),
            Self::Config(Later(ConfigGroup::Queue(args))) => Self::Queue(args),
            Self::Config(Later(ConfigGroup::Token(args))) => Self::Token(args),
            Self::Config(Later(ConfigGroup::Setup(args))) => Self::Setup(args),
            Self::Config(Later(ConfigGroup::Completions(args))) => Self::Completions(args),
            other => other,
        }
    }
}
