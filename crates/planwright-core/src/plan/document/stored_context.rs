//! The parts of a plan's context that are too large to be kept in its document.
//!
//! They are moved to artifacts, and the document keeps their digests: a plan stays small wherever
//! it is shown, and nothing of what the planner knew is lost.

use crate::artifact::ArtifactRef;
use crate::digest::Digest;
use crate::json::parse_strict;
use crate::plan::Context;
use serde_json::Value;

const NOTES: &str = "notes";
const TOOL_OUTPUTS: &str = "toolOutputs/";

/// The reason a stored part cannot be put back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreContextError {
    /// The document has no reference to this part.
    #[error("the plan has no stored context `{0}`")]
    NotStored(String),
    /// The part is in the document and stored elsewhere.
    #[error("the context `{0}` is both in the plan and stored elsewhere")]
    Twice(String),
    /// The bytes have another digest than the reference.
    #[error("the stored context `{0}` has another digest: it was changed")]
    Changed(String),
    /// The bytes are not what the document needs there.
    #[error("the stored context `{0}` is not what the plan needs there")]
    Unreadable(String),
}

impl Context {
    /// Bytes of JSON a context may have before its largest parts are stored elsewhere.
    pub const MAX_INLINE_BYTES: usize = 50 << 10;

    /// The parts to store elsewhere, largest first, with the bytes to store. Empty if the context
    /// is small enough.
    pub fn oversized_parts(&self) -> Vec<(String, Vec<u8>)> {
        let mut left = bytes_of(&self).len();
        if left <= Self::MAX_INLINE_BYTES {
            return Vec::new();
        }
        let outputs = self.tool_outputs.iter();
        let mut parts: Vec<(String, Vec<u8>)> = outputs
            .map(|(name, value)| (format!("{TOOL_OUTPUTS}{name}"), bytes_of(value)))
            .collect();
        parts.sort_by(|(a_name, a), (b_name, b)| b.len().cmp(&a.len()).then(a_name.cmp(b_name)));
        // People read the notes, so they stay as long as they can.
        parts.extend(
            self.notes
                .as_ref()
                .map(|notes| (NOTES.to_owned(), bytes_of(notes))),
        );
        let mut oversized = Vec::new();
        for (name, bytes) in parts {
            if left <= Self::MAX_INLINE_BYTES {
                break;
            }
            left = left.saturating_sub(bytes.len());
            oversized.push((name, bytes));
        }
        oversized
    }

    /// Puts a reference where a part was.
    pub fn replace_with_reference(&mut self, name: &str, artifact: ArtifactRef) {
        match name.strip_prefix(TOOL_OUTPUTS) {
            Some(output) => drop(self.tool_outputs.shift_remove(output)),
            None => self.notes = None,
        }
        self.stored.insert(name.to_owned(), artifact);
    }

    /// Puts a part back where its reference is.
    pub fn restore(&mut self, name: &str, bytes: &[u8]) -> Result<(), RestoreContextError> {
        let Some(artifact) = self.stored.get(name) else {
            return Err(RestoreContextError::NotStored(name.to_owned()));
        };
        let is_here = match name.strip_prefix(TOOL_OUTPUTS) {
            Some(output) => self.tool_outputs.contains_key(output),
            None => self.notes.is_some(),
        };
        if is_here {
            return Err(RestoreContextError::Twice(name.to_owned()));
        }
        if Digest::of_bytes(bytes) != artifact.digest {
            return Err(RestoreContextError::Changed(name.to_owned()));
        }
        let unreadable = || RestoreContextError::Unreadable(name.to_owned());
        let value = parse_strict(bytes).map_err(|_| unreadable())?;
        match (name.strip_prefix(TOOL_OUTPUTS), value) {
            (Some(output), value) => {
                self.tool_outputs.insert(output.to_owned(), value);
            }
            (None, Value::String(notes)) if name == NOTES => self.notes = Some(notes),
            (None, _) => return Err(unreadable()),
        }
        self.stored.remove(name);
        Ok(())
    }
}

fn bytes_of(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("a context has only string keys")
}

/// The name of the file that holds a stored part. Two parts never share one, even on a file system
/// that ignores case.
pub fn stored_part_file(name: &str) -> String {
    let short = name.strip_prefix(TOOL_OUTPUTS).unwrap_or(name);
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let fits = !short.is_empty() && short.len() <= 64 && short.chars().all(is_plain);
    if name == NOTES || (fits && short != NOTES) {
        return format!("{short}.json");
    }
    let plain: String = short
        .to_ascii_lowercase()
        .chars()
        .filter(|c| is_plain(*c))
        .take(40)
        .collect();
    // A dot is in no plain name, so no other part has this name.
    format!(
        "{plain}.{}.json",
        &Digest::of_bytes(name.as_bytes()).hex()[..16]
    )
}

/// Returns whether a file beside a plan can hold a stored part.
pub fn is_stored_part_file(file: &str) -> bool {
    file.strip_suffix(".json").is_some_and(|name| {
        let plain =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.');
        name.len() <= 64 && name.chars().all(plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn context(value: Value) -> Context {
        serde_json::from_value(value).unwrap()
    }

    fn store(context: &mut Context) -> Vec<(String, Vec<u8>)> {
        let oversized = context.oversized_parts();
        for (name, bytes) in &oversized {
            let artifact = ArtifactRef {
                digest: Digest::of_bytes(bytes),
                bytes: bytes.len() as u64,
            };
            context.replace_with_reference(name, artifact);
        }
        oversized
    }

    #[test]
    fn a_small_context_stays() {
        assert!(
            context(json!({"toolOutputs": {"x": "y".repeat(50_000)}}))
                .oversized_parts()
                .is_empty()
        );
    }

    #[test]
    fn the_largest_outputs_go_first_and_all_come_back() {
        let whole = context(json!({"notes": "n".repeat(1_000),
            "toolOutputs": {"small": "s", "large": "x".repeat(30_000), "larger": ["y".repeat(40_000)]}}));
        let mut kept = whole.clone();
        let stored = store(&mut kept);
        assert_eq!(
            stored
                .iter()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>(),
            ["toolOutputs/larger"]
        );
        assert!(kept.oversized_parts().is_empty());
        for (name, bytes) in &stored {
            assert!(matches!(
                kept.restore(name, b"1"),
                Err(RestoreContextError::Changed(_))
            ));
            kept.restore(name, bytes).unwrap();
        }
        assert_eq!(kept, whole);
    }

    #[test]
    fn notes_go_when_nothing_else_helps() {
        let mut kept = context(json!({"notes": "n".repeat(60_000), "toolOutputs": {"notes": 1}}));
        let stored = store(&mut kept);
        assert_eq!(stored.len(), 2);
        assert_eq!((kept.notes.as_deref(), kept.tool_outputs.len()), (None, 0));
    }

    #[test]
    fn every_part_has_a_file_of_its_own() {
        let names = [
            "notes",
            "toolOutputs/notes",
            "toolOutputs/a",
            "toolOutputs/A",
            "toolOutputs/../x",
            "toolOutputs/",
            "toolOutputs/a.b",
            "toolOutputs/é",
        ];
        let files: BTreeSet<String> = names
            .iter()
            .map(|name| stored_part_file(name).to_lowercase())
            .collect();
        assert_eq!(files.len(), names.len());
        assert!(
            files.iter().all(|file| is_stored_part_file(file)),
            "{files:?}"
        );
        assert_eq!(stored_part_file("toolOutputs/odoo_read"), "odoo_read.json");
    }
}
