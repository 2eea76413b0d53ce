//! What the tools of servers said about themselves when they were first seen, and what servers
//! answered last: beside the trust in the servers, outside every workspace.

use super::ownership::is_users;
use super::record::{home, is_inside};
use crate::exit::{Exit, Failure};
use planwright_adapters::mcp::{ServerSpec, hint_file};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Returns the directory with a file per server.
pub(crate) fn hint_directory() -> Option<PathBuf> {
    home().map(|home| home.join("known-tools"))
}

/// Returns the directory with what servers answered. None if files of the workspace could get there,
/// or files of another account: then nothing is remembered.
pub(crate) fn answer_directory(workspace: &Path) -> Option<PathBuf> {
    let directory = home()?.join("seen-tools");
    let is_ours = match std::fs::metadata(&directory) {
        Ok(found) => found.is_dir() && is_users(&found),
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    (is_ours && !is_inside(&directory, workspace)).then_some(directory)
}

/// Forgets what the tools of a server said about themselves: from now on what they say next counts.
pub(crate) fn forget_hints(spec: &ServerSpec) -> Result<(), Failure> {
    let Some(directory) = hint_directory() else {
        return Ok(());
    };
    let path = hint_file(&directory, &spec.origin());
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::new(
            Exit::Store,
            format!("{}: {error}", path.display()),
        )),
        Ok(()) | Err(_) => Ok(()),
    }
}
