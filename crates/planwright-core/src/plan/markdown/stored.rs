//! Lines that name parts of the context kept in files: `[notes](artifacts/notes.json) sha256:…,
//! 61234 bytes`.
//!
//! The text of an artifact cannot look like one: its brackets are escaped.

use super::text::{escape_line, unescape};
use crate::artifact::ArtifactRef;
use crate::plan::stored_part_file;

/// The line for a stored part. Absent if a line cannot say its name.
pub(super) fn write_stored(name: &str, artifact: &ArtifactRef) -> Option<String> {
    let ArtifactRef { digest, bytes } = artifact;
    let line = format!(
        "[{}](artifacts/{}) {digest}, {bytes} bytes",
        escape_line(name),
        stored_part_file(name)
    );
    (read_stored(&line)? == (name.to_owned(), artifact.clone())).then_some(line)
}

/// The stored part a line names, as it is written.
pub(super) fn read_stored(raw: &str) -> Option<(String, ArtifactRef)> {
    let (name, rest) = raw.strip_prefix('[')?.split_once("](artifacts/")?;
    let (file, rest) = rest.split_once(") ")?;
    let (digest, bytes) = rest.strip_suffix(" bytes")?.split_once(", ")?;
    let name = unescape(name);
    let artifact = ArtifactRef {
        digest: digest.parse().ok()?,
        bytes: bytes.parse().ok()?,
    };
    (file == stored_part_file(&name)).then_some((name, artifact))
}
