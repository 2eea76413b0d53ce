//! The files that say which process works for which call, for the next owner of the run.
//!
//! A file is made before its process is started and removed after it was seen to end. Its name has
//! the run and the mark, which are enough to find what was started; the rest is written once it is
//! known. Nothing is synced: a file that is lost with the machine names processes that are lost
//! with it.

use super::children::WorkOf;
use super::table;
use planwright_core::id::{AttemptNo, RunId};
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Cannot stand in an id.
const SEPARATOR: char = '~';
/// A file is far smaller; another one is not ours.
const MAX_BYTES: u64 = 4096;
/// The number of old files that are looked at when the first child is started.
const SWEEP: usize = 256;

/// The directory of the files.
#[derive(Debug)]
pub(super) struct Records {
    directory: PathBuf,
    swept: Once,
}

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Written {
    pub(super) step: String,
    pub(super) attempt: AttemptNo,
    /// Changes with every start of the system. `None` where it cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) boot: Option<String>,
    /// The leader of the group, whose number is the group's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pid: Option<i32>,
    /// When the leader began, as the system counts. `None` where it cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) started: Option<u64>,
}

/// A file of an earlier process.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) mark: String,
    pub(super) written: Written,
    pub(super) path: PathBuf,
}

/// The file of a child that was started here.
#[derive(Debug)]
pub(super) struct Record {
    path: PathBuf,
    file: File,
    written: Written,
}

impl Records {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            swept: Once::new(),
        }
    }

    /// Makes the file of a child that is about to be started.
    pub(super) fn create(&self, mark: &str, work: &WorkOf) -> io::Result<Record> {
        let cannot = |error: io::Error| {
            let place = self.directory.display();
            io::Error::new(
                error.kind(),
                format!("it cannot be recorded in {place}: {error}"),
            )
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(cannot)?;
        self.swept.call_once(|| self.sweep());
        let path = self
            .directory
            .join(format!("{}{SEPARATOR}{mark}", work.run));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(cannot)?;
        let record = Record {
            path,
            file,
            written: Written {
                step: work.step.to_string(),
                attempt: work.attempt,
                boot: table::boot(),
                pid: None,
                started: None,
            },
        };
        if let Err(error) = record.write() {
            record.remove();
            return Err(cannot(error));
        }
        Ok(record)
    }

    /// Returns what earlier processes recorded for a run, oldest name first.
    pub(super) fn of_run(&self, run: &RunId) -> io::Result<Vec<Found>> {
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some((of, mark)) = name.and_then(|name| name.split_once(SEPARATOR))
                && of == run.as_str()
            {
                found.push(Found {
                    mark: mark.to_owned(),
                    written: read(&path),
                    path,
                });
            }
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// Removes files from before the last start of the system: none of their processes is left.
    fn sweep(&self) {
        let (Some(boot), Ok(entries)) = (table::boot(), std::fs::read_dir(&self.directory)) else {
            return;
        };
        for path in entries.flatten().map(|entry| entry.path()).take(SWEEP) {
            if read(&path).boot.is_some_and(|then| then != boot) {
                // One that stays is found again.
                drop(std::fs::remove_file(path));
            }
        }
    }
}

impl Record {
    /// Adds the number of the process. Without it the mark has to do.
    pub(super) fn note_leader(&mut self, leader: Pid) {
        let pid = leader.as_raw_nonzero().get();
        self.written.pid = Some(pid);
        self.written.started = table::read_start_time(pid);
        if let Err(error) = self.write() {
            tracing::warn!(%error, "the number of a process could not be recorded");
        }
    }

    /// Returns what another process would find.
    pub(super) fn into_found(self, mark: String) -> Found {
        Found {
            mark,
            written: self.written,
            path: self.path,
        }
    }

    pub(super) fn remove(self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "a record of a process stays behind");
        }
    }

    /// What is written only grows, so that a reader sees the earlier or the later state, or a torn
    /// one that says nothing.
    fn write(&self) -> io::Result<()> {
        let text = serde_json::to_vec(&self.written)?;
        self.file.write_all_at(&text, 0)
    }
}

/// A file that cannot be read says nothing: the mark in its name is still good.
fn read(path: &Path) -> Written {
    let small = std::fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
    let text = small.then(|| std::fs::read(path).ok()).flatten();
    text.and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default()
}
