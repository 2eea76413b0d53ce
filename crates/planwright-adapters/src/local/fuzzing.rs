//! A door for the fuzzer: paths as the tools of this process follow them, and nothing else.

use super::workspace::Workspace;
use std::io;
use std::path::{Path, PathBuf};

/// The paths of one workspace.
#[derive(Debug)]
pub struct Paths(Workspace);

impl Paths {
    /// Opens the workspace.
    pub fn open(directory: &Path) -> io::Result<Self> {
        Workspace::open(directory).map(Self)
    }

    /// Finds a place to read, and returns it as seen from the root of the workspace, without links.
    pub fn locate(&self, path: &str) -> Option<PathBuf> {
        let place = self.0.locate(path).ok()?;
        Some(place.path().to_owned())
    }
}
