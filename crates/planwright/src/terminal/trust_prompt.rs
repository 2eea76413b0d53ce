//! The person's word about what a project's files describe, the same for servers, models and
//! executors.

use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{YesNo, ask_yes_no};
use crate::terminal::printer::{Printer, YELLOW, line};
use planwright_core::digest::Digest;
use serde_json::json;
use std::path::Path;

/// Asks whether what was just shown is trusted, unless that was said with the command.
pub(crate) fn confirm_trust(printer: Printer, yes: bool, command: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !printer.can_ask() {
        return Err(
            Failure::refused("a person has to see this and agree").hint(format!(
                "repeat it at a terminal, or planwright {command} --yes"
            )),
        );
    }
    match ask_yes_no(printer, "Trust it?")? {
        YesNo::Yes => Ok(()),
        YesNo::No | YesNo::Unclear => Err(Failure::refused("not trusted")),
    }
}

pub(crate) fn print_trusted(printer: Printer, name: &str, digest: Digest) -> Result<Exit, Failure> {
    if printer.json {
        printer.document(&json!({ "name": name, "trusted": true, "digest": digest }))?;
    } else {
        printer.data(&format!("{}  trusted  {digest}", line(name)))?;
    }
    Ok(Exit::Done)
}

pub(crate) fn print_untrusted(
    printer: Printer,
    name: &str,
    was_trusted: bool,
) -> Result<Exit, Failure> {
    if printer.json {
        printer.document(&json!({ "name": name, "trusted": false, "wasTrusted": was_trusted }))?;
    } else if was_trusted {
        printer.data(&format!("{}  no longer trusted", line(name)))?;
    } else {
        printer.data(&format!("{}  was not trusted", line(name)))?;
    }
    Ok(Exit::Done)
}

/// Says which words of a launch line are files of the project: trust in the line is no trust in
/// those who can change them.
pub(crate) fn warn_of_own_files<'a>(
    printer: Printer,
    workspace: &Path,
    directory: &Path,
    words: impl IntoIterator<Item = &'a String>,
) {
    let from = workspace.join(directory);
    let is_own = |word: &&String| {
        let looks_like_a_path = word.contains('/') || word.contains('.');
        looks_like_a_path && from.join(word).is_file() && from.join(word).starts_with(workspace)
    };
    for word in words.into_iter().filter(is_own) {
        let (mark, file) = (printer.err(YELLOW, "!"), line(word));
        printer.talk(&format!(
            "{mark} `{file}` is a file of this project: who can change it decides what runs"
        ));
    }
}
