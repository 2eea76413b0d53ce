//! Replacing a file so that every reader, also one after a power loss, sees the old or the new
//! content.

use crate::scarcity::wait_for_room_blocking;
use planwright_engine::crash;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum WriteFileError {
    #[error("{0} has no directory or no file name")]
    NoName(PathBuf),
    #[error("{0} is a symbolic link or not a directory: it is not followed")]
    NotADirectory(PathBuf),
    #[error("{0} is there and is not a regular file: it is not replaced")]
    NotAFile(PathBuf),
    #[error("cannot write {path}")]
    Io { path: PathBuf, source: io::Error },
}

/// Writes `bytes` to `path`: a temporary file in the same directory, synced, renamed over it, the
/// directory synced.
///
/// The directory must exist and must not be a symbolic link, nor may the target be one: a link
/// planted there must not lead the write elsewhere.
pub fn atomic_write(path: &Path, bytes: &[u8]) -> Result<(), WriteFileError> {
    let (Some(directory), Some(_)) = (path.parent(), path.file_name()) else {
        return Err(WriteFileError::NoName(path.into()));
    };
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let failed = |source| WriteFileError::Io {
        path: path.into(),
        source,
    };
    if !std::fs::symlink_metadata(directory)
        .map_err(failed)?
        .is_dir()
    {
        return Err(WriteFileError::NotADirectory(directory.into()));
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => return Err(WriteFileError::NotAFile(path.into())),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    replace(directory, path, bytes).map_err(failed)
}

/// The flag with which a link is not opened: one that was planted must lead nowhere.
pub(crate) fn nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).expect("open flags are small")
}

/// Makes a directory for its owner alone, if it is not there. A link to one is refused.
pub(crate) fn create_directory(path: &Path) -> Result<(), WriteFileError> {
    let failed = |source| WriteFileError::Io {
        path: path.to_owned(),
        source,
    };
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(WriteFileError::NotADirectory(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match DirBuilder::new().mode(0o700).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
                Ok(()) | Err(_) => Ok(()),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

/// Waits for other processes that change the file at `path`, and keeps them out until the returned
/// file is dropped. The lock is a file beside it: `path` itself is replaced by every write.
pub fn lock_beside(path: &Path) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&name)?;
    file.lock()?;
    Ok(file)
}

fn replace(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (temporary, file) = create_temporary(directory)?;
    let temporary = Temporary {
        path: temporary,
        file,
    };
    (&temporary.file).write_all(bytes)?;
    temporary.file.sync_all()?;
    crash::point("file: after the temporary file");
    std::fs::rename(&temporary.path, path)?;
    crash::point("file: after the rename");
    wait_for_room_blocking(|| File::open(directory))?.sync_all()
}

/// A file whose name no other process knows; removed unless it was renamed.
struct Temporary {
    path: PathBuf,
    file: File,
}

/// Makes a file that is to be renamed, under a name that no other process knows. What was computed
/// is not thrown away because no descriptor is free at this moment.
pub(crate) fn create_temporary(directory: &Path) -> io::Result<(PathBuf, File)> {
    let random = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
    let path = directory.join(format!(".tmp-{random:016x}"));
    // `create_new` is O_EXCL: it fails on anything that is there already, also on a link.
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let file = wait_for_room_blocking(|| options.open(&path))?;
    Ok((path, file))
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After the rename there is nothing under this name, and that is fine.
        drop(std::fs::remove_file(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.json");
        atomic_write(&path, b"one").unwrap();
        atomic_write(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("victim");
        std::fs::write(&victim, "untouched").unwrap();
        let link = directory.path().join("link");
        symlink(&victim, &link).unwrap();
        assert!(matches!(
            atomic_write(&link, b"x"),
            Err(WriteFileError::NotAFile(_))
        ));
        let linked_directory = directory.path().join("linked");
        symlink(outside.path(), &linked_directory).unwrap();
        let through = linked_directory.join("victim");
        assert!(matches!(
            atomic_write(&through, b"x"),
            Err(WriteFileError::NotADirectory(_))
        ));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("taken")).unwrap();
        assert!(atomic_write(&directory.path().join("taken"), b"x").is_err());
        assert!(atomic_write(&directory.path().join("absent/file"), b"x").is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
