//! `store`: how the store is kept.

mod adopt;
mod backup;
mod check;
mod compact;
mod copy;
mod database;
mod encrypt;
mod export;
mod plain_files;
mod rekey;
mod restore;
mod restore_run;

use crate::exit::{Exit, Failure};
use crate::terminal::printer::Printer;
use crate::trust::KeyUse;
use crate::workspace::app::CommandContext;
use crate::workspace::store_address::{find_location, refuse_database};
use indicatif::{ProgressBar, ProgressStyle};
use planwright_adapters::sqlite::{ImportError, Options, RewriteProgress, RewriteStoreError};
use planwright_adapters::vault::Passphrase;
use planwright_engine::with_causes;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum StoreCommand {
    /// Make a store that came from elsewhere yours: what was approved in it becomes void.
    Adopt(adopt::Args),
    /// Encrypt the store under a passphrase, and remove the plain files beside it.
    Encrypt(encrypt::Args),
    /// Decrypt the store.
    Decrypt(encrypt::Args),
    /// Set a new passphrase, or a new key under it.
    Rekey(rekey::Args),
    /// Copy the store into a new directory, even while runs execute.
    Backup(backup::Args),
    /// Restore a store from a backup. An existing store is replaced only with --replace.
    Restore(restore::Args),
    /// Copy everything into another store, of a workspace or in a database, and check every journal there.
    Copy(copy::Args),
    /// Apply [retention] now: seal, remove, and give the space back.
    Compact(compact::Args),
    /// Write the journal of a run, with its large values, to a file that can be taken away.
    Export(export::Args),
    /// Bring a sealed or exported journal back into the store.
    RestoreRun(restore_run::Args),
    /// Check the file, every journal, what was acknowledged, and the large values.
    Check,
}

impl StoreCommand {
    /// What does the same for a store in a database.
    fn instead(&self) -> Option<&'static str> {
        Some(match self {
            // It names both stores itself.
            Self::Copy(_) => return None,
            Self::Encrypt(_) | Self::Decrypt(_) | Self::Rekey(_) => return None,
            Self::Adopt(_) => "Who may use a database is decided by its server",
            Self::Backup(_) | Self::Restore(_) => {
                "To copy and restore it, also while runs execute: pg_dump and pg_restore"
            }
            Self::Compact(_) => {
                "[retention] is applied by the service, and autovacuum gives space back"
            }
            Self::Export(_) | Self::RestoreRun(_) => "To print a journal: planwright log ID",
            Self::Check => "To check every journal: planwright verify",
        })
    }
}

pub(crate) async fn run(context: &CommandContext, command: &StoreCommand) -> Result<Exit, Failure> {
    if let Some(instead) = command.instead() {
        refuse_database(context, instead)?;
    }
    match command {
        StoreCommand::Copy(args) => copy::run(context, args).await,
        StoreCommand::Adopt(args) => adopt::run(context, args).await,
        StoreCommand::Encrypt(args) => match find_location(context)? {
            Some(location) => database::encrypt(context, args, &location).await,
            None => encrypt::encrypt(context, args).await,
        },
        StoreCommand::Decrypt(args) => match find_location(context)? {
            Some(location) => database::decrypt(context, args, &location).await,
            None => encrypt::decrypt(context, args).await,
        },
        StoreCommand::Rekey(args) => match find_location(context)? {
            Some(location) => database::rekey(context, args, &location).await,
            None => rekey::run(context, args).await,
        },
        StoreCommand::Backup(args) => backup::run(context, args).await,
        StoreCommand::Restore(args) => restore::run(context, args).await,
        StoreCommand::Compact(args) => compact::run(context, args).await,
        StoreCommand::Export(args) => export::run(context, args).await,
        StoreCommand::RestoreRun(args) => restore_run::run(context, args).await,
        StoreCommand::Check => check::run(context).await,
    }
}

impl From<RewriteStoreError> for Failure {
    fn from(error: RewriteStoreError) -> Self {
        match error {
            RewriteStoreError::Open(error) => error.into(),
            RewriteStoreError::Store(error) => error.into(),
            RewriteStoreError::NoStore(_) | RewriteStoreError::NoBackup(_) => {
                Self::from_error(Exit::Usage, &error)
            }
            RewriteStoreError::Exists(_) => Self::from_error(Exit::Refused, &error)
                .hint("name another directory, or add --replace to overwrite it"),
            RewriteStoreError::InUse => Self::from_error(Exit::Refused, &error).hint(
                "stop planwright serve, wait until all runs have ended, then repeat the command",
            ),
            RewriteStoreError::SealedJournals(_) => Self::from_error(Exit::Refused, &error)
                .hint("planwright store restore-run --all brings them back into the store first"),
            RewriteStoreError::Damaged(_)
            | RewriteStoreError::Differs(_)
            | RewriteStoreError::Artifact(_) => Self::from_error(Exit::Store, &error)
                .hint("To see everything that is damaged: planwright store check"),
            RewriteStoreError::BadBackup(_)
            | RewriteStoreError::File { .. }
            | RewriteStoreError::Folder(_) => Self::from_error(Exit::Store, &error),
        }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Append(error) => error.into(),
            ImportError::Store(error) => error.into(),
            ImportError::Artifact(error) => error.into(),
            ImportError::NoSuchStream(_) => {
                Self::from_error(Exit::Usage, &error).hint("To see all plans: planwright list")
            }
            ImportError::Exists(_) => {
                Self::from_error(Exit::Refused, &error).hint("name another file with --output")
            }
            ImportError::Present(_) => Self::from_error(Exit::Refused, &error)
                .hint("To check what is there: planwright verify"),
            ImportError::File { .. } | ImportError::NoStatus(_) => {
                Self::from_error(Exit::Store, &error)
            }
            ImportError::Write(_) => Self::from_error(Exit::Store, &error),
        }
    }
}

/// How the store of this workspace is opened with this passphrase.
fn open_options(
    context: &CommandContext,
    passphrase: Option<Passphrase>,
) -> Result<Options, Failure> {
    Ok(Options {
        passphrase,
        owner: context.store_owner(KeyUse::Write)?,
        ..Options::new(&context.workspace.database)
    })
}

/// Does work that takes long on a thread of its own, and shows how far it has come.
async fn run_with_progress<T, E>(
    printer: Printer,
    work: impl FnOnce(&mut dyn FnMut(RewriteProgress)) -> Result<T, E> + Send + 'static,
) -> Result<T, Failure>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
{
    let bar = if printer.is_live() && !printer.json {
        ProgressBar::new(0)
    } else {
        ProgressBar::hidden()
    };
    if let Ok(style) = ProgressStyle::with_template("{msg:14} {wide_bar} {pos}/{len}") {
        bar.set_style(style);
    }
    let shown = bar.clone();
    let done = tokio::task::spawn_blocking(move || {
        work(&mut |RewriteProgress { what, done, total }| {
            shown.set_message(what);
            shown.set_length(total);
            shown.set_position(done);
        })
    });
    let done = done.await;
    bar.finish_and_clear();
    match done {
        Ok(done) => done.map_err(Into::into),
        Err(error) => Err(Failure::new(
            Exit::Store,
            format!("interrupted: {}", with_causes(&error)),
        )),
    }
}
