//! `store encrypt` and `store decrypt`.

use super::plain_files::PlainFiles;
use super::{at_length, options};
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{Answer, ask};
use crate::terminal::printer::line;
use crate::workspace::app::Setting;
use planwright_adapters::sqlite::{IdleStore, Protection, Rewritten, is_encrypted};
use planwright_adapters::vault::Cost;
use serde_json::json;
use std::io;
use std::path::Path;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Without being asked.
    #[arg(long, short = 'y')]
    yes: bool,
}

/// Files named before they are removed; of more only the number is said.
const NAMED: usize = 20;

pub(crate) async fn encrypt(setting: &Setting, args: &Args) -> Result<Exit, Failure> {
    let plain = PlainFiles::find(&setting.workspace).map_err(unreadable)?;
    if exists(setting)? {
        return finish(setting, &plain).await;
    }
    list(setting, &plain);
    agree(setting, args, "Encrypt the store and remove these files?")?;
    let passphrase = setting.unlock.new_one(setting)?;
    let protection = Protection::Sealed {
        passphrase,
        cost: Cost::DEFAULT,
    };
    let (from, artifacts) = (options(setting, None), setting.workspace.artifacts.clone());
    let written = at_length(setting.printer, move |tell| {
        let (idle, written) = IdleStore::open(from)?.rewrite(&protection, &artifacts, tell)?;
        Ok((idle, written, artifacts))
    });
    let (idle, written, artifacts) = written.await?;
    // Only now are they of no use to anybody: the new store is in place.
    plain.remove(&setting.workspace).map_err(unreadable)?;
    idle.finish(&artifacts)?;
    tell(setting, "encrypted", &written, plain.ours.len())?;
    setting
        .printer
        .hint("without the passphrase nobody can read the store, you neither: keep it safe");
    Ok(Exit::Done)
}

/// Goes on with what was broken off after the new store was in place.
async fn finish(setting: &Setting, plain: &PlainFiles) -> Result<Exit, Failure> {
    let passphrase = setting.unlock.existing(setting)?;
    let idle = IdleStore::open(options(setting, Some(passphrase)))?;
    let artifacts = &setting.workspace.artifacts;
    if !idle.is_unfinished(artifacts)? && plain.ours.is_empty() {
        return Err(Failure::refused("the store is encrypted already")
            .hint("planwright store rekey sets another passphrase or key"));
    }
    plain.remove(&setting.workspace).map_err(unreadable)?;
    idle.finish(artifacts)?;
    tell(
        setting,
        "encrypted",
        &Rewritten::default(),
        plain.ours.len(),
    )?;
    Ok(Exit::Done)
}

pub(crate) async fn decrypt(setting: &Setting, args: &Args) -> Result<Exit, Failure> {
    if !exists(setting)? {
        return Err(Failure::refused("the store is not encrypted"));
    }
    agree(
        setting,
        args,
        "Decrypt the store, so that everybody who can read its files can read it?",
    )?;
    let passphrase = setting.unlock.existing(setting)?;
    let (from, artifacts) = (
        options(setting, Some(passphrase)),
        setting.workspace.artifacts.clone(),
    );
    let written = at_length(setting.printer, move |tell| {
        let (idle, written) =
            IdleStore::open(from)?.rewrite(&Protection::Plain, &artifacts, tell)?;
        idle.finish(&artifacts)?;
        Ok(written)
    });
    tell(setting, "decrypted", &written.await?, 0)?;
    if setting.config.passphrase_file(Path::new("")).is_some() {
        setting
            .printer
            .hint("take passphrase_file out of planwright.toml: a plain store is refused with it");
    }
    Ok(Exit::Done)
}

/// Whether there is an encrypted store; a failure if there is none at all.
fn exists(setting: &Setting) -> Result<bool, Failure> {
    let path = &setting.workspace.database;
    is_encrypted(path)?.ok_or_else(|| {
        Failure::usage(format!("there is no store at {}", path.display())).hint(
            "a new store is made encrypted if [store] passphrase_file is set before its first plan",
        )
    })
}

fn list(setting: &Setting, plain: &PlainFiles) {
    let printer = setting.printer;
    let shown = |path: &Path| {
        line(
            &path
                .strip_prefix(&setting.workspace.root)
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
        printer.warn(&format!("{} is not ours and stays as it is", shown(path)));
    }
}

fn agree(setting: &Setting, args: &Args, question: &str) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    if !setting.printer.can_ask() {
        return Err(
            Failure::refused("nobody is there to be asked").hint("repeat the command with --yes")
        );
    }
    match ask(setting.printer, question)? {
        Answer::Yes => Ok(()),
        Answer::No | Answer::Neither => Err(Failure::refused("nothing was changed")),
    }
}

fn tell(setting: &Setting, word: &str, written: &Rewritten, removed: usize) -> Result<(), Failure> {
    let Rewritten {
        streams,
        entries,
        artifacts,
    } = written;
    if setting.printer.json {
        return setting.printer.document(&json!({
            "store": setting.workspace.database, "status": word, "streams": streams, "entries": entries,
            "artifacts": artifacts, "filesRemoved": removed,
        }));
    }
    setting.printer.data(&format!(
        "{word}: {streams} streams, {entries} entries, {artifacts} large values; {removed} plain files removed"
    ))
}

fn unreadable(error: io::Error) -> Failure {
    Failure::new(
        Exit::Store,
        format!("the plain files in .plans cannot be removed: {error}"),
    )
    .hint("repeat the command: planwright store encrypt goes on where it stopped")
}
