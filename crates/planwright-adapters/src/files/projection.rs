//! Files written for people and other programs from the journal: `.plans/<id>/plan.json`,
//! `plan.md`, `session.jsonl`, and `artifacts/` with what is too large for the plan.
//!
//! They are never read back as the truth. Each is replaced whole: a draft beside it, synced, and
//! renamed over it. The directory is not synced, which would be a commit of the file system for each
//! command: after a power loss there is the new file or the one before it, and either is whole.

use super::atomic::{WriteFileError, create_directory};
use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::plan::is_stored_part_file;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The folder of archived plans.
const ARCHIVE: &str = "archive";

/// The directory of one plan's files.
#[derive(Debug, Clone)]
pub struct Projection {
    directory: PathBuf,
}

impl Projection {
    pub const PLAN_JSON: &str = "plan.json";
    pub const PLAN_MD: &str = "plan.md";
    pub const SESSION: &str = "session.jsonl";
    const ARTIFACTS: &str = "artifacts";

    /// The files of `plan` below `plans`. An id that means something else there has none.
    pub fn of(plans: &Path, plan: &PlanId) -> Option<Self> {
        (!plan.is_reserved()).then(|| Self {
            directory: plans.join(plan.as_str()),
        })
    }

    /// The files of an archived plan: as [`Projection::of`], below `plans/archive`.
    pub fn of_archived(plans: &Path, plan: &PlanId) -> Option<Self> {
        let kept = Self::of(plans, plan)?;
        let archive = plans.join(ARCHIVE);
        Some(Self {
            directory: archive.join(kept.directory.file_name()?),
        })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Begins a file. Nothing is visible under its name before [`Projection::publish`].
    pub fn draft(&self, name: &'static str) -> Result<Draft, WriteFileError> {
        create_plan_directory(&self.directory)?;
        Self::draft_of(self.path(name))
    }

    /// Begins the file of a stored part of the plan's context, unless it is there already.
    pub fn draft_stored(
        &self,
        file: &str,
        digest: &Digest,
    ) -> Result<Option<Draft>, WriteFileError> {
        if !is_stored_part_file(file) {
            return Err(WriteFileError::NoName(file.into()));
        }
        let directory = self.path(Self::ARTIFACTS);
        let target = directory.join(file);
        create_plan_directory(&self.directory)?;
        create_directory(&directory)?;
        let is_there = std::fs::symlink_metadata(&target).is_ok_and(|found| found.is_file())
            && std::fs::read(&target).is_ok_and(|bytes| Digest::of_bytes(&bytes) == *digest);
        if is_there {
            Ok(None)
        } else {
            Self::draft_of(target).map(Some)
        }
    }

    fn draft_of(target: PathBuf) -> Result<Draft, WriteFileError> {
        let directory = target.parent().unwrap_or_else(|| Path::new("."));
        let failed = |source| WriteFileError::Io {
            path: target.clone(),
            source,
        };
        match std::fs::symlink_metadata(&target) {
            Ok(found) if !found.is_file() => return Err(WriteFileError::NotAFile(target)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(_) | Err(_) => {}
        }
        let random =
            getrandom::u64().map_err(|error| failed(io::Error::other(error.to_string())))?;
        let path = directory.join(format!(".tmp-{random:016x}"));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        Ok(Draft {
            path,
            target,
            writer: BufWriter::with_capacity(64 << 10, file),
        })
    }

    /// Makes the drafts durable, all at the same time, and puts them in place.
    pub fn publish(mut drafts: Vec<Draft>) -> Result<(), WriteFileError> {
        std::thread::scope(|scope| {
            let last = drafts.pop();
            let others: Vec<_> = drafts
                .into_iter()
                .map(|draft| scope.spawn(move || draft.put()))
                .collect();
            let last = last.map(Draft::put);
            let joined = others.into_iter().map(|thread| match thread.join() {
                Ok(put) => put,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.chain(last).collect()
        })
    }

    /// Removes the files, those of the `stored` parts among them, and the directory if nothing else
    /// is in it.
    pub fn remove(&self, stored: &BTreeSet<String>) -> io::Result<()> {
        if !is_directory(&self.directory) {
            return Ok(());
        }
        self.remove_stored(stored)?;
        for name in [Self::PLAN_JSON, Self::PLAN_MD, Self::SESSION] {
            remove_file(&self.path(name))?;
        }
        remove_directory(&self.directory)
    }

    /// Removes the files of stored parts that the plan no longer has.
    pub fn remove_stored(&self, stored: &BTreeSet<String>) -> io::Result<()> {
        let directory = self.path(Self::ARTIFACTS);
        if !is_directory(&directory) {
            return Ok(());
        }
        for file in stored.iter().filter(|file| is_stored_part_file(file)) {
            remove_file(&directory.join(file))?;
        }
        remove_directory(&directory)
    }
}

/// Returns whether it is a directory, and not a link to one.
fn is_directory(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn remove_directory(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir(path) {
        // Files that the projection did not write stay.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        done => done,
    }
}

/// Makes the directory of a plan, and the archive if it is in there.
fn create_plan_directory(path: &Path) -> Result<(), WriteFileError> {
    if let Some(archive) = path.parent().filter(|parent| parent.ends_with(ARCHIVE)) {
        create_directory(archive)?;
    }
    create_directory(path)
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
        let put = self
            .writer
            .flush()
            .and_then(|()| self.writer.get_ref().sync_all());
        let put = put.and_then(|()| std::fs::rename(&self.path, &self.target));
        put.map_err(|source| WriteFileError::Io {
            path: self.target.clone(),
            source,
        })
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
        Projection::publish(vec![one, two]).unwrap();
        assert_eq!(
            std::fs::read(projection.path(Projection::PLAN_JSON)).unwrap(),
            b"{}"
        );
        assert_eq!(
            std::fs::read_dir(plans.path().join("p")).unwrap().count(),
            2
        );
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(projection.path(Projection::SESSION)), 0o600);
        assert_eq!(mode(plans.path().join("p")), 0o700);
    }

    #[test]
    fn a_draft_that_is_not_published_leaves_nothing() {
        let plans = tempfile::tempdir().unwrap();
        let projection = projection(plans.path());
        drop(projection.draft(Projection::PLAN_MD).unwrap());
        assert_eq!(
            std::fs::read_dir(plans.path().join("p")).unwrap().count(),
            0
        );
    }

    #[test]
    fn links_are_not_followed() {
        let plans = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), plans.path().join("p")).unwrap();
        assert!(
            projection(plans.path())
                .draft(Projection::PLAN_JSON)
                .is_err()
        );
        projection(plans.path()).remove(&BTreeSet::new()).unwrap();
        assert!(outside.path().exists());
    }

    #[test]
    fn removing_spares_the_files_of_others() {
        let plans = tempfile::tempdir().unwrap();
        let projection = projection(plans.path());
        Projection::publish(vec![projection.draft(Projection::PLAN_JSON).unwrap()]).unwrap();
        std::fs::write(plans.path().join("p/notes.txt"), "mine").unwrap();
        projection.remove(&BTreeSet::new()).unwrap();
        assert_eq!(
            std::fs::read_dir(plans.path().join("p")).unwrap().count(),
            1
        );
    }

    #[test]
    fn stored_parts_are_beside_the_plan_and_go_with_it() {
        let plans = tempfile::tempdir().unwrap();
        let projection = projection(plans.path());
        let digest = Digest::of_bytes(b"[1]");
        let mut part = projection
            .draft_stored("notes.json", &digest)
            .unwrap()
            .unwrap();
        part.write_all(b"[1]").unwrap();
        Projection::publish(vec![part]).unwrap();
        assert!(
            projection
                .draft_stored("notes.json", &digest)
                .unwrap()
                .is_none()
        );
        assert!(projection.draft_stored("../notes.json", &digest).is_err());
        std::fs::write(plans.path().join("p/artifacts/mine.json"), "mine").unwrap();
        projection
            .remove(&["notes.json".to_owned()].into())
            .unwrap();
        assert_eq!(
            std::fs::read_dir(plans.path().join("p/artifacts"))
                .unwrap()
                .count(),
            1
        );
    }

    #[test]
    fn the_names_of_the_store_belong_to_no_plan() {
        for id in [
            "planwright.db",
            "planwright.db-artifacts",
            "Planwright.DB-wal",
            "archive",
            "prompts",
            "Logs",
        ] {
            assert!(
                Projection::of(Path::new("plans"), &id.parse().unwrap()).is_none(),
                "{id}"
            );
        }
    }
}
