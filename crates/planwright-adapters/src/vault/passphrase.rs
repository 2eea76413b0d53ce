//! What a person knows. It is kept in memory that is wiped, and never in arguments or variables of
//! the environment.

use rustix::process::getuid;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// A passphrase. It never prints itself.
#[derive(Clone)]
pub struct Passphrase(Arc<Zeroizing<String>>);

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[passphrase]")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadPassphraseError {
    #[error("cannot read the passphrase from {place}")]
    Io { place: String, source: io::Error },
    #[error("{0} is not a file")]
    NotAFile(PathBuf),
    #[error("{path} is open to others (mode {mode:o}): chmod 600 {path}")]
    OpenToOthers { path: PathBuf, mode: u32 },
    #[error("{path} belongs to another user ({user})")]
    NotOurs { path: PathBuf, user: u32 },
    #[error("the passphrase is not UTF-8 text")]
    NotText,
    #[error("the passphrase has more than one line")]
    SeveralLines,
    #[error("the passphrase is empty")]
    Empty,
    #[error("the passphrase is longer than {} bytes", Passphrase::MAX_BYTES)]
    TooLong,
    #[error(
        "the passphrase is too short: at least {} characters are needed",
        Passphrase::MIN_CHARS
    )]
    TooShort,
}

impl Passphrase {
    /// The fewest characters of one that is set. Slow guessing does not save a short one.
    pub const MIN_CHARS: usize = 8;
    pub const MAX_BYTES: usize = 4096;

    pub fn new(text: impl Into<Zeroizing<String>>) -> Result<Self, ReadPassphraseError> {
        let text = text.into();
        if text.is_empty() {
            return Err(ReadPassphraseError::Empty);
        }
        if text.len() > Self::MAX_BYTES {
            return Err(ReadPassphraseError::TooLong);
        }
        if text.contains(['\n', '\r', '\0']) {
            return Err(ReadPassphraseError::SeveralLines);
        }
        Ok(Self(Arc::new(text)))
    }

    /// Reads a file that only its owner can read.
    pub fn from_file(path: &Path) -> Result<Self, ReadPassphraseError> {
        let place = path.display().to_string();
        let failed = |source| ReadPassphraseError::Io {
            place: place.clone(),
            source,
        };
        // What is checked is the file that was opened, regardless of where the path leads by then.
        let file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(ReadPassphraseError::NotAFile(path.into()));
        }
        if found.mode() & 0o077 != 0 {
            return Err(ReadPassphraseError::OpenToOthers {
                path: path.into(),
                mode: found.mode() & 0o777,
            });
        }
        if found.uid() != getuid().as_raw() && found.uid() != 0 {
            return Err(ReadPassphraseError::NotOurs {
                path: path.into(),
                user: found.uid(),
            });
        }
        Self::read(file, &place)
    }

    /// Reads a descriptor that the parent of this process left open.
    pub fn from_descriptor(number: u32) -> Result<Self, ReadPassphraseError> {
        let place = format!("descriptor {number}");
        let failed = |source| ReadPassphraseError::Io {
            place: place.clone(),
            source,
        };
        let file = File::open(format!("/dev/fd/{number}")).map_err(failed)?;
        Self::read(file, &place)
    }

    fn read(file: File, place: &str) -> Result<Self, ReadPassphraseError> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(Self::MAX_BYTES + 3));
        let limit = Self::MAX_BYTES as u64 + 3;
        file.take(limit)
            .read_to_end(&mut bytes)
            .map_err(|source| ReadPassphraseError::Io {
                place: place.to_owned(),
                source,
            })?;
        let text = str::from_utf8(&bytes).map_err(|_| ReadPassphraseError::NotText)?;
        // Editors and `echo` end the last line; that end is not a part of the passphrase.
        let text = text
            .strip_suffix('\n')
            .map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
        Self::new(text.to_owned())
    }

    /// Checks that it is good enough to be set.
    pub fn check_strength(&self) -> Result<(), ReadPassphraseError> {
        if self.0.chars().count() < Self::MIN_CHARS {
            return Err(ReadPassphraseError::TooShort);
        }
        Ok(())
    }

    /// Returns whether two are the same, for one that is typed twice.
    pub fn is(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn file(text: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("passphrase");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (directory, path)
    }

    #[test]
    fn the_end_of_the_line_is_not_a_part_of_it() {
        let plain = Passphrase::new("correct horse".to_owned()).unwrap();
        for text in ["correct horse", "correct horse\n", "correct horse\r\n"] {
            let (_keep, path) = file(text.as_bytes(), 0o600);
            assert!(Passphrase::from_file(&path).unwrap().is(&plain), "{text:?}");
        }
        assert_eq!(format!("{plain:?}"), "[passphrase]");
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        for mode in [0o644, 0o640, 0o604, 0o660] {
            let (_keep, path) = file(b"correct horse", mode);
            let refused = Passphrase::from_file(&path);
            assert!(
                matches!(refused, Err(ReadPassphraseError::OpenToOthers { .. })),
                "{mode:o}"
            );
        }
        assert!(matches!(
            Passphrase::from_file(Path::new("/dev/null")),
            Err(ReadPassphraseError::NotAFile(_) | ReadPassphraseError::OpenToOthers { .. })
        ));
    }

    #[test]
    fn what_cannot_be_a_passphrase_is_refused() {
        for text in [b"".as_slice(), b"\n", b"a\nb\n", b"\xff\xfe", &[b'x'; 5000]] {
            let (_keep, path) = file(text, 0o600);
            assert!(Passphrase::from_file(&path).is_err(), "{text:?}");
        }
        let short = Passphrase::new("seven77".to_owned()).unwrap();
        assert!(matches!(
            short.check_strength(),
            Err(ReadPassphraseError::TooShort)
        ));
    }
}
