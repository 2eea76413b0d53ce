//! What results of tools looked like, remembered beside the store and sealed like it: for the tools
//! whose servers do not say what they return.

use crate::files::{SealedFolder, SealedFolderError};
use crate::vault::Cipher;
use planwright_core::tool::{KnownTool, SeenShape};
use planwright_engine::Redaction;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Texts longer than this are not looked into: reading them would take longer than it is worth.
const MAX_TEXT: usize = 256 << 10;
/// Tools that are remembered. Of further ones nothing is kept.
const MAX_TOOLS: usize = 2_000;
/// The bytes kept of one tool.
const MAX_BYTES: usize = 32 << 10;

/// The shapes of a workspace.
#[derive(Debug, Clone)]
pub struct SeenShapes {
    files: SealedFolder,
}

impl SeenShapes {
    /// Keeps them in this directory, which is made when needed.
    pub fn new(directory: impl Into<PathBuf>, cipher: Arc<Cipher>) -> Self {
        Self {
            files: SealedFolder::new(directory, cipher),
        }
    }

    /// Tells a tool what its results looked like in earlier processes.
    pub(super) fn recall(&self, tool: &KnownTool) {
        if tool.definition.output_schema.is_some() {
            return;
        }
        // What cannot be read is learnt again.
        let kept = self.files.load(&file_name(tool)).ok().flatten();
        let shape = kept.and_then(|kept| serde_json::from_slice::<SeenShape>(&kept).ok());
        if let Some(shape) = shape {
            tool.note_seen(Arc::new(shape));
        }
    }

    /// Learns from a result. It is kept if it says something that was not known.
    pub(super) fn learn(&self, tool: &KnownTool, result: &Value, redaction: &Redaction) {
        let is_long = result.as_str().is_some_and(|text| text.len() > MAX_TEXT);
        if tool.definition.output_schema.is_some() || is_long {
            return;
        }
        let redactor = redaction.redactor();
        let shape = SeenShape::of(result, &|key| !redactor.finds(key.as_bytes()));
        let before = tool.seen_shape();
        let after = match &before {
            Some(before) => SeenShape::clone(before).merge(shape),
            None => shape,
        };
        if before.is_some_and(|before| *before == after) {
            return;
        }
        tool.note_seen(Arc::new(after.clone()));
        let name = file_name(tool);
        let files = self.files.clone();
        // The call does not wait for it, and does not fail with it.
        tokio::task::spawn_blocking(move || {
            if let Err(error) = keep(&files, &name, after) {
                tracing::debug!(%error, "the shape of a result could not be kept");
            }
        });
    }
}

/// Adds a shape to what is kept: another call or process may have kept more meanwhile.
fn keep(files: &SealedFolder, name: &str, shape: SeenShape) -> Result<(), SealedFolderError> {
    static KEEPING: Mutex<()> = Mutex::new(());
    let _keeping = KEEPING.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = files.load(name)?;
    if kept.is_none() && files.count()? >= MAX_TOOLS {
        return Ok(());
    }
    let before = kept.and_then(|kept| serde_json::from_slice::<SeenShape>(&kept).ok());
    let all = match before {
        Some(before) => before.merge(shape),
        None => shape,
    };
    match serde_json::to_vec(&all) {
        Ok(text) if text.len() <= MAX_BYTES => files.save(name, &text),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn file_name(tool: &KnownTool) -> String {
    tool.digest().hex().chars().take(32).collect()
}
