//! Adds to the end of a file.

use super::server::SERVER;
use super::workspace::{PathFault, Workspace, sync_dir};
use super::write_file::{input_schema, output_schema, text_of};
use planwright_core::run::CallEffect;
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::port::{CallError, Outcome};
use rustix::fs::OFlags;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write as _};

pub(super) const NAME: &str = "append_file";

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
        "Appends to a file in the workspace, making it and missing directories if need be. A string is written as it is, \
         any other value as indented JSON. Calling it twice appends twice.",
        input_schema(),
    )
    .with_output(output_schema())
    .with_annotations(Annotations {
        read_only_hint: Some(false),
        destructive_hint: Some(false),
        idempotent_hint: Some(false),
        open_world_hint: Some(false),
    })
}

pub(super) fn run(workspace: &Workspace, args: Args) -> Outcome {
    let text = text_of(args.content)?;
    let opened = workspace.locate_for_writing(&args.path).and_then(|place| {
        let file = place.open_file(OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?;
        sync_dir(place.dir())?;
        Ok((place, file))
    });
    let (place, file) = opened.map_err(|fault: PathFault| fault.refused_at(&args.path))?;
    append(file, text.as_bytes(), &args.path)?;
    Ok(json!({ "path": place.path().to_string_lossy(), "bytes": text.len() }))
}

/// Writes once, so that appends of several writers do not mingle. From the first byte on, a failure
/// must not read as "nothing happened".
fn append(mut file: File, bytes: &[u8], path: &str) -> Result<(), CallError> {
    let written = loop {
        match file.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other.map_err(|error| PathFault::from(error).refused_at(path))?,
        }
    };
    if written < bytes.len() {
        return Err(CallError::Failed {
            code: "partial_write".into(),
            message: format!(
                "only {written} of {} bytes were appended to {path:?}",
                bytes.len()
            ),
            retryable: false,
            effect: CallEffect::Unknown,
        });
    }
    file.sync_all().map_err(|error| {
        CallError::Lost(format!(
            "{path:?} was appended to, but may not be on disk: {error}"
        ))
    })
}
