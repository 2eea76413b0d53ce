//! Artifacts on their way into a call: as a file or as data, as the tool wants them. What is judged,
//! approved and journaled is their digest, which names exactly these bytes.

use super::run_loop::RunLoop;
use crate::port::{ArtifactError, ArtifactFile, Artifacts};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use planwright_core::digest::Digest;
use planwright_core::plan::StepIx;
use planwright_core::run::{StepError, StepErrorCode};
use planwright_core::tool::{ArtifactForm, KnownTool, is_artifact_reference};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The most bytes of one artifact that are put into a call.
const MAX_BYTES: u64 = 10 << 20;
/// The artifacts that one call may take.
const MAX_ARTIFACTS: usize = 32;

/// An argument that takes an artifact.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Place {
    pointer: String,
    digest: Digest,
    form: ArtifactForm,
}

impl RunLoop {
    /// Returns whether any argument of the step is an artifact.
    pub(super) fn takes_artifacts(&self, step: StepIx) -> bool {
        let written = &self.run.definition(step).args;
        written.values().any(has_artifact)
    }

    /// Puts the artifacts into the arguments. The files are there for as long as they are held.
    pub(super) async fn place_artifacts(
        &mut self,
        step: StepIx,
        tool: &KnownTool,
        args: Map<String, Value>,
    ) -> Result<(Map<String, Value>, Vec<ArtifactFile>), StepError> {
        let places = self.find_artifacts(step, tool, &args)?;
        let artifacts = Arc::clone(&self.context.ports.artifacts);
        put_artifacts(&*artifacts, &places, args).await
    }

    /// Finds the arguments that take artifacts.
    pub(super) fn find_artifacts(
        &self,
        step: StepIx,
        tool: &KnownTool,
        args: &Map<String, Value>,
    ) -> Result<Vec<Place>, StepError> {
        let written = self.run.definition(step).args.clone();
        let schema = &tool.definition.input_schema;
        let mut places = Vec::new();
        find_places(
            &Value::Object(written),
            &Value::Object(args.clone()),
            ("", String::new()),
            Some(schema),
            &mut places,
        );
        if places.len() > MAX_ARTIFACTS {
            let message = format!("a call takes at most {MAX_ARTIFACTS} artifacts");
            return Err(StepError::new(StepErrorCode::InvalidArgs, message));
        }
        Ok(places)
    }
}

/// Puts artifacts into the arguments that take them. The files are there for as long as they are held.
pub(crate) async fn put_artifacts(
    artifacts: &dyn Artifacts,
    places: &[Place],
    args: Map<String, Value>,
) -> Result<(Map<String, Value>, Vec<ArtifactFile>), StepError> {
    let mut args = Value::Object(args);
    let mut files = Vec::new();
    for place in places {
        let placed = placed(artifacts, place, &mut files)
            .await
            .map_err(|error| unusable(place, &error))?;
        if let Some(argument) = args.pointer_mut(&place.pointer) {
            *argument = Value::String(placed);
        }
    }
    let Value::Object(args) = args else {
        return Ok((Map::new(), files));
    };
    Ok((args, files))
}

async fn placed(
    artifacts: &dyn Artifacts,
    place: &Place,
    files: &mut Vec<ArtifactFile>,
) -> Result<String, ArtifactError> {
    let bytes = artifacts.get_named(place.digest, MAX_BYTES).await?;
    let (extension, kind) = kind_of(&bytes);
    Ok(match place.form {
        ArtifactForm::Base64 => BASE64.encode(&bytes),
        ArtifactForm::DataUrl => format!("data:{kind};base64,{}", BASE64.encode(&bytes)),
        ArtifactForm::Path | ArtifactForm::FileUrl => {
            let hex = place.digest.hex();
            let name = format!("{}.{extension}", hex.get(..16).unwrap_or(&hex));
            let file = artifacts.as_file(bytes, name).await?;
            let path = file.path.to_string_lossy().into_owned();
            files.push(file);
            if place.form == ArtifactForm::Path {
                path
            } else {
                format!("file://{path}")
            }
        }
    })
}

fn unusable(place: &Place, error: &ArtifactError) -> StepError {
    let message = format!("`{}` cannot be given the artifact: {error}", place.pointer);
    StepError::new(StepErrorCode::UnresolvedReference, message)
}

fn has_artifact(written: &Value) -> bool {
    match written {
        Value::String(text) => is_artifact_reference(text),
        Value::Array(items) => items.iter().any(has_artifact),
        Value::Object(fields) => fields.values().any(has_artifact),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Looks at the arguments as they were written and as they are: a digest that stands where the plan
/// refers to an artifact is one.
fn find_places(
    written: &Value,
    resolved: &Value,
    (name, pointer): (&str, String),
    schema: Option<&Value>,
    places: &mut Vec<Place>,
) {
    match (written, resolved) {
        (Value::String(text), Value::String(value)) if is_artifact_reference(text) => {
            if let Ok(digest) = value.parse() {
                let form = ArtifactForm::of_argument(name, schema);
                places.push(Place {
                    pointer,
                    digest,
                    form,
                });
            }
        }
        (Value::Array(written), Value::Array(resolved)) => {
            let schema = schema.and_then(|schema| schema.get("items"));
            for (index, (written, resolved)) in written.iter().zip(resolved).enumerate() {
                let at = (name, format!("{pointer}/{index}"));
                find_places(written, resolved, at, schema, places);
            }
        }
        (Value::Object(written), Value::Object(resolved)) => {
            let properties = schema.and_then(|schema| schema.get("properties"));
            for (key, written) in written {
                if let Some(resolved) = resolved.get(key) {
                    let escaped = key.replace('~', "~0").replace('/', "~1");
                    let at = (key.as_str(), format!("{pointer}/{escaped}"));
                    let schema = properties.and_then(|properties| properties.get(key));
                    find_places(written, resolved, at, schema, places);
                }
            }
        }
        _ => {}
    }
}

/// The ending of a file with these bytes, and their media type, by how they begin.
pub fn kind_of(bytes: &[u8]) -> (&'static str, &'static str) {
    let begins: [(&[u8], &str, &str); 10] = [
        (b"\x89PNG\r\n\x1a\n", "png", "image/png"),
        (b"\xff\xd8\xff", "jpg", "image/jpeg"),
        (b"GIF8", "gif", "image/gif"),
        (b"%PDF-", "pdf", "application/pdf"),
        (b"PK\x03\x04", "zip", "application/zip"),
        (b"OggS", "ogg", "audio/ogg"),
        (b"ID3", "mp3", "audio/mpeg"),
        (b"fLaC", "flac", "audio/flac"),
        (b"<svg", "svg", "image/svg+xml"),
        (b"\x1f\x8b", "gz", "application/gzip"),
    ];
    if bytes.starts_with(b"RIFF") {
        return match bytes.get(8..12) {
            Some(b"WEBP") => ("webp", "image/webp"),
            _ => ("wav", "audio/wav"),
        };
    }
    let found = begins.iter().find(|(begin, ..)| bytes.starts_with(begin));
    if let Some((_, extension, kind)) = found {
        return (extension, kind);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => {
            ("json", "application/json")
        }
        Ok(_) => ("txt", "text/plain"),
        Err(_) => ("bin", "application/octet-stream"),
    }
}
