//! Confirming trust in servers, models and executors that a project's files describe.

use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{YesNo, ask_yes_no};
use crate::terminal::printer::{Printer, YELLOW, line};
use planwright_core::digest::Digest;
use serde_json::json;
use std::path::Path;

/// Asks the user to confirm trust in what was just shown, unless `--yes` was given.
pub(crate) fn confirm_trust(printer: Printer, yes: bool, command: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !printer.can_ask() {
        return Err(
            Failure::refused("trusting this needs a confirmation").hint(format!(
                "repeat the command at a terminal, or planwright {command} --yes"
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

/// Warns about words of a launch line that are files of the project: the digest of the line does
/// not cover their content.
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
        let mark = printer.err(YELLOW, "!");
        let file = line(word);
        printer.talk(&format!(
            "{mark} `{file}` is a file of this project: anyone who can change it decides what runs"
        ));
    }
}
