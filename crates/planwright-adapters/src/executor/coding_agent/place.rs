//! The folder of one attempt: the configuration that the agent reads, and where it starts. The
//! workspace is not, because what lies there (settings, hooks, instructions) would count for the
//! agent.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// What a process that was killed left behind is removed after this time.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// A folder that is removed with the attempt.
#[derive(Debug)]
pub(in crate::executor) struct AttemptPlace(TempDir);

impl AttemptPlace {
    /// Makes a folder that only this user can look into.
    pub(in crate::executor) fn make(places: &Path) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(places)?;
        remove_old(places);
        let folder = tempfile::Builder::new()
            .prefix("attempt-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(places)?;
        // Where a program looks for instructions or settings above the folder it is in, it stops at
        // the root of a repository.
        std::fs::create_dir(folder.path().join(".git"))?;
        Ok(Self(folder))
    }

    pub(in crate::executor) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(in crate::executor) fn write(&self, file: &str, text: &str) -> io::Result<()> {
        let path = self.path().join(file);
        if let Some(parent) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)?;
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(text.as_bytes())
    }
}

/// Removes what is older than any attempt. A folder that cannot be removed harms nothing.
fn remove_old(places: &Path) {
    let Ok(entries) = std::fs::read_dir(places) else {
        return;
    };
    for entry in entries.flatten() {
        let changed = entry.metadata().and_then(|about| about.modified());
        let age = changed
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_some_and(|age| age > KEPT) {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}
