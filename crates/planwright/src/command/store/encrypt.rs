//! `store encrypt` and `store decrypt`.

use super::plain_files::PlainFiles;
use super::{open_options, run_with_progress};
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{YesNo, ask_yes_no};
use crate::terminal::counts::count_of;
use crate::terminal::printer::line;
use crate::workspace::app::CommandContext;
use crate::workspace::principal::confirmation_hint;
use planwright_adapters::sqlite::{
    IdleStore, Protection, RewriteStoreError, Rewritten, is_encrypted,
};
use planwright_adapters::vault::StretchCost;
use serde_json::json;
use std::io;
use std::path::Path;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
}

/// Files named before they are removed; of more only the number is said.
const NAMED: usize = 20;

pub(crate) async fn encrypt(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let plain = PlainFiles::find(&context.workspace).map_err(plain_files_failure)?;
    if is_store_encrypted(context)? {
        return finish_encryption(context, &plain).await;
    }
    list_plain_files(context, &plain);
    confirm_change(context, args, "Encrypt the store and remove these files?")?;
    let passphrase = context.unlock.new_one(context)?;
    let protection = Protection::Sealed {
        passphrase,
        cost: StretchCost::DEFAULT,
    };
    let from = open_options(context, None)?;
    let artifacts = context.workspace.artifacts.clone();
    let written = run_with_progress(context.printer, move |tell| {
        let (idle, written) = IdleStore::open(from)?.rewrite(&protection, &artifacts, tell)?;
        Ok::<_, RewriteStoreError>((idle, written, artifacts))
    });
    let (idle, written, artifacts) = written.await?;
    // Removed only now, when the new store is in place.
    plain
        .remove(&context.workspace)
        .map_err(plain_files_failure)?;
    idle.finish(&artifacts)?;
    print_result(context, "encrypted", &written, plain.ours.len())?;
    context
        .printer
        .hint("the store cannot be read without the passphrase: keep it safe");
    Ok(Exit::Done)
}

/// Goes on with what was broken off after the new store was in place.
async fn finish_encryption(context: &CommandContext, plain: &PlainFiles) -> Result<Exit, Failure> {
    let passphrase = context.unlock.existing(context)?;
    let idle = IdleStore::open(open_options(context, Some(passphrase))?)?;
    let artifacts = &context.workspace.artifacts;
    if !idle.is_unfinished(artifacts)? && plain.ours.is_empty() {
        return Err(Failure::refused("the store is encrypted already")
            .hint("planwright store rekey sets another passphrase or key"));
    }
    plain
        .remove(&context.workspace)
        .map_err(plain_files_failure)?;
    idle.finish(artifacts)?;
    print_result(
        context,
        "encrypted",
        &Rewritten::default(),
        plain.ours.len(),
    )?;
    Ok(Exit::Done)
}

pub(crate) async fn decrypt(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    if !is_store_encrypted(context)? {
        return Err(Failure::refused("the store is not encrypted"));
    }
    confirm_change(
        context,
        args,
        "Decrypt the store? Then every user who can read its files can read it.",
    )?;
    let passphrase = context.unlock.existing(context)?;
    let from = open_options(context, Some(passphrase))?;
    let artifacts = context.workspace.artifacts.clone();
    let written = run_with_progress(context.printer, move |tell| {
        let (idle, written) =
            IdleStore::open(from)?.rewrite(&Protection::Plain, &artifacts, tell)?;
        idle.finish(&artifacts)?;
        Ok::<_, RewriteStoreError>(written)
    });
    print_result(context, "decrypted", &written.await?, 0)?;
    if context.config.passphrase_file(Path::new("")).is_some() {
        context.printer.hint(
            "remove passphrase_file from planwright.toml: an unencrypted store is refused with it",
        );
    }
    Ok(Exit::Done)
}

/// Returns whether there is an encrypted store; a failure if there is none at all.
fn is_store_encrypted(context: &CommandContext) -> Result<bool, Failure> {
    let path = &context.workspace.database;
    is_encrypted(path)?.ok_or_else(|| {
        Failure::usage(format!("there is no store at {}", path.display())).hint(
            "a new store is made encrypted if [store] passphrase_file is set before its first plan",
        )
    })
}

pub(super) fn list_plain_files(context: &CommandContext, plain: &PlainFiles) {
    let printer = context.printer;
    let shown = |path: &Path| {
        line(
            &path
                .strip_prefix(&context.workspace.root)
                .unwrap_or(path)
                .display()
                .to_string(),
        )
    };
    if !plain.ours.is_empty() {
        printer.talk("these files hold plain text and are removed:");
        for path in plain.ours.iter().take(NAMED) {
            printer.talk(&format!("  {}", shown(path)));
        }
        if let more @ 1.. = plain.ours.len().saturating_sub(NAMED) {
            printer.talk(&format!("  and {more} more"));
        }
    }
    for path in plain.others.iter().take(NAMED) {
        printer.warn(&format!(
            "{} was not written by planwright and is not removed",
            shown(path)
        ));
    }
}

pub(super) fn confirm_change(
    context: &CommandContext,
    args: &Args,
    question: &str,
) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    if !context.printer.can_ask() {
        return Err(Failure::refused("there is no terminal to ask at")
            .hint(confirmation_hint("repeat the command with --yes")));
    }
    match ask_yes_no(context.printer, question)? {
        YesNo::Yes => Ok(()),
        YesNo::No | YesNo::Unclear => Err(Failure::refused("nothing was changed")),
    }
}

fn print_result(
    context: &CommandContext,
    word: &str,
    written: &Rewritten,
    removed: usize,
) -> Result<(), Failure> {
    let Rewritten {
        streams,
        entries,
        artifacts,
    } = written;
    if context.printer.json {
        return context.printer.document(&json!({
            "store": context.workspace.database, "status": word, "streams": streams, "entries": entries,
            "artifacts": artifacts, "filesRemoved": removed,
        }));
    }
    context.printer.data(&format!(
        "{word}: {}, {}, {}; {} removed",
        count_of(streams, "stream", "streams"),
        count_of(entries, "entry", "entries"),
        count_of(artifacts, "large value", "large values"),
        count_of(removed, "plain file", "plain files")
    ))
}

pub(super) fn plain_files_failure(error: io::Error) -> Failure {
    Failure::new(
        Exit::Store,
        format!("the plain files in .plans cannot be removed: {error}"),
    )
    .hint("To continue where it stopped: planwright store encrypt")
}
