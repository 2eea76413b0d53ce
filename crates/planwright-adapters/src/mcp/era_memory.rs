//! The era of a server, remembered for its next start, also by other processes.
//!
//! Finding it out costs the time of a server that ignores `server/discover`, and a second start of
//! a modern one that takes long to come up.

use super::stderr_log::make_log_folder;
use super::{Era, ServerSpec};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The era of a server, as far as it is known. The file is a cache: one that cannot be read or
/// written costs nothing but time.
#[derive(Debug)]
pub(super) struct EraMemory {
    path: PathBuf,
    /// The launch line the era is known of: another launch line may start another server.
    origin: String,
    known: Mutex<Option<Era>>,
}

impl EraMemory {
    pub(super) fn new(directory: &Path, spec: &ServerSpec) -> Self {
        let path = directory.join(format!("{}.era", spec.name));
        let origin = spec.origin().to_string();
        let known = std::fs::read_to_string(&path).ok().and_then(|text| {
            let (era, of) = text.trim().split_once(' ')?;
            [Era::Modern, Era::Earlier]
                .into_iter()
                .find(|known| known.to_string() == era && of == origin)
        });
        Self {
            path,
            origin,
            known: Mutex::new(known),
        }
    }

    pub(super) fn get(&self) -> Option<Era> {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn learn(&self, era: Era) {
        let before = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(era);
        if before != Some(era) {
            let written = self.path.parent().and_then(make_log_folder);
            let text = format!("{era} {}\n", self.origin);
            written
                .and_then(|()| crate::files::atomic_write(&self.path, text.as_bytes()).ok())
                .unwrap_or_default();
        }
    }

    pub(super) fn forget(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
        std::fs::remove_file(&self.path).unwrap_or_default();
    }
}
