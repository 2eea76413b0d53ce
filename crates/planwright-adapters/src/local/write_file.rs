//! Writes a file whole or not at all.

use super::server::SERVER;
use super::workspace::{PathFault, Place, Workspace, sync_dir};
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::port::{CallError, Outcome};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write as _;

pub(super) const NAME: &str = "write_file";

pub(super) const MAX_CONTENT_BYTES: usize = 64 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    path: String,
    content: Value,
}

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition::new(
        SERVER,
        NAME,
        "Writes a file in the workspace, replacing what was there, and makes missing directories. A string is written as \
         it is, any other value as indented JSON. A reader sees the old content or the new, never a part.",
        input_schema(),
    )
    .with_output(output_schema())
    .with_annotations(Annotations {
        read_only_hint: Some(false),
        destructive_hint: Some(true),
        idempotent_hint: Some(true),
        open_world_hint: Some(false),
    })
}

/// The arguments of a tool that writes a file.
pub(super) fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "minLength": 1, "description": "Relative to the workspace." },
            "content": { "description": "A string, or any JSON value." },
        },
        "required": ["path", "content"],
        "additionalProperties": false,
    })
}

/// The result of a tool that wrote a file.
pub(super) fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": "Relative to the workspace, without links." },
            "bytes": { "type": "integer", "minimum": 0, "description": "How many bytes were written." },
        },
        "required": ["path", "bytes"],
        "additionalProperties": false,
    })
}

pub(super) fn run(workspace: &Workspace, args: Args) -> Outcome {
    let text = text_of(args.content)?;
    write(workspace, &args.path, text.as_bytes()).map_err(|fault| fault.at(&args.path))
}

/// The bytes a content value stands for.
pub(super) fn text_of(content: Value) -> Result<String, CallError> {
    let text = match content {
        Value::String(text) => text,
        other => format!("{other:#}\n"),
    };
    if text.len() > MAX_CONTENT_BYTES {
        return Err(PathFault::TooLarge(MAX_CONTENT_BYTES as u64).refused_at("content"));
    }
    Ok(text)
}

fn write(workspace: &Workspace, path: &str, bytes: &[u8]) -> Result<Value, PathFault> {
    let place = workspace.locate_for_writing(path)?;
    let mode = mode_of_the_old(&place)?;
    let (draft, mut file) = Draft::create(&place)?;
    file.write_all(bytes)?;
    if let Some(mode) = mode {
        fchmod(&file, mode)?;
    }
    file.sync_all()?;
    draft.publish()?;
    Ok(json!({ "path": place.path().to_string_lossy(), "bytes": bytes.len() }))
}

/// The permissions of the file about to be replaced, so that a script stays executable. Only a
/// regular file is replaced.
fn mode_of_the_old(place: &Place) -> Result<Option<Mode>, PathFault> {
    match statat(place.dir(), place.file_name()?, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            Ok(Some(Mode::from_raw_mode(stat.st_mode & 0o777)))
        }
        Ok(_) => Err(PathFault::NotAFile),
        Err(Errno::NOENT) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// The new content beside the old, until it takes its place. It removes itself if that does not
/// happen.
struct Draft<'p> {
    place: &'p Place,
    name: String,
    published: bool,
}

impl<'p> Draft<'p> {
    fn create(place: &'p Place) -> Result<(Self, File), PathFault> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| PathFault::Io(Errno::IO))?;
        let name = format!(".planwright-{:016x}.tmp", u64::from_ne_bytes(random));
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(
            place.dir(),
            name.as_str(),
            flags,
            Mode::from_raw_mode(0o666),
        )?;
        Ok((
            Self {
                place,
                name,
                published: false,
            },
            file.into(),
        ))
    }

    /// A rename replaces a link rather than following it, so nothing that appears under the name
    /// meanwhile redirects it.
    fn publish(mut self) -> Result<(), PathFault> {
        renameat(
            self.place.dir(),
            self.name.as_str(),
            self.place.dir(),
            self.place.file_name()?,
        )?;
        self.published = true;
        Ok(sync_dir(self.place.dir())?)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.published
            && let Err(error) = unlinkat(self.place.dir(), self.name.as_str(), AtFlags::empty())
        {
            tracing::warn!(%error, draft = self.name, "a draft could not be removed");
        }
    }
}
