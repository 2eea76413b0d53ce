//! A backup becomes the store again. All of it is checked before anything is replaced.
//!
//! Time has passed since the backup was made, and the world has moved on without it. So nothing
//! goes on by itself: the owners of runs are fenced off, commands that waited are answered with a
//! refusal, and tokens are revoked, because one that was taken back since then would open the door
//! again.

use super::backup::{
    ARTIFACTS, BackedFile, DATABASE, FORMAT, MANIFEST, Manifest, SEALED, check_copy, copy_file,
    create_directory, failed, hash_file, sync_directory,
};
use super::identity;
use super::idle::{RewriteProgress, RewriteStoreError, Tell, lock_alone, replace};
use super::open::{self, Options};
use super::passes;
use super::sealed_journal::is_sealed_name;
use super::tokens::all as all_tokens;
use super::{schema, vault};
use crate::files::FileArtifacts;
use crate::sealing::{seal_refusal, token_mark};
use crate::vault::Cipher;
use planwright_core::time::Timestamp;
use planwright_engine::crash;
use planwright_engine::port::{StoreError, Token};
use rusqlite::{Connection, OpenFlags, params};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A list of files longer than this is not read.
const MAX_MANIFEST_BYTES: u64 = 256 * 1024 * 1024;
const REFUSAL: &str = "the store was restored from a backup before this was answered";

/// The backup to restore, and the place it goes to.
#[derive(Debug, Clone)]
pub struct Restore {
    /// The directory of the backup.
    pub from: PathBuf,
    /// The store it becomes, with the passphrase of the backup if it has one.
    pub to: Options,
    /// The directory of the store's large values.
    pub artifacts: PathBuf,
    /// `true` if a store that is there may be replaced.
    pub replace: bool,
    /// `true` if tokens stay valid.
    pub keep_tokens: bool,
    pub now: Timestamp,
}

/// The counts of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    pub manifest: Manifest,
    /// Tokens that were valid in the backup and are not any more.
    pub tokens_revoked: u64,
    /// Commands that waited for an owner.
    pub commands_refused: u64,
}

/// Reads what a backup says it holds.
pub fn read_manifest(backup: &Path) -> Result<Manifest, RewriteStoreError> {
    let path = backup.join(MANIFEST);
    let file = std::fs::File::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => RewriteStoreError::NoBackup(backup.into()),
        _ => failed(&path)(error),
    })?;
    let mut text = Vec::new();
    file.take(MAX_MANIFEST_BYTES)
        .read_to_end(&mut text)
        .map_err(failed(&path))?;
    let manifest: Manifest = serde_json::from_slice(&text)
        .map_err(|error| RewriteStoreError::BadBackup(format!("{MANIFEST}: {error}")))?;
    if manifest.format > FORMAT {
        let found = manifest.format;
        let reason = format!("it was made by a newer version of planwright (format {found})");
        return Err(RewriteStoreError::BadBackup(reason));
    }
    if !manifest.files.iter().any(|file| file.path == DATABASE) {
        return Err(RewriteStoreError::BadBackup(
            "it holds no database".to_owned(),
        ));
    }
    // A name is never trusted to stay inside the directory.
    match manifest.files.iter().find(|file| !is_expected(&file.path)) {
        Some(file) => Err(RewriteStoreError::BadBackup(format!(
            "{:?} does not belong there",
            file.path
        ))),
        None => Ok(manifest),
    }
}

fn is_expected(path: &str) -> bool {
    let value = path
        .strip_prefix(ARTIFACTS)
        .and_then(|rest| rest.strip_prefix('/'));
    let sealed = path
        .strip_prefix(SEALED)
        .and_then(|rest| rest.strip_prefix('/'));
    path == DATABASE
        || value.is_some_and(FileArtifacts::is_name)
        || sealed.is_some_and(is_sealed_name)
}

/// Puts a backup in place. Blocks.
pub fn restore(restore: &Restore, tell: Tell<'_>) -> Result<Restored, RewriteStoreError> {
    let Restore {
        from,
        to,
        artifacts,
        ..
    } = restore;
    let manifest = read_manifest(from)?;
    check_files(from, &manifest, tell)?;
    if to.path.exists() && !restore.replace {
        return Err(RewriteStoreError::Exists(to.path.clone()));
    }
    open::create_directory(&to.path)?;
    let (heads, _) = lock_alone(to)?;
    let new_path = to.beside("-new");
    let written = write_beside(restore, &manifest, &new_path, tell);
    if written.is_err() {
        // It is of no use, and may hold plain text.
        drop(std::fs::remove_file(&new_path));
    }
    let (cipher, settled) = written?;
    copy_values(from, &manifest, (ARTIFACTS, artifacts), tell)?;
    copy_values(from, &manifest, (SEALED, &to.beside("-sealed")), tell)?;
    crash::point("restore: values written");
    empty_log(to);
    replace(to, &heads, &new_path)?;
    // Large values under another key, or under none, belonged to what was replaced.
    FileArtifacts::with_cipher(artifacts, Arc::clone(&cipher)).remove_foreign()?;
    crash::point("restore: old values removed");
    let connection = open::connect(to)?;
    vault::finish(&connection)?;
    identity::follow_restore(&connection, to)?;
    open::checkpoint(&connection, "TRUNCATE")?;
    let (tokens_revoked, commands_refused) = settled;
    Ok(Restored {
        manifest,
        tokens_revoked,
        commands_refused,
    })
}

/// Writes the database beside the store, checks all of it, and settles what must not go on.
fn write_beside(
    restore: &Restore,
    manifest: &Manifest,
    path: &Path,
    tell: Tell<'_>,
) -> Result<(Arc<Cipher>, (u64, u64)), RewriteStoreError> {
    let (mut new, cipher) = copy_database(restore, manifest, path)?;
    crash::point("restore: copied");
    match check_copy(&new, &cipher, tell) {
        Ok(counted) if counted == (manifest.streams, manifest.entries) => {}
        Ok(_) => {
            return Err(RewriteStoreError::BadBackup(
                "it does not hold what it says".to_owned(),
            ));
        }
        // It was made of a damaged store and says so; its readers are told again.
        Err(RewriteStoreError::Damaged(_)) if !manifest.damage.is_empty() => {}
        Err(error) => return Err(error),
    }
    let transaction = new.transaction()?;
    let settled = settle(
        &transaction,
        &cipher,
        (restore.keep_tokens, REFUSAL),
        restore.now,
    )?;
    if cipher.is_sealed() {
        transaction.execute("UPDATE vault SET unfinished = 1", [])?;
    }
    transaction.commit()?;
    drop(new);
    std::fs::File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(failed(path))?;
    crash::point("restore: settled");
    Ok((Arc::new(cipher), settled))
}

fn check_files(from: &Path, manifest: &Manifest, tell: Tell<'_>) -> Result<(), RewriteStoreError> {
    let total = manifest.files.len() as u64;
    for (file, done) in manifest.files.iter().zip(1..) {
        let path = from.join(&file.path);
        let (bytes, digest) = hash_file(&path, |_| Ok(())).map_err(failed(&path))?;
        if (bytes, digest) != (file.bytes, file.digest) {
            return Err(RewriteStoreError::BadBackup(format!(
                "{} was changed",
                file.path
            )));
        }
        tell(RewriteProgress {
            what: "checking",
            done,
            total,
        });
    }
    Ok(())
}

/// Copies the database beside the store, and opens it there.
fn copy_database(
    restore: &Restore,
    manifest: &Manifest,
    to: &Path,
) -> Result<(Connection, Cipher), RewriteStoreError> {
    match std::fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(to)(error)),
        Ok(()) | Err(_) => {}
    }
    let copied = copy_file(&restore.from.join(DATABASE), to)?;
    let told = manifest.files.iter().find(|file| file.path == DATABASE);
    if told.is_none_or(|file| (file.bytes, file.digest) != copied) {
        return Err(RewriteStoreError::BadBackup(format!(
            "{DATABASE} was changed"
        )));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut new = Connection::open_with_flags(to, flags)?;
    new.pragma_update(None, "journal_mode", "memory")?;
    let cipher = vault::unlock(&new, restore.to.passphrase.as_ref())?.unwrap_or(Cipher::Plain);
    schema::migrate(&mut new)?;
    Ok((new, cipher))
}

/// Fences off owners, answers commands, revokes tokens, ends sessions, inside a transaction. Returns how many
/// tokens and commands.
pub(super) fn settle(
    transaction: &Connection,
    cipher: &Cipher,
    (keep_tokens, refusal): (bool, &str),
    now: Timestamp,
) -> Result<(u64, u64), RewriteStoreError> {
    transaction.execute("UPDATE leases SET epoch = epoch + 1, owner = NULL", [])?;
    let waiting: Vec<i64> = transaction
        .prepare("SELECT id FROM messages WHERE answered = 0")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for id in &waiting {
        let refusal = seal_refusal(cipher, *id, refusal).map_err(StoreError::from)?;
        let sql = "UPDATE messages SET answered = 1, refusal = ?2 WHERE id = ?1";
        transaction.execute(sql, params![id, refusal])?;
    }
    let valid: Vec<Token> = all_tokens(transaction, cipher)?
        .into_iter()
        .filter(|token| token.is_valid(now))
        .collect();
    let revoked = if keep_tokens { Vec::new() } else { valid };
    for token in &revoked {
        let token = Token {
            revoked_at: Some(now),
            ..token.clone()
        };
        let mark = token_mark(cipher, &token).map_err(StoreError::from)?;
        let sql = "UPDATE tokens SET revoked_at = ?2, mark = ?3 WHERE id = ?1";
        transaction.execute(sql, params![token.id.0, now.as_millis(), mark])?;
    }
    // A session that was ended since then would be open again.
    passes::remove_all(transaction)?;
    Ok((revoked.len() as u64, waiting.len() as u64))
}

fn copy_values(
    from: &Path,
    manifest: &Manifest,
    (directory, to): (&str, &Path),
    tell: Tell<'_>,
) -> Result<(), RewriteStoreError> {
    let values: Vec<&BackedFile> = manifest
        .files
        .iter()
        .filter(|file| file.path.split('/').next() == Some(directory))
        .collect();
    if values.is_empty() {
        return Ok(());
    }
    create_directory(to)?;
    let total = values.len() as u64;
    for (file, done) in values.iter().zip(1..) {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let target = to.join(name);
        let known =
            hash_file(&target, |_| Ok(())).is_ok_and(|found| found == (file.bytes, file.digest));
        if !known {
            // Written under another name first: a file is whole or not there.
            let draft = to.join(format!(".tmp-{}", file.digest.short()));
            drop(std::fs::remove_file(&draft));
            let copied = copy_file(&from.join(&file.path), &draft)?;
            if copied != (file.bytes, file.digest) {
                return Err(RewriteStoreError::BadBackup(format!(
                    "{} was changed",
                    file.path
                )));
            }
            std::fs::rename(&draft, &target).map_err(failed(&target))?;
        }
        tell(RewriteProgress {
            what: "large values",
            done,
            total,
        });
    }
    sync_directory(to)
}

/// Moves the log of the store that is replaced into its main file, so that it is whole if we die
/// before the rename.
fn empty_log(options: &Options) {
    if options.path.exists()
        && let Ok(connection) = open::connect(options)
    {
        // If it cannot be done the store is damaged, and the operator asked for it to be replaced.
        drop(open::checkpoint(&connection, "TRUNCATE"));
    }
}
