//! The files that calls would write, as they are now, for the approver.
//!
//! Paths are walked as the file tools walk them: what is compared is what would be written.

use super::workspace::{PathFault, Place, Workspace};
use planwright_core::briefing::{CurrentContent, CurrentFile};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

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
    let place = match (workspace.locate(path), without_detours(path)) {
        (Ok(place), _) => place,
        // An earlier step may make the folder that the path takes a detour through.
        (Err(PathFault::Missing), Some(direct)) => return read_current_file(workspace, &direct),
        (Err(fault), _) => {
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

/// Returns where a path with `..` leads to once its folders are there; nothing for another path.
fn without_detours(path: &str) -> Option<String> {
    let mut direct = PathBuf::new();
    let mut has_detour = false;
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => {
                has_detour = true;
                if !direct.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => direct.push(part),
        }
    }
    let direct = direct.into_os_string().into_string().ok()?;
    (has_detour && !direct.is_empty()).then_some(direct)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detour_through_a_folder_that_is_not_there_yet_hides_no_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Makefile"), "all:\n").unwrap();
        let read = |path: &str| {
            let mut files = read_current_files(folder.path(), vec![path.to_owned()]);
            files.remove(path).unwrap()
        };
        let overwritten = CurrentFile {
            resolved: Some("Makefile".to_owned()),
            content: CurrentContent::Text("all:\n".to_owned()),
        };
        assert_eq!(read("notes/../Makefile"), overwritten);
        assert_eq!(read("a/b/../.././Makefile"), overwritten);
        assert_eq!(read("notes/../other").content, CurrentContent::Missing);
        assert_eq!(read("notes/other").content, CurrentContent::Missing);
        let outside = read("notes/../../Makefile").content;
        assert!(matches!(
            outside,
            CurrentContent::Missing | CurrentContent::Unreadable(_)
        ));
    }
}
