//! `new`: a plan to start from.

use crate::exit::{Exit, Failure};
use crate::workspace::app::CommandContext;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long, default_value = "My first plan")]
    title: String,
    /// Where to; default: stdout. An existing file is not overwritten.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let plan = json!({
        "title": args.title,
        "goal": "Look at the workspace and write down what is there.",
        "variables": { "folder": "." },
        "steps": [
            { "id": "look", "title": "List the files", "tool": "local.list_dir",
              "args": { "path": "${folder}" }, "result": "files" },
            { "id": "note", "title": "Write them down", "tool": "local.write_file",
              "args": { "path": "files.json", "content": "${files}" } },
        ],
    });
    let text = format!("{plan:#}\n");
    let Some(path) = &args.output else {
        context.printer.raw(text.as_bytes())?;
        return Ok(Exit::Done);
    };
    let at = path.display();
    let written = OpenOptions::new().write(true).create_new(true).open(path);
    written
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                Failure::usage(format!("{at} exists and is not overwritten"))
            }
            _ => Failure::usage(format!("cannot write {at}: {error}")),
        })?;
    context.printer.talk(&format!("wrote {at}"));
    context.printer.hint(&format!(
        "planwright validate {at}, then planwright run {at} --dry-run"
    ));
    Ok(Exit::Done)
}
