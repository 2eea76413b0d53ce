//! Searches the text of the workspace, line by line, without what `.gitignore` leaves out.

use super::server::SERVER;
use super::workspace::{PathFault, Workspace, is_closed};
use ignore::{DirEntry, WalkBuilder};
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::port::{CallError, Outcome};
use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::Read as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

pub(super) const NAME: &str = "search_code";

const DEFAULT_MAX_MATCHES: usize = 200;
const MOST_MATCHES: usize = 10_000;
const MAX_QUERY_BYTES: usize = 4096;
/// The most bytes a compiled pattern may take. The engine is linear in the text, so this is all
/// there is to bound.
const MAX_PATTERN_BYTES: usize = 1 << 20;
const MAX_FILE_BYTES: u64 = 16 << 20;
const MAX_FILES: usize = 200_000;
const MAX_LINE_CHARS: usize = 500;
/// A file with a NUL in its first part is taken for binary, as git does.
const BINARY_PROBE_BYTES: usize = 8000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Args {
    query: String,
    path: Option<String>,
    #[serde(default)]
    regex: bool,
    max_matches: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Match {
    path: String,
    line: usize,
    text: String,
}

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition::new(
        SERVER,
        NAME,
        "Finds the lines of text files in the workspace that contain the query, a literal text unless `regex` is true. \
         Leaves out binary files, `.git` and what `.gitignore` excludes.",
        json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "minLength": 1, "maxLength": MAX_QUERY_BYTES },
                "path": {
                    "type": "string", "default": ".",
                    "description": "A directory or file to search, relative to the workspace.",
                },
                "regex": { "type": "boolean", "default": false, "description": "Whether the query is a regular expression." },
                "maxMatches": {
                    "type": "integer", "minimum": 1, "maximum": MOST_MATCHES, "default": DEFAULT_MAX_MATCHES,
                },
            },
            "required": ["query"],
            "additionalProperties": false,
        }),
    )
    .with_output(json!({
        "type": "object",
        "properties": {
            "matches": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": { "type": "string", "description": "Relative to the workspace." },
                        "line": { "type": "integer", "minimum": 1 },
                        "text": { "type": "string", "description": "The line, cut after 500 characters." },
                    },
                    "required": ["path", "line", "text"],
                    "additionalProperties": false,
                },
            },
            "truncated": { "type": "boolean", "description": "Whether a limit kept something out." },
        },
        "required": ["matches", "truncated"],
        "additionalProperties": false,
    }))
    .with_annotations(Annotations::read_only())
}

pub(super) fn run(workspace: &Workspace, args: &Args, stop: &CancellationToken) -> Outcome {
    let pattern = compile(&args.query, args.regex)?;
    let path = args.path.as_deref().unwrap_or(".");
    let place = workspace.locate(path).map_err(|fault| fault.at(path))?;
    let limit = args
        .max_matches
        .unwrap_or(DEFAULT_MAX_MATCHES)
        .min(MOST_MATCHES);
    let mut search = Search {
        workspace,
        pattern,
        limit,
        matches: Vec::new(),
        truncated: false,
    };
    if place.is_dir() {
        search.directory(place.path(), stop)?;
    } else {
        // A file that is named is searched even if it is ignored, and its faults are the caller's.
        search.file(place.path()).map_err(|fault| fault.at(path))?;
    }
    Ok(json!({ "matches": search.matches, "truncated": search.truncated }))
}

fn compile(query: &str, regex: bool) -> Result<Regex, CallError> {
    let pattern = if regex {
        query.to_owned()
    } else {
        regex::escape(query)
    };
    RegexBuilder::new(&pattern)
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(8 * MAX_PATTERN_BYTES)
        .build()
        .map_err(|error| {
            let message = format!("the query is not a usable regular expression: {error}");
            CallError::refused("invalid_args", message)
        })
}

struct Search<'w> {
    workspace: &'w Workspace,
    pattern: Regex,
    limit: usize,
    matches: Vec<Match>,
    truncated: bool,
}

impl Search<'_> {
    /// Goes through the files below a directory in the order of their paths.
    ///
    /// The walk starts at the root even if only a part is wanted, so that the `.gitignore` files
    /// above that part count. It works on names; what it names is opened through the workspace, so
    /// a directory swapped for a link meanwhile leads nowhere.
    fn directory(&mut self, wanted: &Path, stop: &CancellationToken) -> Result<(), CallError> {
        let root = self.workspace.root().to_owned();
        let below = wanted.to_owned();
        let walk = WalkBuilder::new(&root)
            .hidden(false)
            .parents(false)
            .git_global(false)
            .require_git(false)
            .sort_by_file_path(Path::cmp)
            .filter_entry(move |entry| is_wanted(entry, &root, &below))
            .build();
        let files = walk
            .flatten()
            .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        for (count, entry) in files.enumerate() {
            if stop.is_cancelled() {
                return Err(CallError::Cancelled);
            }
            if count == MAX_FILES || self.truncated && self.matches.len() == self.limit {
                self.truncated = true;
                break;
            }
            let Ok(path) = entry.path().strip_prefix(self.workspace.root()) else {
                continue;
            };
            match self.file(path) {
                Ok(()) => {}
                Err(PathFault::TooLarge(_)) => self.truncated = true,
                Err(fault) => {
                    tracing::debug!(path = %path.display(), %fault, "a file was not searched");
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), PathFault> {
        let name = path.to_str().ok_or(PathFault::Unusable)?;
        let file = self.workspace.locate(name)?.open_file(OFlags::RDONLY)?;
        let mut bytes = Vec::new();
        let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        if read as u64 > MAX_FILE_BYTES {
            return Err(PathFault::TooLarge(MAX_FILE_BYTES));
        }
        if bytes.is_empty() || bytes.iter().take(BINARY_PROBE_BYTES).any(|byte| *byte == 0) {
            return Ok(());
        }
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !self.pattern.is_match(line) {
                continue;
            }
            if self.matches.len() == self.limit {
                self.truncated = true;
                break;
            }
            let text = String::from_utf8_lossy(line)
                .chars()
                .take(MAX_LINE_CHARS)
                .collect();
            self.matches.push(Match {
                path: name.to_owned(),
                line: index + 1,
                text,
            });
        }
        Ok(())
    }
}

/// Returns whether an entry is in the wanted part, or on the way to it.
fn is_wanted(entry: &DirEntry, root: &Path, wanted: &Path) -> bool {
    let Ok(path) = entry.path().strip_prefix(root) else {
        return false;
    };
    let closed = entry.depth() == 1 && is_closed(entry.file_name());
    !closed && entry.file_name() != ".git" && (path.starts_with(wanted) || wanted.starts_with(path))
}
