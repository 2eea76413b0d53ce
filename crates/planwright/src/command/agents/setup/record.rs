//! What a setup did, kept beside the user's own files until it is taken back.

use super::clients::{Client, Places, Scope};
use super::edit::Edit;
use super::files::{self, Found};
use crate::exit::{Exit, Failure};
use crate::trust::home;
use planwright_core::digest::Digest;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Everything that one setup changed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) files: Vec<RecordedFile>,
}

/// One file: what it was, what it became, and how.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RecordedFile {
    pub(super) path: PathBuf,
    /// Absent if there was no such file.
    pub(super) before: Option<String>,
    pub(super) after: Digest,
    pub(super) edits: Vec<Edit>,
    /// Directories that were made for it, the deepest first.
    #[serde(default)]
    pub(super) made: Vec<PathBuf>,
}

/// Where the record of a client lies.
pub(super) fn path(client: Client, places: &Places) -> Result<PathBuf, Failure> {
    let home = home().ok_or_else(|| {
        Failure::usage("there is no directory for your configuration")
            .hint("set HOME or XDG_CONFIG_HOME")
    })?;
    let name = match places.scope {
        Scope::User => format!("{}.json", client.as_str()),
        Scope::Project => {
            let project = places.project.to_string_lossy();
            let digest = Digest::of_bytes(project.as_bytes()).hex();
            format!("{}-{}.json", client.as_str(), &digest[..16])
        }
    };
    Ok(home.join("setup").join(name))
}

/// Reads a record; nothing if nothing was set up.
pub(super) fn read(path: &Path) -> Result<Option<(Record, Found)>, Failure> {
    let Some(found) = files::read(path)? else {
        return Ok(None);
    };
    let record = serde_json::from_str(&found.text).map_err(|error| {
        Failure::new(
            Exit::Store,
            format!("{}: the record is damaged: {error}", path.display()),
        )
        .hint("take the changes back by hand, and remove the record")
    })?;
    Ok(Some((record, found)))
}

/// Writes a record. It has the earlier contents of files, so it is for the user's eyes only.
pub(super) fn write(path: &Path, record: &Record, before: Option<&Found>) -> Result<(), Failure> {
    let text = serde_json::to_string(record)
        .map_err(|error| Failure::new(Exit::Store, error.to_string()))?;
    files::replace(path, before, &text).map(drop)
}
