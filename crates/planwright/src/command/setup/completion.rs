//! What a shell is offered behind a command: plans, runs, steps, servers and models of the workspace.
//!
//! It is asked with every press of a key, so files are read and the store is not opened.

use crate::command::args::describe_all_commands;
use crate::terminal::printer::Printer;
use crate::workspace::app::CommandContext;
use crate::workspace::servers::Servers;
use clap::builder::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use planwright_adapters::model::ModelOptions;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

/// The variable that says that a shell asks, and which.
pub(super) const VARIABLE: &str = "COMPLETE";
/// Names that are offered at once.
const MAX_NAMES: usize = 500;
/// Bytes of the first entry of a journal. A longer one names no run.
const MAX_ENTRY: u64 = 64 << 10;

/// Answers a shell that asks how a command line could go on, and ends the process. Returns if none
/// asks.
pub(crate) fn answer_shell() {
    if std::env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(command_with_names)
            .bin("planwright")
            .complete();
    }
}

/// The command line, with the names that its arguments may take.
fn command_with_names() -> Command {
    with_names(describe_all_commands())
}

fn with_names(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let named = arg.get_value_names().unwrap_or_default();
        let is = |word: &str| {
            named
                .iter()
                .any(|name| name.split('|').any(|part| part == word))
        };
        let candidates = if is("ID") {
            ArgValueCandidates::new(plans)
        } else if is("RUN") {
            ArgValueCandidates::new(runs)
        } else if is("STEP") || is("STEP,STEP") {
            ArgValueCandidates::new(steps)
        } else if is("SERVER") {
            ArgValueCandidates::new(servers)
        } else if is("MODEL") {
            ArgValueCandidates::new(models)
        } else {
            return arg;
        };
        arg.add(candidates)
    });
    command.mut_subcommands(with_names)
}

/// The folder of plans of the workspace that the shell is in.
fn plans_folder() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let mut above = here.ancestors().map(|folder| folder.join(".plans"));
    above.find(|folder| folder.is_dir())
}

/// Plans by id with their titles, the newest first.
fn plans() -> Vec<CompletionCandidate> {
    let Some(folder) = plans_folder() else {
        return Vec::new();
    };
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let file = entry.ok()?.path().join("plan.json");
            let changed = file.metadata().ok()?.modified().ok()?;
            Some((changed, file))
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    let plans = found.into_iter().take(MAX_NAMES);
    plans
        .filter_map(|(_, file)| {
            let id = file.parent()?.file_name()?.to_owned();
            let title = read_plan(&file).and_then(|plan| Some(plan["title"].as_str()?.to_owned()));
            Some(CompletionCandidate::new(id).help(title.map(Into::into)))
        })
        .collect()
}

fn read_plan(file: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// The latest run of each plan: the one whose journal its folder holds.
fn runs() -> Vec<CompletionCandidate> {
    let folder = plans_folder().unwrap_or_default();
    let plans = plans().into_iter();
    plans
        .filter_map(|plan| {
            let file = folder.join(plan.get_value()).join("session.jsonl");
            let run = first_stream(&file)?.strip_prefix("run/")?.to_owned();
            let plan = plan.get_value().to_string_lossy().into_owned();
            Some(CompletionCandidate::new(run).help(Some(plan.into())))
        })
        .collect()
}

fn first_stream(file: &Path) -> Option<String> {
    use std::io::Read as _;
    let mut line = String::new();
    let file = std::fs::File::open(file).ok()?.take(MAX_ENTRY);
    BufReader::new(file).read_line(&mut line).ok()?;
    let entry: Value = serde_json::from_str(&line).ok()?;
    Some(entry["stream"].as_str()?.to_owned())
}

/// The steps of the plan that the command line names.
fn steps() -> Vec<CompletionCandidate> {
    let folder = plans_folder().unwrap_or_default();
    let words = std::env::args_os();
    let mut named = words.map(|word| folder.join(word).join("plan.json"));
    let plan = named.find_map(|file| read_plan(&file));
    let steps = plan.as_ref().and_then(|plan| plan["steps"].as_array());
    let steps = steps.into_iter().flatten().take(MAX_NAMES);
    steps
        .filter_map(|step| {
            let title = step["title"].as_str().map(|title| title.to_owned().into());
            Some(CompletionCandidate::new(step["id"].as_str()?).help(title))
        })
        .collect()
}

fn context() -> Option<CommandContext> {
    CommandContext::new(None, Printer::new(true, true), Servers::default()).ok()
}

fn servers() -> Vec<CompletionCandidate> {
    let servers = context().map(|context| context.roster().servers);
    let names = servers.into_iter().flatten();
    names
        .map(|server| CompletionCandidate::new(server.name))
        .collect()
}

fn models() -> Vec<CompletionCandidate> {
    let names = context().and_then(|context| {
        let variable = |name: &str| std::env::var(name).ok();
        let models = context.config.models(&context.workspace.root, &variable);
        let ModelOptions {
            default,
            roles,
            prices,
            ..
        } = models.ok()?.options;
        let named = default.into_iter().chain(roles.into_values());
        Some(
            named
                .chain(prices.into_keys())
                .collect::<BTreeSet<String>>(),
        )
    });
    let names = names.into_iter().flatten();
    names.map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_names_where_it_takes_one() {
        let command = command_with_names();
        let approve = command.find_subcommand("approve").unwrap();
        for arg in approve.get_arguments() {
            let takes_name = ["plan", "step"].contains(&arg.get_id().as_str());
            let has_names = arg.get::<ArgValueCandidates>().is_some();
            assert_eq!(takes_name, has_names, "{}", arg.get_id());
        }
        let log = command
            .find_subcommand("runs")
            .unwrap()
            .find_subcommand("log");
        let named = log.unwrap().get_arguments();
        assert!(
            named
                .into_iter()
                .any(|arg| arg.get::<ArgValueCandidates>().is_some())
        );
    }
}
