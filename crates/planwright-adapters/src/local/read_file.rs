//! Reads a text file.

use super::server::SERVER;
use super::workspace::{PathFault, Workspace};
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::port::Outcome;
use rustix::fs::OFlags;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Read as _;

pub(super) const NAME: &str = "read_file";

const DEFAULT_MAX_BYTES: u64 = 16 << 20;
const LARGEST_MAX_BYTES: u64 = 64 << 20;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Args {
    path: String,
    max_bytes: Option<u64>,
}

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition::new(
        SERVER,
        NAME,
        "Returns the text of a UTF-8 file in the workspace. A file larger than `maxBytes` is an error: it is never cut.",
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "minLength": 1, "description": "Relative to the workspace." },
                "maxBytes": {
                    "type": "integer", "minimum": 1, "maximum": LARGEST_MAX_BYTES, "default": DEFAULT_MAX_BYTES,
                },
            },
            "required": ["path"],
            "additionalProperties": false,
        }),
    )
    .with_output(json!({ "type": "string" }))
    .with_annotations(Annotations::read_only())
}

pub(super) fn run(workspace: &Workspace, args: &Args) -> Outcome {
    let limit = args
        .max_bytes
        .unwrap_or(DEFAULT_MAX_BYTES)
        .min(LARGEST_MAX_BYTES);
    read(workspace, &args.path, limit)
        .map(Value::String)
        .map_err(|fault| fault.at(&args.path))
}

fn read(workspace: &Workspace, path: &str, limit: u64) -> Result<String, PathFault> {
    let file = workspace.locate(path)?.open_file(OFlags::RDONLY)?;
    let size = file.metadata()?.len();
    if size > limit {
        return Err(PathFault::TooLarge(limit));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // The file may grow while it is read.
    let read = file.take(limit + 1).read_to_end(&mut bytes)?;
    if read as u64 > limit {
        return Err(PathFault::TooLarge(limit));
    }
    String::from_utf8(bytes).map_err(|_| PathFault::NotUtf8)
}
