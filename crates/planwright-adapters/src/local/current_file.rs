//! The files that calls would write, as they are now, for the approver.
//!
//! Paths are walked as the file tools walk them: what is compared is what would be written.

use super::workspace::{PathFault, Place, Workspace};
use planwright_core::briefing::{CurrentContent, CurrentFile};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

/// Larger files are not compared: their difference could not be read on a screen.
const MAX_BYTES: u64 = 1 << 20;

/// Reads the files at these paths. Without a workspace nothing can be said of any of them.
pub(crate) fn read_current_files(root: &Path, paths: Vec<String>) -> BTreeMap<String, CurrentFile> {
    let Ok(workspace) = Workspace::open(root) else {
        return BTreeMap::new();
    };
    let files = paths.into_iter().map(|path| {
        let file = read_current_file(&workspace, &path);
        (path, file)
    });
    files.collect()
}

fn read_current_file(workspace: &Workspace, path: &str) -> CurrentFile {
    let place = match workspace.locate(path) {
        Ok(place) => place,
        Err(fault) => {
            return CurrentFile {
                resolved: None,
                content: content_after(fault),
            };
        }
    };
    CurrentFile {
        resolved: Some(place.path().to_string_lossy().into_owned()),
        content: read_text(&place).map_or_else(content_after, CurrentContent::Text),
    }
}

fn read_text(place: &Place) -> Result<String, PathFault> {
    let file = place.open_file(OFlags::RDONLY)?;
    if file.metadata()?.len() > MAX_BYTES {
        return Err(PathFault::TooLarge(MAX_BYTES));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| PathFault::NotUtf8)
}

fn content_after(fault: PathFault) -> CurrentContent {
    match fault {
        PathFault::Missing => CurrentContent::Missing,
        PathFault::Unusable
        | PathFault::Outside
        | PathFault::Protected
        | PathFault::NotADirectory
        | PathFault::NotAFile
        | PathFault::TooManyLinks
        | PathFault::TooLarge(_)
        | PathFault::NotUtf8
        | PathFault::Io(_) => CurrentContent::Unreadable(format!("it {fault}")),
    }
}
