//! The planner's view of the workspace: names of files, never what is in them.

use super::budget::estimate_tokens;
use super::quote::{fence_text, quote_text};
use std::fmt::Write as _;

/// The workspace as it was found. The adapter that reads it bounds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceSnapshot {
    /// In the order of their paths.
    pub files: Vec<SnapshotFile>,
    /// There are more files than are listed.
    pub more: bool,
    /// The beginning of what the workspace says about itself, and the file that says it.
    pub readme: Option<(String, String)>,
}

/// A file of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Relative to the workspace.
    pub path: String,
    /// Size of the file.
    pub bytes: u64,
}

/// One name is cut after this many characters.
const MAX_PATH: usize = 200;

impl WorkspaceSnapshot {
    /// Returns whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.readme.is_none()
    }

    /// The section of the prompt, within so many tokens; nothing if there is nothing to tell.
    pub(super) fn write_section(&self, budget: usize) -> String {
        if self.is_empty() || budget < 50 {
            return String::new();
        }
        let mut text = "## Workspace\n\nFiles, with their sizes in bytes:\n".to_owned();
        // The files come first; what they leave is for the description.
        let for_files = budget / 3 * 2;
        let mut left_out = 0;
        for file in &self.files {
            let line = format!("- {} {}\n", quote_text(&file.path, MAX_PATH), file.bytes);
            if left_out > 0 || estimate_tokens(&text) + estimate_tokens(&line) > for_files {
                left_out += 1;
            } else {
                text.push_str(&line);
            }
        }
        if left_out > 0 || self.more {
            let count = if self.more {
                "more".to_owned()
            } else {
                format!("{left_out} more")
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- and {count}");
        }
        let rest = budget.saturating_sub(estimate_tokens(&text) + 20) * 4;
        if let Some((name, readme)) = self.readme.as_ref().filter(|_| rest > 200) {
            let _ = writeln!(
                text,
                "\n{} begins:\n{}",
                quote_text(name, MAX_PATH),
                fence_within(readme, rest)
            );
        }
        text.push('\n');
        text
    }
}

/// Fenced, and no longer than so many bytes: characters may have several.
fn fence_within(text: &str, bytes: usize) -> String {
    let mut end = text.len().min(bytes.saturating_sub(20));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    fence_text(&text[..end], usize::MAX)
}
