//! Files written for people and other programs from the journal: `.plans/<id>/plan.json`,
//! `plan.md`, `session.jsonl`, and `artifacts/` with what is too large for the plan.
//!
//! They are never read back as the truth. Each is replaced whole, unless it already says what it should: a draft
//! beside it, synced, and renamed over it. The directory is not synced, which would be a commit of the file system for each
//! command: after a power loss there is the new file or the one before it, and either is whole.

use super::atomic::{WriteFileError, create_directory, create_temporary};
use planwright_core::digest::Digest;
use planwright_core::id::PlanId;
use planwright_core::plan::is_stored_part_file;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A longer file is written to the disk while it is being made, whether or not it differs from the one in its place.
const MAX_IN_MEMORY_BYTES: usize = 256 << 10;

/// Of files and drafts: they are for their owner alone.
const MODE: u32 = 0o600;

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
        let failed = |source| WriteFileError::Io {
            path: target.clone(),
            source,
        };
        match std::fs::symlink_metadata(&target) {
            Ok(found) if !found.is_file() => return Err(WriteFileError::NotAFile(target)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(_) | Err(_) => {}
        }
        Ok(Draft {
            target,
            content: Content::InMemory(Vec::new()),
        })
    }

    /// Makes the drafts durable, all at the same time, and puts them in place. A file that stays as it is is not written
    /// again: most commands change one of a plan's three.
    pub fn publish(mut drafts: Vec<Draft>) -> Result<(), WriteFileError> {
        drafts.retain(|draft| !draft.is_in_place());
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
    target: PathBuf,
    content: Content,
}

#[derive(Debug)]
enum Content {
    InMemory(Vec<u8>),
    OnDisk(Temporary),
}

impl Draft {
    /// Returns whether the file has this content already.
    fn is_in_place(&self) -> bool {
        let Content::InMemory(bytes) = &self.content else {
            return false;
        };
        let is_alike = |found: &std::fs::Metadata| {
            found.is_file()
                && found.permissions().mode() & 0o777 == MODE
                && found.len() == bytes.len() as u64
        };
        std::fs::symlink_metadata(&self.target).is_ok_and(|found| is_alike(&found))
            && std::fs::read(&self.target).is_ok_and(|there| there == *bytes)
    }

    fn put(self) -> Result<(), WriteFileError> {
        let Self { target, content } = self;
        let put = match content {
            Content::OnDisk(temporary) => temporary.put(&target),
            Content::InMemory(bytes) => {
                Temporary::with(&target, &bytes).and_then(|temporary| temporary.put(&target))
            }
        };
        put.map_err(|source| WriteFileError::Io {
            path: target,
            source,
        })
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.content {
            Content::OnDisk(temporary) => return temporary.writer.write(bytes),
            Content::InMemory(content) if content.len() + bytes.len() <= MAX_IN_MEMORY_BYTES => {
                content.extend_from_slice(bytes);
            }
            Content::InMemory(content) => {
                let mut temporary = Temporary::with(&self.target, content)?;
                temporary.writer.write_all(bytes)?;
                self.content = Content::OnDisk(temporary);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.content {
            Content::OnDisk(temporary) => temporary.writer.flush(),
            Content::InMemory(_) => Ok(()),
        }
    }
}

/// A file beside the one that it is to replace. It is removed unless it was put in place.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    writer: BufWriter<File>,
}

impl Temporary {
    /// Makes one for `target` that begins with these bytes.
    fn with(target: &Path, bytes: &[u8]) -> io::Result<Self> {
        let directory = target.parent().unwrap_or_else(|| Path::new("."));
        let (path, file) = create_temporary(directory)?;
        let mut temporary = Self {
            path,
            writer: BufWriter::with_capacity(64 << 10, file),
        };
        temporary.writer.write_all(bytes)?;
        Ok(temporary)
    }

    fn put(mut self, target: &Path) -> io::Result<()> {
        self.writer.flush()?;
        self.writer.get_ref().sync_all()?;
        std::fs::rename(&self.path, target)?;
        // There is nothing under this name any more.
        self.path.clear();
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            drop(std::fs::remove_file(&self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, symlink};

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

    fn publish(projection: &Projection, content: &[u8]) -> u64 {
        let mut draft = projection.draft(Projection::PLAN_JSON).unwrap();
        draft.write_all(content).unwrap();
        Projection::publish(vec![draft]).unwrap();
        let path = projection.path(Projection::PLAN_JSON);
        assert_eq!(std::fs::read(&path).unwrap(), content);
        std::fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn a_file_that_stays_as_it_is_is_not_replaced() {
        let plans = tempfile::tempdir().unwrap();
        let projection = projection(plans.path());
        let first = publish(&projection, b"{}");
        assert_eq!(publish(&projection, b"{}"), first);
        assert_ne!(publish(&projection, b"[]"), first);
    }

    #[test]
    fn a_file_that_was_opened_to_others_is_replaced() {
        let plans = tempfile::tempdir().unwrap();
        let projection = projection(plans.path());
        let first = publish(&projection, b"{}");
        let path = projection.path(Projection::PLAN_JSON);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_ne!(publish(&projection, b"{}"), first);
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
    }

    #[test]
    fn a_long_file_is_written_to_the_disk_as_it_comes() {
        let plans = tempfile::tempdir().unwrap();
        let projection = projection(plans.path());
        let mut draft = projection.draft(Projection::SESSION).unwrap();
        let line = [b'x'; 1000];
        let lines = MAX_IN_MEMORY_BYTES / line.len() + 2;
        for _ in 0..lines {
            draft.write_all(&line).unwrap();
        }
        assert!(matches!(draft.content, Content::OnDisk(_)));
        Projection::publish(vec![draft]).unwrap();
        let written = std::fs::read(projection.path(Projection::SESSION)).unwrap();
        assert_eq!(written, line.repeat(lines));
        let files = std::fs::read_dir(plans.path().join("p")).unwrap();
        assert_eq!(files.count(), 1);
    }

    #[test]
    fn a_draft_that_is_not_published_leaves_nothing() {
        let plans = tempfile::tempdir().unwrap();
        let projection = projection(plans.path());
        let mut draft = projection.draft(Projection::PLAN_MD).unwrap();
        draft.write_all(&vec![0; MAX_IN_MEMORY_BYTES + 1]).unwrap();
        drop(draft);
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
