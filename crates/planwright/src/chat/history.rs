//! What the person typed before, kept in their own directory for the next time.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

/// The most lines that are kept.
pub(super) const MAX_LINES: usize = 1_000;

/// A larger file is not one of ours.
const MAX_BYTES: u64 = 8 << 20;

/// The file of the history, which only its owner can read; nothing if there can be none.
pub(super) fn file() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    let directory = state.join("planwright");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .ok()?;
    let path = directory.join("chat_history");
    // Made before anything is written into it, so that no other user can read it meanwhile.
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&path)
        .ok()?;
    let metadata = file.metadata().ok()?;
    let own = metadata.is_file() && metadata.mode() & 0o077 == 0 && metadata.len() <= MAX_BYTES;
    own.then_some(path)
}
