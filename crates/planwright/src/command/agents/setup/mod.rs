//! `setup`: writes this program into the configuration of an agent's client, and takes it back.
//!
//! The configuration of a client says what guards its agent, so an agent cannot change it here.

mod clients;
mod edit;
mod files;
mod gateway;
mod record;
mod toml_text;
mod yaml_text;

use self::clients::{Client, Places, SKILL, Scope};
use self::edit::Edit;
use self::files::Found;
use self::record::{Record, RecordedFile};
use crate::config::file::{self, Config};
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{YesNo, ask_yes_no};
use crate::terminal::printer::{BOLD, GREEN, Printer, RED, line};
use crate::workspace::app::CommandContext;
use crate::workspace::principal::refuse_agents;
use planwright_core::digest::Digest;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The client to set up.
    #[arg(value_enum, value_name = "CLIENT")]
    client: Client,
    /// Whose configuration is changed.
    #[arg(long, value_enum, default_value = "user")]
    scope: Scope,
    /// Also move the client's own MCP servers behind Planwright, which then calls them.
    #[arg(long, conflicts_with = "undo")]
    gateway: bool,
    /// Print what belongs into which file, and change nothing.
    #[arg(long, conflicts_with_all = ["undo", "yes"])]
    print: bool,
    /// Revert what an earlier setup changed.
    #[arg(long)]
    undo: bool,
    /// Do not ask: the changes are shown all the same. Not for agents.
    #[arg(long, short = 'y')]
    yes: bool,
}

/// A file that is to change.
#[derive(Debug)]
struct Change {
    path: PathBuf,
    before: Option<Found>,
    after: String,
    edits: Vec<Edit>,
}

/// Everything that a setup is to do.
#[derive(Debug, Default)]
struct Plan {
    changes: Vec<Change>,
    /// What the person should know besides.
    notices: Vec<String>,
}

pub(crate) fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let printer = context.printer;
    let places = find_places(context, args.scope)?;
    if args.print {
        return print(printer, &places, args);
    }
    refuse_agents("change what guards it: the configuration of its client")?;
    if args.undo {
        return undo(printer, &places, args);
    }
    let plan = make_plan(&places, args)?;
    for notice in &plan.notices {
        printer.warn(notice);
    }
    if plan.changes.is_empty() {
        printer.talk(&format!("{} is set up already", args.client.as_str()));
        return report(printer, args, &[], &plan.notices);
    }
    for change in &plan.changes {
        show(
            printer,
            &change.path,
            change.before.as_ref(),
            Some(&change.after),
        );
    }
    confirm(printer, args.yes, "Write this?")?;
    let done = apply(&places, args.client, &plan.changes)?;
    report(printer, args, &done, &plan.notices)
}

fn find_places(context: &CommandContext, scope: Scope) -> Result<Places, Failure> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home
        .filter(|home| home.is_absolute())
        .ok_or_else(|| Failure::usage("HOME is not set, so there is no home to set up"))?;
    let project = &context.workspace.root;
    let project = std::path::absolute(project)
        .map_err(|error| Failure::usage(format!("{}: {error}", project.display())))?;
    Ok(Places {
        home,
        project,
        scope,
    })
}

/// The program as clients start it: this one, wherever it is. In files that a project shares it is
/// the one that each user has.
fn find_program(places: &Places) -> Result<String, Failure> {
    match places.scope {
        Scope::Project => Ok("planwright".to_owned()),
        Scope::User => {
            let path = std::env::current_exe()
                .map_err(|error| Failure::usage(format!("this program has no path: {error}")))?;
            let path = path.into_os_string().into_string();
            path.map_err(|_| Failure::usage("the path of this program is not Unicode"))
        }
    }
}

/// The files of a client, each with the changes it is to have.
fn list_edits(places: &Places, args: &Args) -> Result<Vec<(PathBuf, Vec<Edit>)>, Failure> {
    let client = args.client;
    let program = find_program(places)?;
    let mut all: Vec<(PathBuf, Vec<Edit>)> = Vec::new();
    if let Some(servers) = client.server_file(places)? {
        let entry = client.server_entry(&servers, &program, args.gateway);
        all.push((servers.path, vec![entry]));
    }
    for (path, edits) in client.hooks(places, &program) {
        match all.iter_mut().find(|(known, _)| *known == path) {
            Some((_, known)) => known.extend(edits),
            None => all.push((path, edits)),
        }
    }
    if let Some(path) = client.skill(places) {
        let text = SKILL.to_owned();
        all.push((path, vec![Edit::Whole { text }]));
    }
    Ok(all)
}

fn make_plan(places: &Places, args: &Args) -> Result<Plan, Failure> {
    let mut edits = list_edits(places, args)?;
    let mut plan = Plan::default();
    if args.gateway {
        plan_gateway(places, args, &mut edits, &mut plan)?;
    }
    for (path, edits) in edits {
        let real = files::resolve(&path, &root_of(&path, places))?;
        let before = files::read(&real)?;
        let text = before.as_ref().map_or("", |found| found.text.as_str());
        let unusable = |why: String| {
            Failure::usage(format!("{} cannot be changed: {why}", path.display()))
                .hint("--print shows what belongs into it")
        };
        let mut after = text.to_owned();
        for edit in &edits {
            after = edit.make(&after).map_err(unusable)?;
        }
        let is_foreign = edits.iter().any(|edit| matches!(edit, Edit::Whole { .. }))
            && before.is_some()
            && !text.contains("planwright");
        if is_foreign {
            return Err(Failure::refused(format!(
                "{} already exists and was not written by Planwright",
                path.display()
            ))
            .hint("move it away first"));
        }
        if before.as_ref().is_some_and(|found| found.text == after) {
            continue;
        }
        plan.changes.push(Change {
            path: real,
            before,
            after,
            edits,
        });
    }
    if args.client == Client::Codex {
        let notice = "Codex runs hooks only after you reviewed them: type /hooks in it";
        plan.notices.push(notice.to_owned());
    }
    Ok(plan)
}

/// Adds what moves servers from the client's file into ours.
fn plan_gateway(
    places: &Places,
    args: &Args,
    edits: &mut Vec<(PathBuf, Vec<Edit>)>,
    plan: &mut Plan,
) -> Result<(), Failure> {
    let Some(servers) = args.client.server_file(places)? else {
        return Err(Failure::usage(format!(
            "{} has no servers of its own to move here",
            args.client.as_str()
        )));
    };
    let target = gateway::target(places)?;
    let read = |path: &Path| -> Result<String, Failure> {
        let real = files::resolve(path, &root_of(path, places))?;
        Ok(files::read(&real)?.map_or_else(String::new, |found| found.text))
    };
    let theirs = read(&servers.path)?;
    let ours = read(&target)?;
    let moved = gateway::plan_move(&servers, &theirs, &ours).map_err(|why| {
        Failure::usage(format!(
            "{} cannot be changed: {why}",
            servers.path.display()
        ))
    })?;
    for (name, why) in &moved.left {
        plan.notices.push(format!(
            "the server `{}` stays with the client, and is called without Planwright: {why}",
            line(name)
        ));
    }
    if moved.into.is_empty() {
        return Ok(());
    }
    let mut text = ours;
    for edit in &moved.into {
        text = edit
            .make(&text)
            .map_err(|why| Failure::usage(format!("{}: {why}", target.display())))?;
    }
    match places.scope {
        Scope::User => file::check_user_file(&text)?,
        Scope::Project => {
            Config::parse(&text)?;
            let notice = "servers of a project are started once you trust it: planwright trust";
            plan.notices.push(notice.to_owned());
        }
    }
    if let Some((_, known)) = edits.iter_mut().find(|(path, _)| *path == servers.path) {
        known.extend(moved.out);
    }
    // First ours: a crash in between leaves a server in both files, and never in none.
    edits.insert(0, (target, moved.into));
    Ok(())
}

/// The directory that links must not lead out of.
fn root_of(path: &Path, places: &Places) -> PathBuf {
    let base = places.base();
    if path.starts_with(base) {
        return base.to_owned();
    }
    // The environment names this place.
    let is_there = |path: &&Path| path.is_dir();
    let above = path.parent().unwrap_or(path);
    above.ancestors().find(is_there).unwrap_or(above).to_owned()
}

/// Makes the changes: all of them, or none.
fn apply(places: &Places, client: Client, changes: &[Change]) -> Result<Vec<PathBuf>, Failure> {
    let record_path = record::path(client, places)?;
    let known = record::read(&record_path)?;
    let (mut record, found) = match known {
        Some((record, found)) => (record, Some(found)),
        None => (Record::default(), None),
    };
    for change in changes {
        remember(&mut record, change);
    }
    // Before the first change: what was begun can be taken back.
    record::write(&record_path, &record, found.as_ref())?;
    let mut done: Vec<&Change> = Vec::new();
    for change in changes {
        let made = files::replace(&change.path, change.before.as_ref(), &change.after);
        match made {
            Ok(made) => {
                done.push(change);
                let recorded = record.files.iter_mut();
                for file in recorded.filter(|file| file.path == change.path) {
                    file.made.extend(made.iter().cloned());
                }
            }
            Err(failure) => {
                for change in done.into_iter().rev() {
                    put_back(change);
                }
                let now = files::read(&record_path)?;
                match (&found, &now) {
                    (Some(before), _) => {
                        files::replace(&record_path, now.as_ref(), &before.text)?;
                    }
                    (None, Some(now)) => files::remove(&record_path, now)?,
                    (None, None) => {}
                }
                return Err(failure);
            }
        }
    }
    let now = files::read(&record_path)?;
    record::write(&record_path, &record, now.as_ref())?;
    Ok(changes.iter().map(|change| change.path.clone()).collect())
}

/// Takes one change back, right after it was made. What fails here is in the record.
fn put_back(change: &Change) {
    let now = Found {
        text: change.after.clone(),
        mode: change.before.as_ref().map_or(0o600, |found| found.mode),
    };
    match &change.before {
        Some(before) => drop(files::replace(&change.path, Some(&now), &before.text)),
        None => drop(files::remove(&change.path, &now)),
    }
}

/// Notes a change. A file that is as the last setup left it keeps what it was before that.
fn remember(record: &mut Record, change: &Change) {
    let before = change.before.as_ref().map(|found| found.text.clone());
    let after = Digest::of_bytes(change.after.as_bytes());
    let mut recorded = record.files.iter_mut();
    let Some(file) = recorded.find(|file| file.path == change.path) else {
        record.files.push(RecordedFile {
            path: change.path.clone(),
            before,
            after,
            edits: change.edits.clone(),
            made: Vec::new(),
        });
        return;
    };
    let digest = before
        .as_ref()
        .map(|text| Digest::of_bytes(text.as_bytes()));
    if digest != Some(file.after) {
        file.before = before;
    }
    file.after = after;
    for edit in &change.edits {
        if !file.edits.contains(edit) {
            file.edits.push(edit.clone());
        }
    }
}

/// Takes a setup back: byte for byte where a file was not changed since, else only what is ours.
fn undo(printer: Printer, places: &Places, args: &Args) -> Result<Exit, Failure> {
    let record_path = record::path(args.client, places)?;
    let Some((record, found)) = record::read(&record_path)? else {
        return Err(Failure::usage(format!(
            "{} was not set up by this program, so there is nothing to take back",
            args.client.as_str()
        )));
    };
    let mut notices = Vec::new();
    let mut steps = Vec::new();
    // The client's file first: a crash in between leaves a server in both files.
    for file in record.files.iter().rev() {
        let Some(now) = files::read(&file.path)? else {
            notices.push(format!("{} is gone already", file.path.display()));
            continue;
        };
        let wanted = restore(file, &now, &mut notices)?;
        if wanted.as_ref() != Some(&now.text) {
            show(printer, &file.path, Some(&now), wanted.as_deref());
            steps.push((file, now, wanted));
        }
    }
    for notice in &notices {
        printer.warn(notice);
    }
    confirm(printer, args.yes, "Take this back?")?;
    let mut done = Vec::new();
    for (file, now, wanted) in steps {
        match wanted {
            Some(text) => {
                files::replace(&file.path, Some(&now), &text)?;
            }
            None => {
                files::remove(&file.path, &now)?;
                // Directories that others use stay.
                for directory in &file.made {
                    drop(std::fs::remove_dir(directory));
                }
            }
        }
        done.push(file.path.clone());
    }
    files::remove(&record_path, &found)?;
    report(printer, args, &done, &notices)
}

/// The text a file is to have again; nothing if it is to be gone.
fn restore(
    file: &RecordedFile,
    now: &Found,
    notices: &mut Vec<String>,
) -> Result<Option<String>, Failure> {
    if Digest::of_bytes(now.text.as_bytes()) == file.after {
        return Ok(file.before.clone());
    }
    if file.before.as_ref() == Some(&now.text) {
        return Ok(Some(now.text.clone()));
    }
    let path = file.path.display();
    let mut text = now.text.clone();
    for edit in file.edits.iter().rev() {
        if matches!(edit, Edit::Whole { .. }) {
            notices.push(format!("{path} was changed since, and stays"));
            return Ok(Some(text));
        }
        text = edit
            .take_back(&text)
            .map_err(|why| Failure::refused(format!("{path} cannot be changed back: {why}")))?;
    }
    notices.push(format!(
        "{path} was changed since: only what this program wrote is taken out of it"
    ));
    Ok(Some(text))
}

fn confirm(printer: Printer, yes: bool, question: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !printer.can_ask() {
        return Err(Failure::refused("this needs a confirmation")
            .hint("repeat the command at a terminal, or with --yes if you have read it"));
    }
    match ask_yes_no(printer, question)? {
        YesNo::Yes => Ok(()),
        YesNo::No | YesNo::Unclear => Err(Failure::refused("nothing was changed")),
    }
}

/// Shows what becomes of a file: the lines that change, with three around them.
fn show(printer: Printer, path: &Path, before: Option<&Found>, after: Option<&str>) {
    let old = before.map_or("", |found| found.text.as_str());
    let words = match (before, after) {
        (None, _) => "  (new)",
        (Some(_), None) => "  (removed)",
        (Some(_), Some(_)) => "",
    };
    let heading = format!("{}{words}", line(&path.display().to_string()));
    printer.talk(&printer.err(BOLD, &heading));
    let diff = TextDiff::from_lines(old, after.unwrap_or(""));
    for group in diff.grouped_ops(3) {
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let text = line(change.value().trim_end_matches(['\n', '\r']));
            match change.tag() {
                ChangeTag::Equal => printer.talk(&format!("    {text}")),
                ChangeTag::Insert => printer.talk(&printer.err(GREEN, &format!("  + {text}"))),
                ChangeTag::Delete => printer.talk(&printer.err(RED, &format!("  - {text}"))),
            }
        }
    }
}

/// Prints what belongs into which file, for people who change their files themselves.
fn print(printer: Printer, places: &Places, args: &Args) -> Result<Exit, Failure> {
    let mut documents = Vec::new();
    for (path, edits) in list_edits(places, args)? {
        let mut text = String::new();
        for edit in &edits {
            let made = edit.make(&text);
            text = made.map_err(|why| Failure::usage(format!("{}: {why}", path.display())))?;
        }
        if printer.json {
            documents.push(json!({ "path": path, "text": text }));
            continue;
        }
        printer.data(&format!("# {}", line(&path.display().to_string())))?;
        printer.data(text.trim_end())?;
        printer.data("")?;
    }
    if printer.json {
        let scope = scope_word(args.scope);
        printer.document(
            &json!({ "client": args.client.as_str(), "scope": scope, "files": documents }),
        )?;
    }
    Ok(Exit::Done)
}

fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "user",
        Scope::Project => "project",
    }
}

fn report(
    printer: Printer,
    args: &Args,
    done: &[PathBuf],
    notices: &[String],
) -> Result<Exit, Failure> {
    let client = args.client.as_str();
    if printer.json {
        let notices: Vec<Value> = notices.iter().map(|notice| json!(notice)).collect();
        printer.document(&json!({
            "client": client,
            "scope": scope_word(args.scope),
            "undone": args.undo,
            "files": done,
            "notices": notices,
        }))?;
        return Ok(Exit::Done);
    }
    for path in done {
        printer.data(&line(&path.display().to_string()))?;
    }
    if !args.undo && !done.is_empty() {
        printer.hint(&format!(
            "restart {client}; to revert: planwright setup {client} --undo"
        ));
    }
    Ok(Exit::Done)
}
