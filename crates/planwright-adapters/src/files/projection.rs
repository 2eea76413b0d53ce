//! Files written for people and other programs from the journal: `.plans/<id>/plan.json`, `plan.md`, `session.jsonl`.
//!
//! They are never read back as the truth. Each is replaced whole: a draft beside it, synced, renamed over it, and the
//! directory synced once for all of them.

use super::atomic::WriteFileError;
use planwright_core::id::PlanId;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The names a plan's directory may not have: other things of ours are kept beside it.
const RESERVED: [&str; 2] = ["planwright.db", "archive"];

/// The directory of one plan's files.
#[derive(Debug, Clone)]
pub struct Projection {
    directory: PathBuf,
}

impl Projection {
    pub const PLAN_JSON: &str = "plan.json";
    pub const PLAN_MD: &str = "plan.md";
    pub const SESSION: &str = "session.jsonl";

    /// The files of `plan` below `plans`. An id that means something else there has none.
    pub fn of(plans: &Path, plan: &PlanId) -> Option<Self> {
        let name = plan.as_str().to_ascii_lowercase();
        let reserved = name.starts_with(RESERVED[0]) || name == RESERVED[1];
        (!reserved).then(|| Self { directory: plans.join(plan.as_str()) })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Begins a file. Nothing is visible under its name before [`Projection::publish`].
    pub fn draft(&self, name: &'static str) -> Result<Draft, WriteFileError> {
        self.create_directory()?;
        let target = self.path(name);
        let failed = |source| WriteFileError::Io { path: target.clone(), source };
        match std::fs::symlink_metadata(&target) {
            Ok(found) if !found.is_file() => return Err(WriteFileError::NotAFile(target)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(_) | Err(_) => {}
        }
        let random = getrandom::u64().map_err(|error| failed(io::Error::other(error.to_string())))?;
        let path = self.directory.join(format!(".tmp-{random:016x}"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        Ok(Draft { path, target, writer: BufWriter::with_capacity(64 << 10, file) })
    }

    /// Makes the drafts durable, all at the same time, and puts them in place.
    pub fn publish(&self, drafts: Vec<Draft>) -> Result<(), WriteFileError> {
        let synced: Vec<Result<(), WriteFileError>> = std::thread::scope(|scope| {
            let mut drafts = drafts;
            let last = drafts.pop();
            let others: Vec<_> = drafts.into_iter().map(|draft| scope.spawn(move || draft.put())).collect();
            let last = last.map(Draft::put);
            let joined = others.into_iter().map(|thread| match thread.join() {
                Ok(put) => put,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.chain(last).collect()
        });
        synced.into_iter().collect::<Result<(), _>>()?;
        let failed = |source| WriteFileError::Io { path: self.directory.clone(), source };
        File::open(&self.directory).and_then(|directory| directory.sync_all()).map_err(failed)
    }

    /// Removes the files, and the directory if nothing else is in it.
    pub fn remove(&self) -> io::Result<()> {
        if !std::fs::symlink_metadata(&self.directory).is_ok_and(|found| found.is_dir()) {
            return Ok(());
        }
        for name in [Self::PLAN_JSON, Self::PLAN_MD, Self::SESSION] {
            match std::fs::remove_file(self.path(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        match std::fs::remove_dir(&self.directory) {
            // Somebody else's files stay.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            done => done,
        }
    }

    fn create_directory(&self) -> Result<(), WriteFileError> {
        let failed = |source| WriteFileError::Io { path: self.directory.clone(), source };
        match std::fs::symlink_metadata(&self.directory) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(WriteFileError::NotADirectory(self.directory.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match DirBuilder::new().mode(0o700).create(&self.directory) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
                    Ok(()) | Err(_) => Ok(()),
                }
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// A file that is being written. Dropped without being published, it leaves nothing behind.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    target: PathBuf,
    writer: BufWriter<File>,
}

impl Draft {
    fn put(mut self) -> Result<(), WriteFileError> {
        let put = self.writer.flush().and_then(|()| self.writer.get_ref().sync_all());
        let put = put.and_then(|()| std::fs::rename(&self.path, &self.target));
        put.map_err(|source| WriteFileError::Io { path: self.target.clone(), source })
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After the rename there is nothing under this name, and that is fine.
        drop(std::fs::remove_file(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn projection(plans: &Path) -> Projection {
        Projection::of(plans, &"p".parse().unwrap()).unwrap()
    }

    #[test]
    fn files_appear_whole_and_for_their_owner_only() {
        let plans = tempfile::tempdir().unwrap();
        let projection = projection(plans.path());
        let mut one = projection.draft(Projection::PLAN_JSON).unwrap();
        one.write_all(b"{}").unwrap();
        let mut two = projection.draft(Projection::SESSION).unwrap();
        two.write_all(b"line\n").unwrap();
        assert!(!projection.path(Projection::PLAN_JSON).exists());
        projection.publish(vec![one, two]).unwrap();
        assert_eq!(std::fs::read(projection.path(Projection::PLAN_JSON)).unwrap(), b"{}");
        assert_eq!(std::fs::read_dir(plans.path().join("p")).unwrap().count(), 2);
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(projection.path(Projection::SESSION)), 0o600);
        assert_eq!(mode(plans.path().join("p")), 0o700);
    }

    #[test]
    fn a_draft_that_is_not_published_leaves_nothing() {
        let plans = tempfile::tempdir().unwrap();
        let projection = projection(plans.path());
        drop(projection.draft(Projection::PLAN_MD).unwrap());
        assert_eq!(std::fs::read_dir(plans.path().join("p")).unwrap().count(), 0);
    }

    #[test]
    fn links_are_not_followed() {
        let (plans, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), plans.path().join("p")).unwrap();
        assert!(projection(plans.path()).draft(Projection::PLAN_JSON).is_err());
        projection(plans.path()).remove().unwrap();
        assert!(outside.path().exists());
    }

    #[test]
    fn removing_spares_the_files_of_others() {
        let plans = tempfile::tempdir().unwrap();
        let projection = projection(plans.path());
        projection.publish(vec![projection.draft(Projection::PLAN_JSON).unwrap()]).unwrap();
        std::fs::write(plans.path().join("p/notes.txt"), "mine").unwrap();
        projection.remove().unwrap();
        assert_eq!(std::fs::read_dir(plans.path().join("p")).unwrap().count(), 1);
    }

    #[test]
    fn the_names_of_the_store_belong_to_no_plan() {
        for id in ["planwright.db", "planwright.db-artifacts", "Planwright.DB-wal", "archive"] {
            assert!(Projection::of(Path::new("plans"), &id.parse().unwrap()).is_none(), "{id}");
        }
    }
}
