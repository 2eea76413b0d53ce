//! Commands inside the chat. They are those of the command line: the same arguments, the same
//! functions.

use super::completion::COMMANDS;
use super::session::Session;
use super::words::split;
use crate::command::audit::stats;
use crate::command::execution::{
    cancel, fork, input, pause, resolve, resume, run as run_plan, undo,
};
use crate::command::plan::{create, delete, diff, edit, list, regenerate, show};
use crate::command::review::{approve, comment, reject};
use crate::command::setup::{servers, tools};
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::line;
use crate::workspace::app::CommandContext;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use planwright_core::model::Cost;
use serde_json::{Value, json};

/// Whether the chat goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChatFlow {
    Continue,
    Quit,
}

/// A line that begins with a slash.
#[derive(Debug, Parser)]
#[command(
    name = "/",
    no_binary_name = true,
    disable_version_flag = true,
    disable_help_flag = true
)]
#[command(
    disable_help_subcommand = true,
    help_template = "{subcommands}",
    max_term_width = 110
)]
struct Slash {
    #[command(subcommand)]
    command: SlashCommand,
}

#[derive(Debug, Subcommand)]
enum SlashCommand {
    /// Make, look at, decide about and run plans.
    #[command(subcommand)]
    Plan(Box<PlanCommand>),
    /// List the plans.
    Plans(list::Args),
    /// Show figures of plans, tools and approvals.
    PlanStats(stats::Args),
    /// List the tools whose names contain a word, or show one in full.
    Tools { filter: Option<String> },
    /// List the MCP servers.
    Servers,
    /// Show which model answers, or choose another one.
    Model { name: Option<String> },
    /// Show what this chat has taken so far.
    Cost,
    /// End this conversation and begin another one.
    Clear,
    /// List the commands.
    Help,
    /// Leave the chat. It can be resumed.
    #[command(alias = "exit", alias = "q")]
    Quit,
}

#[derive(Debug, Subcommand)]
enum PlanCommand {
    /// Create a plan for a goal.
    Create(create::Args),
    /// List the plans.
    List(list::Args),
    /// Show a plan, its steps and its runs.
    Show(show::Args),
    /// Run a plan; with --dry-run only show what it would do.
    Run(run_plan::Args),
    /// Continue a run; after a failure, run what is left.
    Resume(resume::Args),
    /// Run again from a step, with the results before it.
    Fork(fork::Args),
    /// Answer the question of a step, or list what is asked.
    Input(input::Args),
    /// Say what became of a call whose outcome is unknown.
    Resolve(resolve::Args),
    /// Pause a run.
    Pause(pause::Args),
    /// Cancel a run.
    Cancel(cancel::Args),
    /// Undo a run.
    Undo(undo::Args),
    /// Change a plan.
    Edit(edit::Args),
    /// Have a model rewrite a plan, or some of its steps.
    Regenerate(regenerate::Args),
    /// Show the differences between versions.
    Diff(diff::Args),
    /// Comment on a plan or a step.
    Comment(comment::Args),
    /// Approve a plan or a step.
    Approve(approve::Args),
    /// Reject a plan or a step.
    Reject(reject::Args),
    /// Delete a plan.
    Delete(delete::Args),
}

/// Does what the line says.
pub(super) async fn run(session: &mut Session, text: &str) -> Result<ChatFlow, Failure> {
    let words = split(text).map_err(Failure::usage)?;
    let slash = Slash::try_parse_from(words).map_err(|error| unreadable(&error))?;
    let context = session.context.clone();
    let done = match slash.command {
        SlashCommand::Quit => return Ok(ChatFlow::Quit),
        SlashCommand::Help => help(session),
        SlashCommand::Clear => session.clear().await.map(|()| {
            session
                .screen
                .note("your next message starts a new conversation");
        }),
        SlashCommand::Cost => cost(session),
        SlashCommand::Model { name } => model(session, name),
        SlashCommand::Servers => {
            ended(servers::run(&context, &servers::ServersCommand::List).await)
        }
        SlashCommand::Tools { filter } => tools_of(session, filter.as_deref()),
        SlashCommand::Plans(args) => ended(list::run(&context, &args).await),
        SlashCommand::PlanStats(args) => ended(stats::run(&context, &args).await),
        SlashCommand::Plan(command) => ended(Box::pin(run_plan_command(&context, *command)).await),
    };
    done.map(|()| ChatFlow::Continue)
}

/// Does what the command of that name does on the command line.
async fn run_plan_command(context: &CommandContext, command: PlanCommand) -> Result<Exit, Failure> {
    match command {
        PlanCommand::List(args) => list::run(context, &args).await,
        PlanCommand::Create(args) => Box::pin(create::run(context, &args)).await,
        PlanCommand::Show(args) => show::run(context, &args).await,
        PlanCommand::Run(args) => Box::pin(run_plan::run(context, &args)).await,
        PlanCommand::Resume(args) => Box::pin(resume::run(context, &args)).await,
        PlanCommand::Fork(args) => Box::pin(fork::run(context, &args)).await,
        PlanCommand::Input(args) => Box::pin(input::run(context, &args)).await,
        PlanCommand::Resolve(args) => Box::pin(resolve::run(context, &args)).await,
        PlanCommand::Pause(args) => pause::run(context, &args).await,
        PlanCommand::Cancel(args) => cancel::run(context, &args).await,
        PlanCommand::Undo(args) => Box::pin(undo::run(context, &args)).await,
        PlanCommand::Edit(args) => edit::run(context, &args).await,
        PlanCommand::Regenerate(args) => Box::pin(regenerate::run(context, &args)).await,
        PlanCommand::Diff(args) => diff::run(context, &args).await,
        PlanCommand::Comment(args) => comment::run(context, &args).await,
        PlanCommand::Approve(args) => approve::run(context, &args).await,
        PlanCommand::Reject(args) => reject::run(context, &args).await,
        PlanCommand::Delete(args) => delete::run(context, &args).await,
    }
}

/// How a command ended has been said; the chat goes on.
fn ended(done: Result<Exit, Failure>) -> Result<(), Failure> {
    done.map(drop)
}

fn unreadable(error: &clap::Error) -> Failure {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let names: Vec<&str> = COMMANDS
            .iter()
            .filter_map(|command| command.strip_prefix("/plan "))
            .collect();
        return Failure::usage("say what to do, for example /plan list")
            .hint(format!("/plan {}", names.join("|")));
    }
    let text = error.render().to_string();
    // What is missing stands in lines of its own, and what follows is about the command line.
    let words: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .filter(|line| !line.is_empty())
        .collect();
    let message = words.join(" ");
    let message = message.trim_start_matches("error: ");
    let message = if message.is_empty() {
        "there is no such command"
    } else {
        message
    };
    Failure::usage(line(message)).hint("/help lists the commands")
}

fn help(session: &Session) -> Result<(), Failure> {
    const TEXT: &str = "\
/plan create GOAL              make a plan of a goal
/plan list|show|run|resume|fork|input|resolve|pause|cancel|undo
     |edit|regenerate|diff|comment|approve|reject|delete …
                               as planwright list, show, run … do; /plan run ID --dry-run calls nothing
/plans                         list the plans
/plan-stats                    show figures of plans, tools and approvals
/tools [FILTER]                list the tools the model is offered, or show one in full
/servers                       list the MCP servers
/model [NAME]                  show which model answers, or choose another one
/cost                          show what this chat has taken so far
/clear                         end this conversation and begin another one
/help                          this list
/quit                          leave; planwright chat --resume ID continues

A line that ends in a backslash goes on in the next one. Ctrl-C ends an answer, Ctrl-D leaves.";
    match session.screen.printer().json {
        true => session.screen.printer().document(&json!({ "help": TEXT })),
        false => session.screen.printer().data(TEXT),
    }
}

fn model(session: &Session, name: Option<String>) -> Result<(), Failure> {
    let printer = session.screen.printer();
    let unknown = |error: planwright_engine::port::ModelError| {
        let known: Vec<String> = planwright_engine::port::Model::models(&session.model)
            .into_iter()
            .map(|model| model.name)
            .collect();
        let failure = Failure::usage(error.to_string());
        if known.is_empty() {
            failure
        } else {
            failure.hint(format!("there are {}", known.join(", ")))
        }
    };
    let model = match name {
        Some(name) => session.model.choose(name),
        None => session.model.current(),
    };
    let model = model.map_err(unknown)?;
    if printer.json {
        return printer.document(&json!({ "model": model.name, "endpoint": model.endpoint }));
    }
    printer.data(&format!("{}  {}", line(&model.name), line(&model.endpoint)))
}

/// The tools the model is offered whose names contain a word; a tool that is named exactly is shown
/// in full.
fn tools_of(session: &Session, filter: Option<&str>) -> Result<(), Failure> {
    let catalog = session.engine().catalog();
    tools::print_matching_tools(session.screen.printer(), &catalog, filter)
}

fn cost(session: &Session) -> Result<(), Failure> {
    let printer = session.screen.printer();
    if printer.json {
        return printer.document(&cost_document(session));
    }
    cost_lines(session)
        .iter()
        .try_for_each(|text| printer.data(text))
}

/// What the chat took, in lines for people.
pub(super) fn cost_lines(session: &Session) -> Vec<String> {
    let spending = &session.spending;
    let budget = spending.budget();
    let of = |limit: Option<u64>| {
        limit
            .map(|limit| format!(" of {limit}"))
            .unwrap_or_default()
    };
    let all = spending.tokens();
    let estimated = if all.estimated {
        " (in part estimated)"
    } else {
        ""
    };
    let mut lines = vec![format!(
        "{}{} ({} in, {} out){estimated}, {}{}",
        count_of(all.total(), "token", "tokens"),
        of(budget.tokens),
        all.input,
        all.output,
        count_of(spending.calls(), "call", "calls"),
        of(budget.calls)
    )];
    for (name, usage, cost) in spending.models() {
        let cost = cost.map_or_else(|| "no price is known".to_owned(), |cost| cost.to_string());
        lines.push(format!(
            "  {}  {} tokens  {cost}",
            line(&name),
            usage.total()
        ));
    }
    lines
}

/// What the chat took, for programs.
pub(super) fn cost_document(session: &Session) -> Value {
    let spending = &session.spending;
    let models: Vec<Value> = spending
        .models()
        .into_iter()
        .map(|(model, usage, cost)| {
            json!({ "model": model, "usage": usage, "microDollars": cost.map(|cost: Cost| cost.0) })
        })
        .collect();
    let budget = spending.budget();
    json!({
        "tokens": spending.tokens().total(),
        "calls": spending.calls(),
        "budget": { "tokens": budget.tokens, "calls": budget.calls },
        "models": models,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_a_clear_error() {
        for text in [
            "",
            "nosuch",
            "plan",
            "plan nosuch",
            "plan show",
            "model a b",
            "plan show p --nosuch",
        ] {
            let words = split(text).unwrap();
            let error = Slash::try_parse_from(words).unwrap_err();
            let failure = unreadable(&error);
            assert!(
                !failure.message.is_empty() && !failure.message.contains('\u{1b}'),
                "{text}: {failure:?}"
            );
        }
        let alone = Slash::try_parse_from(["plan"]).unwrap_err();
        let hint = unreadable(&alone).hint.unwrap();
        assert!(hint.contains("create|list"), "{hint}");
        let missing = Slash::try_parse_from(["plan", "show"]).unwrap_err();
        let message = unreadable(&missing).message;
        assert!(message.ends_with("<ID>"), "{message}");
    }

    #[test]
    fn the_commands_take_the_arguments_of_the_command_line() {
        for text in [
            "plan create \"read the auth module, then refactor\"",
            "plan list --all",
            "plan show p",
            "plan run p --dry-run --var a=1",
            "plan approve p --version 1",
            "plan resume p",
            "plan fork p --from s1",
            "plan input p s1 --set a=1",
            "plan resolve p s1 --happened",
            "plan pause p",
            "plan cancel p",
            "plan edit p",
            "plan regenerate p",
            "plan reject p --version 1 --reason \"too risky\"",
            "plans",
            "plan-stats --since 3d",
            "tools read",
            "servers",
            "model",
            "cost",
            "clear",
            "quit",
            "exit",
        ] {
            let parsed = Slash::try_parse_from(split(text).unwrap());
            assert!(parsed.is_ok(), "{text}: {:?}", parsed.err());
        }
    }
}
