//! Lists a directory.

use super::server::SERVER;
use super::workspace::{DIRECTORY, PathFault, Workspace, identity, is_closed};
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::port::{CallError, Outcome};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

pub(super) const NAME: &str = "list_dir";

/// Without a limit of the caller's own, more entries than this are an error: a list that silently
/// lacks some is worse.
const DEFAULT_MAX_ENTRIES: usize = 10_000;
/// The most entries looked at, regardless of the limit. A list can only be cut after it is sorted.
const MOST_ENTRIES: usize = 100_000;
/// Each level holds a directory open.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Args {
    path: Option<String>,
    #[serde(default)]
    recursive: bool,
    max_entries: Option<usize>,
}

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition::new(
        SERVER,
        NAME,
        "Lists a directory of the workspace, sorted by path. Links are listed, not followed. With `maxEntries` the list \
         ends there; without it a directory of more than 10000 entries is an error.",
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "default": ".", "description": "Relative to the workspace." },
                "recursive": { "type": "boolean", "default": false },
                "maxEntries": { "type": "integer", "minimum": 1, "maximum": MOST_ENTRIES },
            },
            "additionalProperties": false,
        }),
    )
    .with_output(json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "path": { "type": "string", "description": "Relative to the workspace." },
                "kind": { "enum": ["file", "directory", "link", "other"] },
                "bytes": { "type": ["integer", "null"], "description": "The size of a file, null for anything else." },
            },
            "required": ["name", "path", "kind", "bytes"],
            "additionalProperties": false,
        },
    }))
    .with_annotations(Annotations::read_only())
}

pub(super) fn run(workspace: &Workspace, args: &Args, stop: &CancellationToken) -> Outcome {
    let path = args.path.as_deref().unwrap_or(".");
    let place = workspace.locate(path).map_err(|fault| fault.at(path))?;
    let dir = place
        .directory()
        .and_then(|dir| Ok(Dir::read_from(dir)?))
        .map_err(|fault| fault.at(path))?;

    let mut list = List {
        workspace,
        recursive: args.recursive,
        stop,
        found: Vec::new(),
    };
    list.add(dir, place.path(), 0).map_err(|end| match end {
        End::Fault(fault) => fault.at(path),
        End::Stopped => CallError::Cancelled,
        End::TooMany => too_many(path, MOST_ENTRIES),
        End::TooDeep => CallError::failed(format!(
            "{path:?} has directories more than {MAX_DEPTH} levels deep"
        )),
    })?;

    let mut found = list.found;
    if args.max_entries.is_none() && found.len() > DEFAULT_MAX_ENTRIES {
        return Err(too_many(path, DEFAULT_MAX_ENTRIES));
    }
    found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    found.truncate(args.max_entries.unwrap_or(DEFAULT_MAX_ENTRIES));
    Ok(found.iter().map(Entry::to_value).collect())
}

fn too_many(path: &str, limit: usize) -> CallError {
    let message = format!(
        "{path:?} has more than {limit} entries; list a directory below it, or set maxEntries"
    );
    CallError::refused("too_many_entries", message)
}

struct Entry {
    path: PathBuf,
    kind: FileType,
    bytes: u64,
}

impl Entry {
    fn to_value(&self) -> Value {
        let (kind, bytes) = match self.kind {
            FileType::RegularFile => ("file", Some(self.bytes)),
            FileType::Directory => ("directory", None),
            FileType::Symlink => ("link", None),
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => ("other", None),
        };
        let name = self.path.file_name().map(OsStr::to_string_lossy);
        json!({ "name": name, "path": self.path.to_string_lossy(), "kind": kind, "bytes": bytes })
    }
}

/// The reason why a list was not finished.
enum End {
    Fault(PathFault),
    Stopped,
    TooMany,
    TooDeep,
}

impl From<Errno> for End {
    fn from(errno: Errno) -> Self {
        Self::Fault(errno.into())
    }
}

struct List<'a> {
    workspace: &'a Workspace,
    recursive: bool,
    stop: &'a CancellationToken,
    found: Vec<Entry>,
}

impl List<'_> {
    /// Adds the entries of one directory and, if asked to, of those below. Directories are entered
    /// by handle, so this stays in the workspace as the way to it did.
    fn add(&mut self, mut dir: Dir, path: &Path, depth: usize) -> Result<(), End> {
        let plans = self.workspace.plans();
        while let Some(entry) = dir.read() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." || path.as_os_str().is_empty() && is_closed(name) {
                continue;
            }
            if self.stop.is_cancelled() {
                return Err(End::Stopped);
            }
            if self.found.len() == MOST_ENTRIES {
                return Err(End::TooMany);
            }
            let stat = match statat(dir.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // It went away while the directory was read.
                Err(Errno::NOENT) => continue,
                Err(other) => return Err(other.into()),
            };
            if plans == Some(identity(&stat)) {
                continue;
            }
            let kind = FileType::from_raw_mode(stat.st_mode);
            let path = path.join(name);
            self.found.push(Entry {
                path: path.clone(),
                kind,
                bytes: u64::try_from(stat.st_size).unwrap_or(0),
            });
            if self.recursive && kind == FileType::Directory {
                if depth == MAX_DEPTH {
                    return Err(End::TooDeep);
                }
                match openat(
                    dir.fd()?,
                    entry.file_name(),
                    OFlags::RDONLY | DIRECTORY,
                    Mode::empty(),
                ) {
                    Ok(below) if plans == Some(identity(&fstat(&below)?)) => {}
                    Ok(below) => self.add(Dir::new(below)?, &path, depth + 1)?,
                    // It went away, or something else took its place, while the directory was read.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(other) => return Err(other.into()),
                }
            }
        }
        Ok(())
    }
}
