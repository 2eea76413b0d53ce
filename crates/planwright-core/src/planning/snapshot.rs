//! The planner's view of the workspace: names of files, never what is in them.

use super::budget::estimate_tokens;
use super::quote::{fence_text, quote_text};
use crate::tool::Keywords;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// The workspace as it was found. The adapter that reads it bounds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceSnapshot {
    /// The folder, with its whole path.
    pub root: Option<String>,
    /// In the order of their paths.
    pub files: Vec<SnapshotFile>,
    /// There are more files than are listed.
    pub more: bool,
    /// The beginning of what the workspace says about itself, and the file that says it.
    pub readme: Option<(String, String)>,
    /// The beginning of what it says to agents, and the file that says it.
    pub guide: Option<(String, String)>,
    /// The words of servers about their use, by their names.
    pub servers: Vec<(String, String)>,
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
/// The words of one server are cut after this many bytes.
const MAX_SAID: usize = 2_000;

impl WorkspaceSnapshot {
    /// Returns whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.readme.is_none() && self.guide.is_none()
    }

    /// Returns the words of the servers, within so many tokens; nothing if none says anything.
    pub(super) fn write_servers(&self, budget: usize) -> String {
        let mut text = String::new();
        for (name, said) in &self.servers {
            let left = budget.saturating_sub(estimate_tokens(&text) + 40) * 4;
            if left < 200 {
                break;
            }
            let heading = if text.is_empty() {
                "## What servers say about their tools\n\n"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "{heading}{}:\n{}\n",
                quote_text(name, MAX_PATH),
                fence_within(said, left.min(MAX_SAID))
            );
        }
        text
    }

    /// The names of the files that have most to do with a goal, at most so many.
    pub(crate) fn names_for(&self, goal: &str, most: usize) -> Vec<String> {
        let files = self.ranked_files(goal).into_iter().take(most);
        files
            .map(|file| file.path.chars().take(MAX_PATH).collect())
            .collect()
    }

    /// The files, those that have words in common with the goal first.
    fn ranked_files(&self, goal: &str) -> Vec<&SnapshotFile> {
        let goal = Keywords::of(goal);
        let mut files: Vec<&SnapshotFile> = self.files.iter().collect();
        files.sort_by_cached_key(|file| Reverse(Keywords::of(&file.path).common(&goal)));
        files
    }

    /// The section of the prompt, within so many tokens; nothing if there is nothing to tell. Files
    /// that have words in common with the goal come first.
    pub(super) fn write_section(&self, budget: usize, goal: &str) -> String {
        if self.is_empty() || budget < 50 {
            return String::new();
        }
        let mut text = "## Workspace\n\nFiles, with their sizes in bytes:\n".to_owned();
        // The files come first; what they leave is for what the workspace says about itself.
        let for_files = budget / 2;
        let mut left_out = 0;
        for file in self.ranked_files(goal) {
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
        for (name, said) in self.guide.iter().chain(&self.readme) {
            let rest = budget.saturating_sub(estimate_tokens(&text) + 20) * 4;
            if rest > 200 {
                let name = quote_text(name, MAX_PATH);
                let _ = writeln!(text, "\n{name} begins:\n{}", fence_within(said, rest));
            }
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
