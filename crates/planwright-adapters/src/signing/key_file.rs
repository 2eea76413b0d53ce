//! The file that holds the user's key, for its owner only.

use super::key::{SEED_BYTES, SigningKey};
use crate::files::{create_temporary, lock_beside};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{geteuid, getuid};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use zeroize::{Zeroize as _, Zeroizing};

/// Longer files hold something else.
const MAX_BYTES: u64 = 4096;
const KIND: &str = "store key";
const FORMAT: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    #[error("cannot read or write the key file {path}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} can be used by others (mode {mode:o}): a key file is its owner's alone")]
    OpenToOthers { path: PathBuf, mode: u32 },
    #[error("{path} belongs to another account (uid {user})")]
    NotOurs { path: PathBuf, user: u32 },
    #[error("{0} holds no key of this program")]
    NotAKey(PathBuf),
    #[error("{0} was copied to where it is, and lies in the workspace: it may have come with it")]
    Copied(PathBuf),
    #[error("no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Where a key file may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrigin {
    /// Also from elsewhere: machines that share stores share a key.
    Anywhere,
    /// It must be the very file that this program made. One that came with a folder, in a clone or an
    /// archive, is another file, also with the same words in it.
    MadeHere,
}

#[derive(Serialize, Deserialize)]
struct KeyFile {
    planwright: String,
    format: u32,
    /// 32 bytes, in base64. The secret half.
    seed: String,
    /// For people: the public half, which receipts are checked with.
    public: String,
    /// The number of the file it was written to.
    inode: u64,
}

impl SigningKey {
    /// Reads the key, if there is one.
    pub fn read(path: &Path, origin: KeyOrigin) -> Result<Option<Self>, KeyFileError> {
        let failed = failed_at(path);
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(&failed)?,
        };
        // What is checked is the file that was opened, regardless of where the path leads by then.
        let found = file.metadata().map_err(&failed)?;
        if !found.is_file() {
            return Err(KeyFileError::NotAKey(path.into()));
        }
        if found.mode() & 0o077 != 0 {
            return Err(KeyFileError::OpenToOthers {
                path: path.into(),
                mode: found.mode() & 0o777,
            });
        }
        if ![getuid().as_raw(), geteuid().as_raw(), 0].contains(&found.uid()) {
            return Err(KeyFileError::NotOurs {
                path: path.into(),
                user: found.uid(),
            });
        }
        let mut text = Zeroizing::new(Vec::new());
        file.take(MAX_BYTES)
            .read_to_end(&mut text)
            .map_err(&failed)?;
        let not_a_key = || KeyFileError::NotAKey(path.into());
        let mut written: KeyFile = serde_json::from_slice(&text).map_err(|_| not_a_key())?;
        let seed = STANDARD.decode(&written.seed).map(Zeroizing::new);
        written.seed.zeroize();
        if written.planwright != KIND || written.format != FORMAT {
            return Err(not_a_key());
        }
        if origin == KeyOrigin::MadeHere && written.inode != found.ino() {
            return Err(KeyFileError::Copied(path.into()));
        }
        let seed = seed.map_err(|_| not_a_key())?;
        let seed: [u8; SEED_BYTES] = seed.as_slice().try_into().map_err(|_| not_a_key())?;
        Ok(Some(Self::from_seed(Zeroizing::new(seed))))
    }

    /// Reads the key, or makes one. Of several processes that do so at once one makes it, and the
    /// others read it.
    pub fn read_or_create(path: &Path, origin: KeyOrigin) -> Result<Self, KeyFileError> {
        if let Some(key) = Self::read(path, origin)? {
            return Ok(key);
        }
        let failed = failed_at(path);
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or_else(|| Path::new("."));
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        made.map_err(&failed)?;
        // Others may be making the same key.
        let _turn = lock_beside(path).map_err(&failed)?;
        if let Some(key) = Self::read(path, origin)? {
            return Ok(key);
        }
        let key = Self::random().map_err(KeyFileError::Random)?;
        key.write_new(path, directory).map_err(&failed)?;
        Ok(key)
    }

    /// Writes the file whole or not at all. A rename keeps its number.
    fn write_new(&self, path: &Path, directory: &Path) -> io::Result<()> {
        let (temporary, file) = create_temporary(directory)?;
        let written = self
            .write_into(file)
            .and_then(|()| std::fs::rename(&temporary, path));
        if written.is_err() {
            drop(std::fs::remove_file(&temporary));
        }
        written?;
        File::open(directory)?.sync_all()
    }

    fn write_into(&self, mut file: File) -> io::Result<()> {
        let mut written = KeyFile {
            planwright: KIND.to_owned(),
            format: FORMAT,
            seed: STANDARD.encode(self.seed()),
            public: self.public().to_string(),
            inode: file.metadata()?.ino(),
        };
        let mut text = Zeroizing::new(serde_json::to_vec_pretty(&written)?);
        text.push(b'\n');
        written.seed.zeroize();
        file.write_all(&text)?;
        file.sync_all()
    }
}

fn failed_at(path: &Path) -> impl Fn(io::Error) -> KeyFileError {
    let path = path.to_owned();
    move |source| KeyFileError::Io {
        path: path.clone(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn make(path: &Path) -> SigningKey {
        SigningKey::read_or_create(path, KeyOrigin::Anywhere).unwrap()
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/store.key");
        assert!(
            SigningKey::read(&path, KeyOrigin::Anywhere)
                .unwrap()
                .is_none()
        );
        let made = make(&path).public();
        assert_eq!(make(&path).public(), made);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn processes_that_begin_together_have_one_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.key");
        let keys: Vec<_> = std::thread::scope(|scope| {
            let make = || scope.spawn(|| make(&path).public());
            let threads: Vec<_> = (0..8).map(|_| make()).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }

    #[test]
    fn a_file_that_others_can_use_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.key");
        make(&path);
        for mode in [0o644, 0o640, 0o620, 0o602] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let refused = SigningKey::read_or_create(&path, KeyOrigin::Anywhere);
            assert!(
                matches!(refused, Err(KeyFileError::OpenToOthers { .. })),
                "{mode:o}"
            );
        }
    }

    #[test]
    fn a_copy_counts_only_where_keys_are_shared() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.key");
        let made = make(&path).public();
        let copy = directory.path().join("copy.key");
        std::fs::copy(&path, &copy).unwrap();
        assert!(
            SigningKey::read(&path, KeyOrigin::MadeHere)
                .unwrap()
                .is_some()
        );
        let shared = SigningKey::read(&copy, KeyOrigin::Anywhere).unwrap();
        assert_eq!(shared.unwrap().public(), made);
        let refused = SigningKey::read(&copy, KeyOrigin::MadeHere);
        assert!(
            matches!(refused, Err(KeyFileError::Copied(_))),
            "{refused:?}"
        );
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.key");
        for text in [
            "",
            "{}",
            "a key",
            r#"{"planwright":"store key","format":1,"seed":"AA==","public":"","inode":1}"#,
        ] {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            let refused = SigningKey::read_or_create(&path, KeyOrigin::Anywhere);
            assert!(matches!(refused, Err(KeyFileError::NotAKey(_))), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
