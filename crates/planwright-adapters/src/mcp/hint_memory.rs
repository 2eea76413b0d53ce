//! What the tools of a server said about themselves when they were first seen.
//!
//! A tool that was asked about must not run unasked because its server says now that it only reads.
//! The file is the user's, outside every workspace: a clone must not bring its own memory.

use crate::files::atomic_write;
use planwright_core::digest::Digest;
use planwright_core::tool::{Annotations, ToolDefinition};
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Larger files are not read.
const MAX_BYTES: u64 = 4 << 20;

/// The hints of one server, by tool.
type Hints = BTreeMap<String, Annotations>;

/// Remembers hints, if there is a place for it.
#[derive(Debug)]
pub(super) struct HintMemory {
    path: Option<PathBuf>,
}

/// Returns the file with the hints of the server that is started or reached so.
pub fn hint_file(directory: &Path, origin: &Digest) -> PathBuf {
    directory.join(format!("{}.json", origin.to_string().replace(':', "-")))
}

impl HintMemory {
    pub(super) fn new(directory: Option<&Path>, origin: &Digest) -> Self {
        let path = directory.map(|directory| hint_file(directory, origin));
        Self { path }
    }

    /// Returns what is not believed of each of these tools. What cannot be read is doubted. Those
    /// that are new are remembered if their server said so itself (`learn`), and not if a file did.
    pub(super) fn compare(
        &self,
        definitions: &[ToolDefinition],
        learn: bool,
    ) -> BTreeMap<String, String> {
        let Some(path) = &self.path else {
            return BTreeMap::new();
        };
        let mut known = match read_hints(path) {
            Ok(known) => known,
            Err(error) => {
                let doubt = format!(
                    "what it said about itself before cannot be read ({}: {error})",
                    path.display()
                );
                let names = definitions.iter().map(|definition| definition.tool_name());
                return names.map(|name| (name.tool, doubt.clone())).collect();
            }
        };
        let before = known.clone();
        let mut doubts = BTreeMap::new();
        for definition in definitions {
            let name = definition.tool_name().tool;
            let now = &definition.annotations;
            match known.get(&name).and_then(|then| now.loosened_since(then)) {
                Some(change) => {
                    doubts.insert(name, change.to_owned());
                }
                None => {
                    known.insert(name, now.clone());
                }
            }
        }
        if learn
            && known != before
            && let Err(error) = write_hints(path, &known)
        {
            tracing::warn!(path = %path.display(), %error, "hints of tools could not be remembered");
        }
        doubts
    }
}

fn read_hints(path: &Path) -> io::Result<Hints> {
    match std::fs::metadata(path) {
        Ok(about) if about.len() > MAX_BYTES => return Err(ErrorKind::FileTooLarge.into()),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Hints::new()),
        Err(error) => return Err(error),
    }
    let bytes = std::fs::read(path)?;
    serde_json::from_slice(&bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

fn write_hints(path: &Path, hints: &Hints) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    let text = serde_json::to_vec_pretty(hints)?;
    atomic_write(path, &text).map_err(io::Error::other)
}
