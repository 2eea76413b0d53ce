//! A journal as a file to be taken away, and such a file as a journal of this store.

use super::file::{Draft, ReadSealedError, SealedArtifact, SealedEntry, SealedFile};
use super::rows;
use super::seal::{check_file, in_snapshot, kept_entries, read_header};
use crate::files::{FileArtifacts, WriteFileError};
use crate::sealing::{LabelRow, mask_head, open_entry};
use crate::sqlite::fault::{Stop, of_stream};
use crate::sqlite::reader::Reader;
use crate::sqlite::sealed_journal::file::After;
use crate::sqlite::store::SqliteStore;
use crate::sqlite::writer::Writer;
use crate::vault::Cipher;
use planwright_core::journal::{Head, StreamName};
use planwright_engine::port::{
    Append, AppendError, ArtifactError, Journal as _, LeaseRule, StoreError, StreamStatus,
};
use rusqlite::params;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Entries of a file that are appended at a time.
const PAGE: usize = 500;

/// The reason a journal was not exported or imported. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("there is no journal of {0}")]
    NoSuchStream(StreamName),
    #[error("{0} already exists and is not replaced")]
    Exists(PathBuf),
    #[error("the store has a journal of {0} already")]
    Present(StreamName),
    #[error("{file} cannot be used: {source}")]
    File {
        file: PathBuf,
        source: ReadSealedError,
    },
    #[error("{0} does not say which plan it belongs to")]
    NoStatus(PathBuf),
    #[error(transparent)]
    Write(#[from] WriteFileError),
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SqliteStore {
    /// Writes the journal of one moment, with the large values it names, to the new file `to`.
    /// Nothing is taken out of the store. Returns where the journal ended, and the length of the
    /// file.
    pub async fn export_journal(
        &self,
        stream: &StreamName,
        to: &Path,
    ) -> Result<(Head, u64), ImportError> {
        let stream = stream.clone();
        let to = to.to_owned();
        let artifacts = FileArtifacts::with_cipher(
            self.options().beside("-artifacts"),
            Arc::clone(self.cipher()),
        );
        self.look(move |reader| Ok(export(reader, &artifacts, &stream, &to)))
            .await?
    }

    /// Makes a journal of this store from a file. Its entries keep their numbers, times and hashes;
    /// in the order of commits they come last.
    pub async fn import_journal(&self, file: &Path) -> Result<StreamName, ImportError> {
        let named = |source| ImportError::File {
            file: file.to_owned(),
            source,
        };
        let path = file.to_owned();
        let cipher = Arc::clone(self.cipher());
        let checked = tokio::task::spawn_blocking(move || check_file(&path, &cipher)).await;
        let checked = checked.map_err(|error| named(io::Error::other(error).into()))?;
        let checked = checked.map_err(named)?;
        let stream = checked.stream.clone();
        if self.head(&stream).await? != Head::EMPTY {
            return Err(ImportError::Present(stream));
        }
        let from = match checked.header.key {
            Some(_) => Arc::clone(self.cipher()),
            None => Arc::new(Cipher::Plain),
        };
        let status =
            read_status(&checked, &from).ok_or_else(|| ImportError::NoStatus(file.into()))?;
        self.import_artifacts(file).await?;
        self.import_entries(file, &checked, &from, status).await?;
        Ok(stream)
    }

    async fn import_artifacts(&self, file: &Path) -> Result<(), ImportError> {
        let artifacts = FileArtifacts::with_cipher(
            self.options().beside("-artifacts"),
            Arc::clone(self.cipher()),
        );
        let path = file.to_owned();
        let done = tokio::task::spawn_blocking(move || {
            let mut failure = None;
            let read = SealedFile::read(
                &path,
                |_| Ok(()),
                |SealedArtifact { name, bytes }| {
                    artifacts.put_kept(&name, bytes).map_err(|error| {
                        failure = Some(error);
                        ReadSealedError::Changed
                    })
                },
            );
            match (failure, read) {
                (Some(error), _) => Err(ImportError::from(error)),
                (None, Err(source)) => Err(ImportError::File { file: path, source }),
                (None, Ok(_)) => Ok(()),
            }
        });
        done.await.unwrap_or_else(|error| {
            Err(StoreError::Failed(format!("reading was interrupted: {error}")).into())
        })
    }

    /// All of it in one transaction: a journal is there or it is not.
    async fn import_entries(
        &self,
        file: &Path,
        checked: &SealedFile,
        from: &Cipher,
        status: StreamStatus,
    ) -> Result<(), ImportError> {
        let mut records = Vec::new();
        let name = checked.stream.to_string();
        let read = SealedFile::read(
            file,
            |entry| {
                let record = open_entry(from, &name, entry.kept);
                records.push(record.map_err(|_| ReadSealedError::Changed)?);
                Ok(())
            },
            |_| Ok(()),
        );
        let again = read.map_err(|source| ImportError::File {
            file: file.to_owned(),
            source,
        })?;
        if again.digest != checked.digest {
            return Err(ImportError::File {
                file: file.to_owned(),
                source: ReadSealedError::Changed,
            });
        }
        let epoch = records.iter().map(|record| record.epoch).max();
        let mut appends = Vec::new();
        let mut expected = Head::EMPTY;
        while !records.is_empty() {
            let rest = records.split_off(PAGE.min(records.len()));
            let page = std::mem::replace(&mut records, rest);
            let end = page
                .last()
                .map_or(expected, planwright_core::journal::Record::head);
            appends.push(Append {
                stream: checked.stream.clone(),
                expected: std::mem::replace(&mut expected, end),
                records: page,
                lease: LeaseRule::None,
                status: records.is_empty().then(|| status.clone()),
                answers: Vec::new(),
                requests: Vec::new(),
                brought: Vec::new(),
                offers: Vec::new(),
            });
        }
        self.append(appends).await?;
        let header = &checked.header;
        let stream = checked.stream.clone();
        let created_at = header.created_at;
        let updated_at = header.updated_at;
        let cipher = Arc::clone(self.cipher());
        self.write_indexed(move |writer| {
            settle_row(
                writer,
                &cipher,
                (&stream, &status),
                (created_at, updated_at),
                epoch,
            )
        })
        .await?;
        Ok(())
    }
}

/// Gives the row of an imported stream its old times, and the run its epoch, so that a later owner
/// has a higher one.
fn settle_row(
    writer: &mut Writer,
    cipher: &Cipher,
    (stream, status): (&StreamName, &StreamStatus),
    (created_at, updated_at): (i64, i64),
    epoch: Option<u64>,
) -> Result<(), Stop<StoreError>> {
    let name = stream.to_string();
    let connection = writer.connection();
    let row = LabelRow {
        stream: &name,
        plan: status.plan.as_str(),
        status: status.status.as_str(),
        created_at,
        updated_at,
    };
    let label = row.seal(cipher, &status.label);
    let label = label.map_err(|error| Stop::failed(error.to_string()))?;
    connection.execute(
        "UPDATE streams SET created_at = ?2, updated_at = ?3, label = ?4 WHERE name = ?1",
        params![name, created_at, updated_at, label],
    )?;
    if let (StreamName::Run(run), Some(epoch @ 1..)) = (stream, epoch) {
        connection.execute(
            "INSERT OR IGNORE INTO leases (run, epoch, owner, expires_at) VALUES (?1, ?2, NULL, 0)",
            params![run.as_str(), epoch],
        )?;
    }
    Ok(())
}

/// What lists show of the journal in a file.
fn read_status(file: &SealedFile, cipher: &Cipher) -> Option<StreamStatus> {
    let header = &file.header;
    let plan = header.plan.as_deref()?;
    let status = header.status.as_deref()?;
    let row = LabelRow {
        stream: &header.stream,
        plan,
        status,
        created_at: header.created_at,
        updated_at: header.updated_at,
    };
    let label = row.open(cipher, header.label.clone()?).ok()?;
    Some(StreamStatus {
        plan: plan.parse().ok()?,
        status: status.into(),
        label,
    })
}

fn export(
    reader: &Reader,
    artifacts: &FileArtifacts,
    stream: &StreamName,
    to: &Path,
) -> Result<(Head, u64), ImportError> {
    if std::fs::symlink_metadata(to).is_ok() {
        return Err(ImportError::Exists(to.to_owned()));
    }
    let failed_at = |source| WriteFileError::Io {
        path: to.to_owned(),
        source,
    };
    let name = stream.to_string();
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or_else(|| Path::new("."));
    let mut named = HashSet::new();
    let drafted = in_snapshot(reader, stream, |snapshot, id| {
        let lost = |error: rusqlite::Error| of_stream(stream, &error);
        let sealed = rows::find_row(snapshot, id).map_err(lost)?;
        let header = read_header(snapshot, stream, id, reader.cipher()).map_err(lost)?;
        let written = |error: io::Error| super::seal::of_io(&error);
        let mut draft = Draft::begin(directory, &header).map_err(written)?;
        let mut head = Head::EMPTY;
        loop {
            let page: Vec<SealedEntry> = match &sealed {
                Some(row) => {
                    reader.sealed_page(stream, row, After::Seq(head.seq), (PAGE, usize::MAX))?
                }
                None => kept_entries(snapshot, id, head.seq).map_err(lost)?,
            };
            let Some(last) = page.last() else { break };
            head = last.kept.head();
            for entry in page {
                draft.entry(&entry).map_err(written)?;
                let record = open_entry(reader.cipher(), &name, entry.kept);
                let record = record.map_err(|error| StoreError::Damaged {
                    stream: stream.clone(),
                    reason: error.to_string(),
                })?;
                super::artifacts::collect_digests(&record.body, &mut named);
            }
        }
        Ok(Some((draft, mask_head(reader.cipher(), &name, head))))
    })?;
    let Some((mut draft, head)) = drafted else {
        return Err(ImportError::NoSuchStream(stream.clone()));
    };
    let mut named: Vec<_> = named.into_iter().collect();
    named.sort_unstable();
    for digest in named {
        // Most digests are not those of large values.
        if let Some((name, bytes)) = artifacts.read_kept(&digest)? {
            draft.artifact(&name, &bytes).map_err(failed_at)?;
        }
    }
    let exists = |error: WriteFileError| match error {
        WriteFileError::Io { ref source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
            ImportError::Exists(to.to_owned())
        }
        error => error.into(),
    };
    let (_, bytes) = draft.finish_at(to).map_err(exists)?;
    Ok((head, bytes))
}
