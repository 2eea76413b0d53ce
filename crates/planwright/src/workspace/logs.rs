//! The logs of servers in `.plans/logs`, kept within a limit.

use planwright_engine::port::Removed;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A log that was written to this recently may belong to a server that runs.
const FRESH: Duration = Duration::from_hours(1);

/// Removes the oldest logs until all of them together are within the limit.
pub(crate) fn prune_logs(directory: &Path, limit: u64, dry_run: bool) -> io::Result<Removed> {
    let mut removed = Removed::default();
    // What came with a clone may be a link: nothing is removed where it leads.
    match std::fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(removed),
        Ok(found) if !found.is_dir() => return Ok(removed),
        Ok(_) => {}
        Err(error) => return Err(error),
    }
    let entries = std::fs::read_dir(directory)?;
    let mut logs = Vec::new();
    for entry in entries {
        let entry = entry?;
        let found = entry.metadata()?;
        if found.is_file() {
            logs.push((found.modified()?, found.len(), entry.path()));
        }
    }
    logs.sort();
    let mut total: u64 = logs.iter().map(|(_, bytes, _)| bytes).sum();
    let now = SystemTime::now();
    for (modified, bytes, path) in logs {
        let is_fresh = now.duration_since(modified).map_or(true, |age| age < FRESH);
        if total <= limit || is_fresh {
            break;
        }
        if !dry_run {
            std::fs::remove_file(&path)?;
        }
        total -= bytes;
        removed.files += 1;
        removed.bytes += bytes;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_logs_go_first_and_fresh_ones_stay() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, hours: u64| {
            let path = directory.path().join(name);
            std::fs::write(&path, [0; 100]).unwrap();
            let at = SystemTime::now() - Duration::from_hours(hours);
            std::fs::File::open(&path)
                .unwrap()
                .set_modified(at)
                .unwrap();
        };
        put("new.log", 0);
        put("old.log", 5);
        put("oldest.log", 9);
        let left = || std::fs::read_dir(directory.path()).unwrap().count();
        let removed = prune_logs(directory.path(), 250, true).unwrap();
        assert_eq!((removed.files, left()), (1, 3));
        let removed = prune_logs(directory.path(), 250, false).unwrap();
        assert_eq!((removed.files, removed.bytes, left()), (1, 100, 2));
        assert!(!directory.path().join("oldest.log").exists());
        prune_logs(directory.path(), 0, false).unwrap();
        assert!(
            directory.path().join("new.log").exists(),
            "it may be in use"
        );
        assert_eq!(left(), 1);
        let link = directory.path().join("link");
        let elsewhere = tempfile::tempdir().unwrap();
        let old = elsewhere.path().join("old");
        std::fs::write(&old, [0; 100]).unwrap();
        let ago = SystemTime::now() - Duration::from_hours(5);
        std::fs::File::open(&old)
            .unwrap()
            .set_modified(ago)
            .unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        let none = prune_logs(&link, 0, false).unwrap();
        assert_eq!((none, old.exists()), (Removed::default(), true));
        let none = prune_logs(&directory.path().join("none"), 0, false).unwrap();
        assert_eq!(none, Removed::default());
    }
}
