//! Who holds the lock of a store: found in the kernel's list of locks.
//!
//! The list is read, and the files of the store are not opened for it: closing them again would
//! drop the locks that this process holds on them itself.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The byte of the file `-shm` that the writing process holds a lock on.
const WRITE_LOCK: u64 = 120;
const MAX_NAME_BYTES: usize = 64;

/// A process that holds the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    pub process: u32,
    /// The name of its program, if it can be told.
    pub program: Option<String>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process)?;
        match &self.program {
            Some(program) => write!(f, " ({program})"),
            None => Ok(()),
        }
    }
}

/// Finds another process that holds the write lock of the store at `path` now. Only Linux tells.
pub fn find_lock_holder(path: &Path) -> Option<LockHolder> {
    let mut shared = path.as_os_str().to_owned();
    shared.push("-shm");
    let inode = std::fs::metadata(shared).ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let process = locks
        .lines()
        .filter_map(|line| writer_of(line, inode))
        .find(|process| *process != std::process::id())?;
    Some(LockHolder {
        process,
        program: program_of(process),
    })
}

/// Reads a line such as `3: POSIX  ADVISORY  WRITE 4711 fd:01:131090 120 120`.
fn writer_of(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let kind = words.next()?;
    // `->` stands before one that waits for the lock above it.
    if !matches!(kind, "POSIX" | "OFDLCK") || words.nth(1)? != "WRITE" {
        return None;
    }
    let process = words.next()?.parse().ok()?;
    let file = words.next()?.rsplit(':').next()?;
    let first: u64 = words.next()?.parse().ok()?;
    let last = words.next()?;
    let covers = first <= WRITE_LOCK
        && (last == "EOF" || last.parse::<u64>().is_ok_and(|last| last >= WRITE_LOCK));
    (file.parse() == Ok(inode) && covers).then_some(process)
}

fn program_of(process: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    let name: String = name
        .trim_end()
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .take(MAX_NAME_BYTES)
        .collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whoever_writes_holds_the_lock() {
        let holds = |line| writer_of(line, 131_090);
        let lines = [
            ("3: POSIX  ADVISORY  WRITE 4711 fd:01:131090 120 120", true),
            ("3: POSIX  ADVISORY  WRITE 4711 fd:01:131090 0 EOF", true),
            ("3: POSIX  ADVISORY  READ 4711 fd:01:131090 120 120", false),
            (
                "3: -> POSIX  ADVISORY  WRITE 4711 fd:01:131090 120 120",
                false,
            ),
            ("3: POSIX  ADVISORY  WRITE 4711 fd:01:131090 124 127", false),
            ("3: POSIX  ADVISORY  WRITE 4711 fd:01:131091 120 120", false),
            ("3: FLOCK  ADVISORY  WRITE 4711 fd:01:131090 0 EOF", false),
            ("", false),
        ];
        for (line, writes) in lines {
            assert_eq!(holds(line).is_some(), writes, "{line}");
        }
    }
}
