//! Room at the end of SQLite's log, for a process that commits often.
//!
//! A commit that makes the log longer also has to make its new length durable, which takes a disk a
//! third longer. So the log is made longer before it is needed, many pages at once and with zeros,
//! which SQLite takes for the end of the log. (Blocks that are only reserved would not help: the
//! first write to each has to be made durable in the same way.)

use crate::files::nofollow;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A short command makes fewer commits than this, and needs no room.
const MANY_COMMITS: u32 = 32;
const LEAST_ROOM: u64 = 128 * 1024;
const MOST_ROOM: u64 = 1024 * 1024;

#[derive(Debug)]
pub(super) struct LogRoom {
    path: PathBuf,
    commits: u32,
    log: Option<Log>,
    /// Without room the log works as well, only slower: after an error there is no second try.
    failed: bool,
}

#[derive(Debug)]
struct Log {
    file: File,
    /// When it was last looked at, with its room.
    length: u64,
}

impl LogRoom {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            commits: 0,
            log: None,
            failed: false,
        }
    }

    /// Makes room if the log has grown since the last look. The caller has begun a write
    /// transaction: nobody else writes to the log, or cuts it, meanwhile.
    pub(super) fn keep(&mut self) {
        self.commits = self.commits.saturating_add(1);
        if self.failed || self.commits < MANY_COMMITS {
            return;
        }
        if let Err(error) = self.try_keep() {
            tracing::debug!(%error, "the log gets no room");
            self.failed = true;
        }
    }

    fn try_keep(&mut self) -> io::Result<()> {
        let Some(log) = &mut self.log else {
            self.log = Some(Log::open(&self.path)?);
            return Ok(());
        };
        let found = log.file.metadata()?.len();
        if found > log.length {
            let room = (found / 2).clamp(LEAST_ROOM, MOST_ROOM);
            log.file.seek(SeekFrom::Start(found))?;
            io::copy(&mut io::repeat(0).take(room), &mut log.file)?;
            log.length = found + room;
        } else {
            log.length = found;
        }
        Ok(())
    }
}

impl Log {
    /// SQLite locks other files, so closing this one drops no lock of it.
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(nofollow())
            .open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file, length })
    }
}
