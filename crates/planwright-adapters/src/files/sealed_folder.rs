//! A folder of small files beside the store, sealed like it. A file's name says which key it was
//! sealed with, so that the files of two keys can lie side by side while a store is rewritten.

use super::{WriteFileError, atomic_write};
use crate::vault::{Cipher, SealedPlace};
use std::fs::DirBuilder;
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A larger file is none of ours, unless the folder is for larger ones.
const MAX_BYTES: u64 = 256 << 10;
/// The word for files that no key sealed.
const PLAIN: &str = "plain";
/// The end of every name.
const ENDING: &str = ".sealed";

/// The reason why a file could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum SealedFolderError {
    #[error("cannot read or write {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Write(#[from] WriteFileError),
    #[error("{0} cannot be sealed")]
    Seal(PathBuf),
    #[error("{0} was changed on disk")]
    Changed(PathBuf),
}

/// Files under one key.
#[derive(Debug, Clone)]
pub struct SealedFolder {
    directory: PathBuf,
    cipher: Arc<Cipher>,
    limit: u64,
}

impl SealedFolder {
    /// Files in this directory, which is made when needed.
    pub fn new(directory: impl Into<PathBuf>, cipher: Arc<Cipher>) -> Self {
        Self {
            directory: directory.into(),
            cipher,
            limit: MAX_BYTES,
        }
    }

    /// The same with files of up to so many bytes.
    #[must_use]
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Where the file of this name is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(self.file_name(name))
    }

    /// Makes the directory.
    pub fn create(&self) -> Result<(), SealedFolderError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(|source| failed(&self.directory, source))
    }

    /// Replaces the file of this name, of lowercase letters and digits.
    pub fn save(&self, name: &str, bytes: &[u8]) -> Result<(), SealedFolderError> {
        let path = self.path(name);
        let sealed = self
            .cipher
            .seal(place(&[name.as_bytes()]), bytes)
            .map_err(|_| SealedFolderError::Seal(path.clone()))?;
        self.create()?;
        Ok(atomic_write(&path, &sealed)?)
    }

    /// Reads the file of this name; `None` if there is none.
    pub fn load(&self, name: &str) -> Result<Option<Vec<u8>>, SealedFolderError> {
        let path = self.path(name);
        let file = match std::fs::File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|source| failed(&path, source))?,
        };
        let mut kept = Vec::new();
        file.take(self.limit + 1)
            .read_to_end(&mut kept)
            .map_err(|source| failed(&path, source))?;
        if kept.len() as u64 > self.limit {
            return Err(SealedFolderError::Changed(path));
        }
        let opened = self.cipher.open(place(&[name.as_bytes()]), kept);
        opened
            .map(Some)
            .map_err(|_| SealedFolderError::Changed(path))
    }

    /// Removes the file of this name. Returns whether there was one.
    pub fn remove(&self, name: &str) -> Result<bool, SealedFolderError> {
        let path = self.path(name);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(failed(&path, source)),
        }
    }

    /// The number of files, under any key.
    pub fn count(&self) -> Result<usize, SealedFolderError> {
        Ok(self.files()?.len())
    }

    /// Removes the files that were written first if there are more than `most`, under any key.
    pub fn keep_newest(&self, most: usize) -> Result<(), SealedFolderError> {
        let files = self.files()?;
        let surplus = files.len().saturating_sub(most);
        if surplus == 0 {
            return Ok(());
        }
        let mut dated = Vec::with_capacity(files.len());
        for path in files.iter().map(|file| self.directory.join(file)) {
            // One that another process has just removed is gone, and comes first.
            let written = std::fs::metadata(&path).and_then(|found| found.modified());
            dated.push((written.ok(), path));
        }
        dated.sort_unstable();
        let oldest = dated.into_iter().take(surplus).map(|(_, path)| path);
        remove_all(&oldest.collect::<Vec<_>>())
    }

    /// Puts everything that is here into `other` as well.
    pub fn copy_to(&self, other: &Self) -> Result<(), SealedFolderError> {
        let ending = self.ending();
        for file in self.files()? {
            if let Some(name) = file.strip_suffix(&ending)
                && let Some(bytes) = self.load(name)?
            {
                other.save(name, &bytes)?;
            }
        }
        Ok(())
    }

    /// The files of other keys, or of none, and what was never finished.
    pub fn foreign(&self) -> Result<Vec<PathBuf>, SealedFolderError> {
        let ending = self.ending();
        let others = self
            .files()?
            .into_iter()
            .filter(|file| !file.ends_with(&ending));
        Ok(others.map(|file| self.directory.join(file)).collect())
    }

    pub fn remove_foreign(&self) -> Result<(), SealedFolderError> {
        remove_all(&self.foreign()?)
    }

    /// Removes our own.
    pub fn remove_own(&self) -> Result<(), SealedFolderError> {
        let ending = self.ending();
        let own = self
            .files()?
            .into_iter()
            .filter(|file| file.ends_with(&ending));
        remove_all(
            &own.map(|file| self.directory.join(file))
                .collect::<Vec<_>>(),
        )
    }

    /// The names of the files that look like ours under any key.
    fn files(&self) -> Result<Vec<String>, SealedFolderError> {
        let entries = match std::fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|source| failed(&self.directory, source))?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| failed(&self.directory, source))?;
            let name = entry.file_name().into_string().ok();
            files.extend(name.filter(|name| name.ends_with(ENDING) || name.starts_with(".tmp-")));
        }
        files.sort_unstable();
        Ok(files)
    }

    fn file_name(&self, name: &str) -> String {
        format!("{name}{}", self.ending())
    }

    fn ending(&self) -> String {
        let key = self.cipher.key_id().unwrap_or(PLAIN);
        format!(".{key}{ENDING}")
    }
}

fn remove_all(paths: &[PathBuf]) -> Result<(), SealedFolderError> {
    for path in paths {
        match std::fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(failed(path, source));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn failed(path: &Path, source: io::Error) -> SealedFolderError {
    SealedFolderError::Io {
        path: path.to_owned(),
        source,
    }
}

fn place<'a>(row: &'a [&'a [u8]]) -> SealedPlace<'a> {
    SealedPlace {
        table: "sealed_folder",
        column: "content",
        row,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_key_are_found_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let plain = SealedFolder::new(place.path().join("x"), Arc::new(Cipher::Plain));
        assert_eq!(plain.load("a").unwrap(), None);
        plain.save("a", b"one").unwrap();
        std::fs::write(place.path().join("x/b.0123456789ab.sealed"), b"?").unwrap();
        assert_eq!(plain.load("a").unwrap().as_deref(), Some(&b"one"[..]));
        assert_eq!(plain.foreign().unwrap().len(), 1);
        plain.remove_foreign().unwrap();
        assert!(plain.foreign().unwrap().is_empty());
        assert!(plain.remove("a").unwrap());
        assert!(!plain.remove("a").unwrap());
    }

    #[test]
    fn the_files_that_were_written_first_go_first() {
        let place = tempfile::tempdir().unwrap();
        let plain = SealedFolder::new(place.path(), Arc::new(Cipher::Plain)).with_limit(3);
        for (age, name) in ["c", "a", "b"].into_iter().enumerate() {
            plain.save(name, b"one").unwrap();
            let file = std::fs::File::options().write(true).open(plain.path(name));
            let hours = 3 - u64::try_from(age).unwrap();
            let at = std::time::SystemTime::now() - std::time::Duration::from_hours(hours);
            file.unwrap().set_modified(at).unwrap();
        }
        plain.keep_newest(3).unwrap();
        assert_eq!(plain.count().unwrap(), 3);
        plain.keep_newest(2).unwrap();
        assert_eq!(plain.load("c").unwrap(), None);
        assert_eq!(plain.load("a").unwrap().as_deref(), Some(&b"one"[..]));
        plain.save("d", b"more than three").unwrap();
        assert!(plain.load("d").is_err());
    }
}
