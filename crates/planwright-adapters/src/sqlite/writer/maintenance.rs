//! The work that is due after commits: a short log and a short heads file.

use super::Writer;
use crate::sqlite::fault::{describe, is_io_failure};
use crate::sqlite::log_room::LogRoom;
use crate::sqlite::open::checkpoint;
use planwright_core::journal::Head;
use rusqlite::Connection;
use std::time::Duration;

/// The log is copied into the main file when it may have this many pages, as SQLite itself does it.
const CHECKPOINT_PAGES: u64 = 1000;
/// A log larger than this is emptied before leaving, because the next one to open has to read all
/// of it.
const MAX_LOG_LEFT_BYTES: u64 = 1024 * 1024;
/// Room is made in the log for a process that has committed so many groups.
const GROUPS_BEFORE_ROOM: u32 = 32;
/// The number of groups committed between two looks at the size of the heads file.
const GROUPS_PER_LOOK: u32 = 64;

impl Writer {
    pub(super) fn is_maintenance_due(&mut self) -> bool {
        self.logged_pages >= CHECKPOINT_PAGES
            || self.is_log_room_wanted()
            || self.is_heads_file_long()
    }

    /// A short command leaves the log as it is.
    fn is_log_room_wanted(&self) -> bool {
        self.log_room.is_none() && self.groups_in_log >= GROUPS_BEFORE_ROOM
    }

    fn make_log_room(&mut self) {
        self.groups_in_log = 0;
        match LogRoom::make(&self.options.beside("-wal")) {
            Ok(room) => self.log_room = Some(room),
            Err(error) => tracing::debug!(%error, "there is no room made in the log"),
        }
    }

    /// Looks at the size of the heads file after every so many groups.
    fn is_heads_file_long(&mut self) -> bool {
        if self.groups < GROUPS_PER_LOOK {
            return false;
        }
        let bytes = self.heads.bytes();
        let long = bytes.is_ok_and(|bytes| bytes >= self.cut_heads_at);
        if !long {
            self.groups = 0;
        }
        long
    }

    /// Keeps the log and the heads file short, after the answers were given.
    pub(super) fn maintain(&mut self) {
        self.maintenance_asked = false;
        if self.fence.is_down() || self.belonging.foreign().is_some() {
            return;
        }
        if self.logged_pages >= CHECKPOINT_PAGES {
            self.logged_pages = 0;
            let result = checkpoint(&self.connection, "PASSIVE");
            self.note_checkpoint(result);
        }
        if self.is_heads_file_long() {
            self.groups = 0;
            self.cut_heads();
        }
        if self.is_log_room_wanted() {
            self.make_log_room();
        }
    }

    fn note_checkpoint(&mut self, result: Result<bool, rusqlite::Error>) -> bool {
        match result {
            Ok(complete) => complete,
            Err(error) if is_io_failure(&error) => {
                self.fence.take_down(&describe(&error));
                false
            }
            // Another connection reads or writes at this moment. The log grows until the next try.
            Err(_) => false,
        }
    }

    /// Empties the heads file once nothing depends on the log any more.
    fn cut_heads(&mut self) {
        let kept = self.note_losses().map_err(|error| describe(&error));
        let cut = kept.and_then(|()| self.try_cut_heads());
        if let Err(reason) = cut {
            tracing::debug!(reason, "the heads file stays");
        }
        let bytes = self.heads.bytes().unwrap_or_default();
        self.cut_heads_at = self
            .options
            .max_heads_bytes
            .max(bytes + self.options.max_heads_bytes / 4);
    }

    /// Broken promises must outlive the file: they go to a table first.
    fn note_losses(&self) -> Result<(), rusqlite::Error> {
        let promises = self.anchor.lost_heads(&self.connection)?;
        note_losses(&self.connection, &promises)
    }

    /// With the write lock held and the log empty, every promise made so far is kept by the main
    /// file, which was synced. Another process may still add the record of a commit that it made
    /// before: that promise is kept too.
    fn try_cut_heads(&mut self) -> Result<(), String> {
        let text = |error: rusqlite::Error| describe(&error);
        self.connection
            .busy_timeout(Duration::from_millis(100))
            .map_err(text)?;
        // The log is empty afterwards: there is room to be made again, and none while it is looked at.
        self.log_room = None;
        self.groups_in_log = 0;
        let result = checkpoint(&self.connection, "TRUNCATE");
        let complete = self.note_checkpoint(result);
        let begun = if complete {
            self.statement("BEGIN IMMEDIATE").map_err(text)
        } else {
            Err("busy".to_owned())
        };
        self.connection
            .busy_timeout(self.options.busy_timeout)
            .map_err(text)?;
        begun?;
        let cut = if self.log_bytes() == 0 {
            self.heads.clear().map_err(|error| error.to_string())
        } else {
            Err("another process wrote in between".to_owned())
        };
        self.statement("ROLLBACK").map_err(text)?;
        cut
    }

    pub(super) fn log_bytes(&self) -> u64 {
        std::fs::metadata(self.options.beside("-wal")).map_or(0, |log| log.len())
    }

    /// Leaves a short log behind, if that needs no waiting.
    pub(super) fn leave(&mut self) {
        self.log_room = None;
        if !self.fence.is_down()
            && self.wrote
            && self.log_bytes() > MAX_LOG_LEFT_BYTES
            && self.connection.busy_timeout(Duration::ZERO).is_ok()
            && let Err(error) = checkpoint(&self.connection, "TRUNCATE")
        {
            tracing::debug!(reason = describe(&error), "the log stays");
        }
    }
}

/// Notes promises that were broken, for as long as the database is there.
pub(in crate::sqlite) fn note_losses(
    connection: &Connection,
    promises: &[(String, Head)],
) -> Result<(), rusqlite::Error> {
    let sql = "INSERT INTO losses (stream, seq, hash) VALUES (?1, ?2, ?3)
               ON CONFLICT (stream) DO UPDATE SET seq = ?2, hash = ?3 WHERE seq < ?2";
    for (stream, head) in promises {
        let row = rusqlite::params![stream, head.seq, head.hash.as_bytes()];
        connection.execute(sql, row)?;
    }
    Ok(())
}
