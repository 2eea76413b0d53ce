//! What the files of a workspace loosen, shown to the person who decides about it.

use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{YesNo, ask_yes_no, read_answer};
use crate::terminal::printer::{BOLD, DIM, Printer, YELLOW, line};
use crate::trust::{FolderTrust, Loosening, TrustState};
use crate::workspace::app::CommandContext;
use crate::workspace::principal::refuse_agents;
use planwright_core::digest::Digest;
use planwright_core::text::escape_invisible;
use serde_json::json;
use std::path::Path;

/// Longer texts are cut where they are not asked for in full.
const SHOWN_CHARACTERS: usize = 300;
/// The number of times an unclear answer is asked again.
const MAX_TRIES: usize = 5;

/// Asks the user to confirm trust in what was just shown, unless `--yes` was given. An agent cannot
/// trust, with any argument.
pub(crate) fn confirm_trust(printer: Printer, yes: bool, command: &str) -> Result<(), Failure> {
    refuse_agents("trust anything")?;
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

/// How much of each loosening is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Long texts are cut, and say so.
    Short,
    /// Everything, with the digests that trust is bound to.
    Full,
}

/// Shows exactly what is loosened, file by file, on stderr: it is what the person agrees to.
pub(crate) fn show_untrusted(printer: Printer, folder: &FolderTrust, root: &Path, detail: Detail) {
    let heading = format!("{}", root.display());
    printer.talk(&printer.err(BOLD, &line(&heading)));
    let mut place = "";
    for judged in folder.untrusted_loosenings() {
        let loosening = &judged.loosening;
        if loosening.place != place {
            place = &loosening.place;
            printer.talk(&format!("  {}", printer.err(BOLD, &line(place))));
        }
        show_loosening(printer, loosening, detail);
        if judged.state == TrustState::Changed {
            let mark = printer.err(YELLOW, "!");
            printer.talk(&format!("      {mark} it changed since you trusted it"));
        }
    }
}

/// Shows one loosening, on stderr.
pub(crate) fn show_loosening(printer: Printer, loosening: &Loosening, detail: Detail) {
    let shown = |text: &str| match detail {
        Detail::Full => escape_invisible(text).into_owned(),
        Detail::Short => cut(text),
    };
    printer.talk(&format!(
        "    {}  {}",
        printer.err(BOLD, &shown(&loosening.key)),
        shown(&loosening.value)
    ));
    for (label, text) in &loosening.parts {
        printer.talk(&format!("      {label:10} {}", shown(text)));
    }
    let warnings = loosening.warnings.iter();
    for warning in warnings {
        let mark = printer.err(YELLOW, "!");
        printer.talk(&format!("      {mark} {}", shown(warning)));
    }
    if detail == Detail::Full {
        for text in loosening.content.iter().flat_map(|text| text.lines()) {
            printer.talk(&format!("      | {}", escape_invisible(text)));
        }
        let digest = format!("digest     {}", loosening.digest);
        printer.talk(&format!("      {}", printer.err(DIM, &digest)));
    }
}

/// The beginning of a text, and how much of it is missing.
fn cut(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_CHARACTERS).collect();
    let left = text.chars().count().saturating_sub(SHOWN_CHARACTERS);
    let shown = escape_invisible(&shown);
    match left {
        0 => shown.into_owned(),
        left => format!("{shown}… ({left} more characters: d shows them)"),
    }
}

/// What the person said about a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderAnswer {
    Trust,
    GoOn,
}

/// Shows what is loosened and asks once for all of it. Only a clear yes is a yes.
pub(crate) fn ask_about_folder(
    printer: Printer,
    folder: &FolderTrust,
    root: &Path,
) -> Result<FolderAnswer, Failure> {
    printer.talk("This folder has settings that you have not trusted yet:");
    show_untrusted(printer, folder, root, Detail::Short);
    for _ in 0..MAX_TRIES {
        let question = "Trust them? [y] trust  [n] continue without them  [d] details";
        let answer = read_answer(printer, question)?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(FolderAnswer::Trust),
            "d" | "details" => show_untrusted(printer, folder, root, Detail::Full),
            "n" | "no" => return Ok(FolderAnswer::GoOn),
            // The end of the input is an answer too.
            "" if !answer.ends_with('\n') => return Ok(FolderAnswer::GoOn),
            _ => {}
        }
    }
    Ok(FolderAnswer::GoOn)
}

/// Says in one line what is not trusted and so does not count.
pub(crate) fn warn_of_untrusted(context: &CommandContext) {
    let CommandContext {
        folder,
        printer,
        workspace,
        ..
    } = context;
    if let Some(file) = &workspace.passed_over {
        printer.warn(&format!(
            "the plans in a parent folder are not used: {file} (to use them: --dir {})",
            file.path.parent().unwrap_or(&file.path).display()
        ));
    }
    for problem in &folder.problems {
        printer.warn(problem);
    }
    if let Some(ignored) = folder.summary() {
        printer.warn(&format!(
            "ignored because not trusted: {ignored}{}",
            describe_remedy(folder)
        ));
    }
}

/// What can be done about it, or why nothing can.
pub(crate) fn describe_remedy(folder: &FolderTrust) -> String {
    match folder.trust().problem() {
        Some(problem) => format!(": {problem}"),
        None => "; to review and trust it: planwright trust".to_owned(),
    }
}
