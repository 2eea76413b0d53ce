//! What the tools of servers said about themselves when they were first seen: beside the trust in
//! their servers, outside every workspace.

use super::record::home;
use crate::exit::{Exit, Failure};
use planwright_adapters::mcp::{ServerSpec, hint_file};
use std::io::ErrorKind;
use std::path::PathBuf;

/// Returns the directory with a file per server.
pub(crate) fn hint_directory() -> Option<PathBuf> {
    home().map(|home| home.join("known-tools"))
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
