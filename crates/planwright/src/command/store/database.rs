//! `store encrypt`, `store decrypt` and `store rekey` for a store in a database.

use super::encrypt::{Args, confirm_change, list_plain_files, plain_files_failure};
use super::plain_files::PlainFiles;
use super::{rekey, run_with_progress};
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::workspace::app::CommandContext;
use planwright_adapters::files::SealedFolder;
use planwright_adapters::postgres::{
    IdlePostgresStore, Location, NewProtection, PostgresOptions, PostgresStore,
    RewritePostgresError, is_encrypted,
};
use planwright_adapters::sqlite::{Protection, Rewritten, SHAPES, SIGN_INS};
use planwright_adapters::vault::{Cipher, Passphrase, StretchCost};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

impl From<RewritePostgresError> for Failure {
    fn from(error: RewritePostgresError) -> Self {
        match error {
            RewritePostgresError::Open(error) => error.into(),
            RewritePostgresError::Store(error) => error.into(),
            RewritePostgresError::InUse => Self::from_error(Exit::Refused, &error).hint(
                "stop every planwright serve and worker that uses it, wait until all runs have ended, then repeat the command",
            ),
            RewritePostgresError::Damaged(_) | RewritePostgresError::Differs(_) => {
                Self::from_error(Exit::Store, &error)
                    .hint("To see everything that is damaged: planwright verify")
            }
        }
    }
}

/// The folders of this workspace that are sealed like the store.
struct Folders<'a>(&'a CommandContext);

impl Folders<'_> {
    fn under(&self, cipher: &Arc<Cipher>) -> [SealedFolder; 2] {
        [SIGN_INS, SHAPES]
            .map(|suffix| SealedFolder::new(self.0.beside_store(suffix), Arc::clone(cipher)))
    }

    /// Puts what is in them under another key as well. The files of both lie side by side until one is removed.
    fn copy(&self, from: &Arc<Cipher>, to: &Arc<Cipher>) -> Result<(), Failure> {
        let folders = self.under(from).into_iter().zip(self.under(to));
        for (old, new) in folders {
            old.copy_to(&new).map_err(|error| folder_failure(&error))?;
        }
        Ok(())
    }

    /// Removes what other keys sealed, or none.
    fn remove_foreign(&self, cipher: &Arc<Cipher>) -> Result<(), Failure> {
        let mut folders = self.under(cipher).into_iter();
        folders
            .try_for_each(|folder| folder.remove_foreign())
            .map_err(|error| folder_failure(&error))
    }

    fn has_foreign(&self, cipher: &Arc<Cipher>) -> Result<bool, Failure> {
        for folder in self.under(cipher) {
            let foreign = folder.foreign().map_err(|error| folder_failure(&error))?;
            if !foreign.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn folder_failure(error: &planwright_adapters::files::SealedFolderError) -> Failure {
    Failure::from_error(Exit::Store, error)
}

fn options(location: &Location, passphrase: Option<Passphrase>) -> PostgresOptions {
    PostgresOptions {
        passphrase,
        ..PostgresOptions::new(location.clone(), false)
    }
}

fn sealed(passphrase: Passphrase) -> Protection {
    Protection::Sealed {
        passphrase,
        cost: StretchCost::DEFAULT,
    }
}

/// Writes the store anew, and the folders of this workspace with it.
async fn rewrite(
    context: &CommandContext,
    idle: IdlePostgresStore,
    protection: &Protection,
) -> Result<(Rewritten, Arc<Cipher>), Failure> {
    let protection = NewProtection::new(protection)?;
    let folders = Folders(context);
    let cipher = Arc::clone(protection.cipher());
    folders.copy(idle.cipher(), &cipher)?;
    let work = run_with_progress(context.printer, move |tell| idle.rewrite(protection, tell));
    let written = match work.await {
        Ok(written) => written,
        Err(failure) => {
            // The copies may be plain text. What cannot be removed is removed by the next attempt.
            if let Err(left) = remove_own(&folders, &cipher) {
                context.printer.warn(&left.message);
            }
            return Err(failure);
        }
    };
    folders.remove_foreign(&cipher)?;
    Ok((written, cipher))
}

fn remove_own(folders: &Folders<'_>, cipher: &Arc<Cipher>) -> Result<(), Failure> {
    for folder in folders.under(cipher) {
        folder
            .remove_own()
            .map_err(|error| folder_failure(&error))?;
    }
    Ok(())
}

pub(super) async fn encrypt(
    context: &CommandContext,
    args: &Args,
    location: &Location,
) -> Result<Exit, Failure> {
    let plain = PlainFiles::find(&context.workspace).map_err(plain_files_failure)?;
    let found = is_encrypted(location)?;
    if found == Some(true) {
        return finish_encryption(context, location, &plain);
    }
    list_plain_files(context, &plain);
    confirm_change(context, args, "Encrypt the store and remove these files?")?;
    let passphrase = context.unlock.new_one(context)?;
    let (written, cipher) = match found {
        // An empty store has its key before anything is in it.
        None => {
            let made = PostgresStore::open_with(PostgresOptions {
                create: true,
                ..options(location, Some(passphrase))
            })?;
            (Rewritten::default(), Arc::clone(made.cipher()))
        }
        Some(_) => {
            let idle = IdlePostgresStore::open(&options(location, None))?;
            rewrite(context, idle, &sealed(passphrase)).await?
        }
    };
    plain
        .remove(&context.workspace)
        .map_err(plain_files_failure)?;
    Folders(context).remove_foreign(&cipher)?;
    print_result(context, location, "encrypted", (&written, plain.ours.len()))?;
    context
        .printer
        .hint("the store cannot be read without the passphrase: keep it safe");
    if found.is_some() {
        context.printer.hint(
            "the log of the server, its replicas and earlier dumps may still hold the plain text, and so may the files of other workspaces: planwright store encrypt there removes these",
        );
    }
    Ok(Exit::Done)
}

/// Removes what lies in plain text beside a store that is encrypted already: it was broken off here, or done elsewhere.
fn finish_encryption(
    context: &CommandContext,
    location: &Location,
    plain: &PlainFiles,
) -> Result<Exit, Failure> {
    let passphrase = context.unlock.existing(context)?;
    let idle = IdlePostgresStore::open(&options(location, Some(passphrase)))?;
    let folders = Folders(context);
    if plain.ours.is_empty() && !folders.has_foreign(idle.cipher())? {
        return Err(Failure::refused("the store is encrypted already")
            .hint("planwright store rekey sets another passphrase or key"));
    }
    plain
        .remove(&context.workspace)
        .map_err(plain_files_failure)?;
    folders.copy(&Arc::new(Cipher::Plain), idle.cipher())?;
    folders.remove_foreign(idle.cipher())?;
    let removed = (&Rewritten::default(), plain.ours.len());
    print_result(context, location, "encrypted", removed)?;
    Ok(Exit::Done)
}

pub(super) async fn decrypt(
    context: &CommandContext,
    args: &Args,
    location: &Location,
) -> Result<Exit, Failure> {
    if is_encrypted(location)? != Some(true) {
        return Err(Failure::refused("the store is not encrypted"));
    }
    confirm_change(
        context,
        args,
        "Decrypt the store? Then every user who can read the database can read it.",
    )?;
    let passphrase = context.unlock.existing(context)?;
    let idle = IdlePostgresStore::open(&options(location, Some(passphrase)))?;
    let (written, _) = rewrite(context, idle, &Protection::Plain).await?;
    print_result(context, location, "decrypted", (&written, 0))?;
    if context.config.passphrase_file(Path::new("")).is_some() {
        context.printer.hint(
            "remove passphrase_file from planwright.toml: an unencrypted store is refused with it",
        );
    }
    Ok(Exit::Done)
}

pub(super) async fn rekey(
    context: &CommandContext,
    args: &rekey::Args,
    location: &Location,
) -> Result<Exit, Failure> {
    let old = context.unlock.existing(context)?;
    // Opened before the new passphrase is asked for: the old one may be wrong.
    let idle = IdlePostgresStore::open(&options(location, Some(old.clone())))?;
    let new = args.new_passphrase(context)?;
    if args.data_key {
        rewrite(context, idle, &sealed(new)).await?;
    } else {
        let work = move |_: &mut dyn FnMut(_)| idle.relock(&old, &new, StretchCost::DEFAULT);
        run_with_progress(context.printer, work).await?;
    }
    args.print_result(context, &location.to_string())
}

fn print_result(
    context: &CommandContext,
    location: &Location,
    word: &str,
    (written, removed): (&Rewritten, usize),
) -> Result<(), Failure> {
    let Rewritten {
        streams,
        entries,
        artifacts,
    } = written;
    if context.printer.json {
        return context.printer.document(&json!({
            "store": location.to_string(), "status": word, "streams": streams, "entries": entries,
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
