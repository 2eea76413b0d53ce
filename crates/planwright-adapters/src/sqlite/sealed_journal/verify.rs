//! Checking sealed files, with the database that names them and without one.

use super::file::{Header, ReadSealedError, SealedFile};
use super::rows;
use super::seal::{check_file, check_file_with};
use crate::sqlite::fault::failed;
use crate::sqlite::store::SqliteStore;
use crate::vault::Cipher;
use planwright_core::journal::{Record, StreamName};
use planwright_engine::port::StoreError;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// A header is a short line.
const MAX_HEADER_BYTES: u64 = 1 << 20;

pub(super) fn read_header_line(path: &Path) -> Result<Header, ReadSealedError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(ReadSealedError::Missing);
        }
        opened => opened?,
    };
    let mut line = Vec::new();
    BufReader::new(file.take(MAX_HEADER_BYTES)).read_until(b'\n', &mut line)?;
    serde_json::from_slice(&line).map_err(|_| ReadSealedError::NotSealed)
}

impl SealedFile {
    /// Reads a file and follows its chain, without any store. Of an encrypted file only the digest
    /// and the numbers can be checked without the key.
    pub fn check(path: &Path) -> Result<Self, ReadSealedError> {
        match check_file(path, &Cipher::Plain) {
            Err(ReadSealedError::OtherKey) => Self::read(path, |_| Ok(()), |_| Ok(())),
            checked => checked,
        }
    }
}

impl SqliteStore {
    /// Where sealed files are.
    pub fn sealed_directory(&self) -> &Path {
        self.reader().sealed_files().directory()
    }

    /// The journals that are sealed, with the names of their files.
    pub async fn sealed_streams(&self) -> Result<Vec<(StreamName, String)>, StoreError> {
        let rows = self
            .look(|reader| {
                reader.with(|connection| rows::all(connection).map_err(|error| failed(&error)))
            })
            .await?;
        let named = |(name, row): (String, rows::SealedRow)| {
            let stream = name.parse().map_err(|error| {
                StoreError::Failed(format!("{name:?} cannot be a stream: {error}"))
            });
            Ok((stream?, row.file))
        };
        rows.into_iter().map(named).collect()
    }

    /// Checks every sealed file that the store names: returns how many there are, and what is
    /// wrong, by the path of the file.
    pub async fn check_sealed_files(&self) -> Result<(u64, Vec<(PathBuf, String)>), StoreError> {
        self.look(|reader| {
            let rows =
                reader.with(|connection| rows::all(connection).map_err(|error| failed(&error)))?;
            let count = rows.len() as u64;
            let mut problems = Vec::new();
            for (name, row) in rows {
                let path = reader.sealed_files().directory().join(&row.file);
                let checked = check_file(&path, reader.cipher());
                let problem = match checked {
                    Ok(file) if file.header.stream != name => {
                        Some(format!("it holds {} and not {name}", file.header.stream))
                    }
                    Ok(file) if file.head != row.head || file.digest != row.digest => {
                        Some(ReadSealedError::Changed.to_string())
                    }
                    Ok(_) => None,
                    Err(error) => Some(error.to_string()),
                };
                let problem = problem.map(|problem| format!("the journal of {name}: {problem}"));
                problems.extend(problem.map(|problem| (path, problem)));
            }
            Ok((count, problems))
        })
        .await
    }

    /// Reads a sealed file of this store, or of none, and hands each record to `each`.
    pub fn read_sealed_file(
        &self,
        path: &Path,
        mut each: impl FnMut(&Record),
    ) -> Result<SealedFile, ReadSealedError> {
        check_file_with(path, self.cipher(), |record| {
            each(record);
            Ok(())
        })
    }
}
