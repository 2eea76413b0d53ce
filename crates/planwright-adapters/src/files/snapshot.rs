//! Looking around in the workspace for a planner: names and sizes of files, and how the workspace
//! describes itself.
//!
//! Files that git ignores, hidden files and files that look like a secret stay out, by name:
//! nothing but the description is opened.

use crate::local::read_current_files;
use ignore::{DirEntry, WalkBuilder};
use planwright_core::briefing::CurrentFile;
use planwright_core::planning::{SnapshotFile, WorkspaceSnapshot};
use planwright_engine::port::{BoxFuture, Surroundings};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Files that are listed, and entries that are looked at, before it is enough.
const MAX_FILES: usize = 2_000;
const MAX_ENTRIES: usize = 20_000;
const MAX_DEPTH: usize = 12;
/// A slow disk does not hold the planner up.
const MAX_TIME: Duration = Duration::from_secs(2);
const MAX_README: u64 = 8 << 10;

/// What the workspace says to agents.
const GUIDES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];

const READMES: [&str; 5] = [
    "README.md",
    "README",
    "README.txt",
    "readme.md",
    "Readme.md",
];

/// Beginnings, endings and parts of the names of files that hold secrets.
const SECRET_STARTS: [&str; 7] = [
    ".env",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials",
    "secrets",
];
const SECRET_ENDS: [&str; 10] = [
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ovpn",
    ".asc",
    ".gpg",
];

/// A directory that plans work in.
#[derive(Debug, Clone)]
pub struct WorkspaceSurroundings {
    root: PathBuf,
}

impl WorkspaceSurroundings {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
}

impl Surroundings for WorkspaceSurroundings {
    fn look(&self) -> BoxFuture<'static, WorkspaceSnapshot> {
        let root = self.root.clone();
        Box::pin(async move {
            let looked = tokio::task::spawn_blocking(move || look(&root)).await;
            looked.unwrap_or_default()
        })
    }

    fn current_files(
        &self,
        paths: Vec<String>,
    ) -> BoxFuture<'static, BTreeMap<String, CurrentFile>> {
        let root = self.root.clone();
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || read_current_files(&root, paths)).await;
            read.unwrap_or_default()
        })
    }
}

fn look(root: &Path) -> WorkspaceSnapshot {
    let begun = Instant::now();
    let mut snapshot = WorkspaceSnapshot {
        root: root
            .canonicalize()
            .ok()
            .and_then(|root| Some(root.to_str()?.to_owned())),
        ..WorkspaceSnapshot::default()
    };
    let walk = WalkBuilder::new(root)
        .require_git(false)
        .follow_links(false)
        .max_depth(Some(MAX_DEPTH))
        .sort_by_file_path(Path::cmp)
        .filter_entry(|entry| !is_secret(entry))
        .build();
    for (entry, seen) in walk.zip(1_usize..) {
        if snapshot.files.len() == MAX_FILES || seen > MAX_ENTRIES || begun.elapsed() > MAX_TIME {
            snapshot.more = true;
            break;
        }
        if let Some(file) = entry.ok().and_then(|entry| listed(root, &entry)) {
            snapshot.files.push(file);
        }
    }
    snapshot.readme = first_beginning(root, &READMES);
    snapshot.guide = first_beginning(root, &GUIDES);
    snapshot
}

/// The first of these files that there is, and how it begins.
fn first_beginning(root: &Path, names: &[&str]) -> Option<(String, String)> {
    let read = |name: &&str| Some(((*name).to_owned(), beginning(&root.join(name))?));
    names.iter().find_map(read)
}

fn listed(root: &Path, entry: &DirEntry) -> Option<SnapshotFile> {
    let data = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let path = entry
        .path()
        .strip_prefix(root)
        .ok()?
        .to_string_lossy()
        .into_owned();
    Some(SnapshotFile {
        path,
        bytes: data.len(),
    })
}

fn is_secret(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy().to_lowercase();
    SECRET_STARTS.iter().any(|start| name.starts_with(start))
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
}

/// The beginning of a file of the workspace. Not what a link leads to.
fn beginning(path: &Path) -> Option<String> {
    std::fs::symlink_metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(MAX_README)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_workspace_is_told_by_the_names_of_what_it_shows() {
        let place = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(".gitignore", "target/\n");
        for hidden in [
            ".env",
            ".env.local",
            "keys/server.pem",
            "id_rsa",
            "target/out.o",
            ".git/config",
            "credentials.json",
        ] {
            put(hidden, "hunter2");
        }
        put("src/main.rs", "fn main() {}");
        put("README.md", "# Hello");
        put("CLAUDE.md", "Run make test.");
        std::os::unix::fs::symlink("/etc/passwd", place.path().join("link")).unwrap();
        let snapshot = look(place.path());
        let paths: Vec<&str> = snapshot
            .files
            .iter()
            .map(|file| file.path.as_str())
            .collect();
        assert_eq!(paths, ["CLAUDE.md", "README.md", "src/main.rs"]);
        assert_eq!(snapshot.files[2].bytes, 12);
        assert_eq!(
            snapshot.readme,
            Some(("README.md".to_owned(), "# Hello".to_owned()))
        );
        assert_eq!(
            snapshot.guide,
            Some(("CLAUDE.md".to_owned(), "Run make test.".to_owned()))
        );
        assert!(!snapshot.more);
    }

    #[test]
    fn a_large_workspace_is_told_in_part() {
        let place = tempfile::tempdir().unwrap();
        for number in 0..=MAX_FILES {
            fs::write(place.path().join(format!("{number:05}")), "").unwrap();
        }
        let snapshot = look(place.path());
        assert_eq!((snapshot.files.len(), snapshot.more), (MAX_FILES, true));
        assert!(look(&place.path().join("nowhere")).is_empty());
    }
}
