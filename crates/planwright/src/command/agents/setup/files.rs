//! Files of other programs: read and replaced with care. A file is whole before and after, keeps its
//! mode, and is not replaced if another program changed it meanwhile.

use crate::exit::{Exit, Failure};
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

/// Larger files are not read.
const MAX_BYTES: u64 = 64 << 20;
/// The mode of files that were not there.
const NEW_MODE: u32 = 0o600;

/// A file as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) text: String,
    pub(super) mode: u32,
}

/// Returns where a file really is. A link may lead to another place in the same home or project,
/// and nowhere else.
pub(super) fn resolve(path: &Path, root: &Path) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| {
        Failure::usage(format!("{} cannot be used: {error}", path.display()))
    };
    let root = root.canonicalize().map_err(failed)?;
    let is_there = |path: &&Path| path.symlink_metadata().is_ok();
    let existing = path.ancestors().find(is_there).unwrap_or(path);
    // A link to nothing fails here, and so does a circle.
    let real = existing.canonicalize().map_err(failed)?;
    if !real.starts_with(&root) {
        return Err(Failure::refused(format!(
            "{} leads to {}, out of {}",
            path.display(),
            real.display(),
            root.display()
        ))
        .hint("change that file by hand: --print shows what belongs into it"));
    }
    let rest = path
        .strip_prefix(existing)
        .unwrap_or_else(|_| Path::new(""));
    Ok(if rest.as_os_str().is_empty() {
        real
    } else {
        real.join(rest)
    })
}

/// Reads a file; nothing if there is none.
pub(super) fn read(path: &Path) -> Result<Option<Found>, Failure> {
    let failed = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    };
    let metadata = file.metadata().map_err(|error| failed(error.to_string()))?;
    if !metadata.is_file() {
        return Err(failed("it is not a file".to_owned()));
    }
    if metadata.uid() != geteuid().as_raw() {
        return Err(failed("it belongs to another account".to_owned()));
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(failed(format!("it is larger than {} MiB", MAX_BYTES >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))?;
    let mode = metadata.mode() & 0o7777;
    Ok(Some(Found { text, mode }))
}

/// Replaces a file, unless it is not any more what it was. Returns the directories that were made
/// for it.
pub(super) fn replace(
    path: &Path,
    before: Option<&Found>,
    text: &str,
) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(
            Exit::Store,
            format!("cannot write {}: {error}", path.display()),
        )
    };
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    let missing: Vec<PathBuf> = directory
        .ancestors()
        .take_while(|above| !above.exists())
        .map(Path::to_owned)
        .collect();
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o755).create(directory);
    made.map_err(failed)?;
    let mode = before.map_or(NEW_MODE, |found| found.mode);
    let temporary = directory.join(format!(".planwright-setup-{}.tmp", std::process::id()));
    let written = write_new(&temporary, text, mode)
        .map_err(failed)
        .and_then(|()| check_unchanged(path, before))
        .and_then(|()| std::fs::rename(&temporary, path).map_err(failed));
    if let Err(failure) = written {
        drop(std::fs::remove_file(&temporary));
        return Err(failure);
    }
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(failed)?;
    Ok(missing)
}

/// Removes a file that is still what it was.
pub(super) fn remove(path: &Path, before: &Found) -> Result<(), Failure> {
    check_unchanged(path, Some(before))?;
    std::fs::remove_file(path).map_err(|error| {
        Failure::new(
            Exit::Store,
            format!("cannot remove {}: {error}", path.display()),
        )
    })
}

fn check_unchanged(path: &Path, before: Option<&Found>) -> Result<(), Failure> {
    if read(path)?.as_ref() == before {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "{} was changed by another program meanwhile, and is left as it is",
        path.display()
    ))
    .hint("repeat the command"))
}

fn write_new(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    // What an interrupted setup with the same process number left.
    drop(std::fs::remove_file(path));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(NEW_MODE)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_program_changed_meanwhile_is_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("settings.json");
        std::fs::write(&path, "{}").unwrap();
        let before = read(&path).unwrap();
        std::fs::write(&path, "{ \"theirs\": 1 }").unwrap();
        let failure = replace(&path, before.as_ref(), "{ \"ours\": 1 }").unwrap_err();
        assert!(failure.message.contains("changed by another program"));
        assert!(remove(&path, before.as_ref().unwrap()).is_err());
        // One that appeared is not overwritten either.
        assert!(replace(&path, None, "{}").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ \"theirs\": 1 }");
        let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing temporary is left");
    }
}
