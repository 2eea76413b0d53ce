//! A file that a call would write, compared with the one that is there now.

use schemars::JsonSchema;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// A file of the workspace as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentFile {
    /// The path of the file without links and detours, from the root of the workspace, if it is in
    /// there.
    pub resolved: Option<String>,
    /// Its content.
    pub content: CurrentContent,
}

/// The content of a file as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CurrentContent {
    /// There is no such file.
    Missing,
    /// Its text.
    Text(String),
    /// It cannot be compared: why, in words such as "is not text".
    Unreadable(String),
}

/// What a call would do to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// The path as it is sent.
    pub path: String,
    /// Where that leads without links and detours, if it is another path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// True if the file is there now; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// True if the call adds to the end of the file.
    pub appends: bool,
    /// Why the contents cannot be compared, if they cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// The lines that differ, with some around them.
    pub diff: Vec<DiffLine>,
}

/// One line of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffLine {
    /// What becomes of the line.
    pub sign: DiffSign,
    /// The line without its end.
    pub text: String,
}

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffSign {
    /// The line stays.
    Same,
    /// The line is added.
    Added,
    /// The line is removed.
    Removed,
    /// Lines that stay are left out here.
    Gap,
}

/// Lines around a change that stay.
const CONTEXT: usize = 3;
/// The cost of a comparison grows with the lines of both files: beyond this many, everything
/// between the first and the last difference counts as replaced.
const MAX_COMPARED: usize = 4_000;

impl FileChange {
    /// Compares the file that is there with the text it would have. Without a text, only the file
    /// is looked at.
    pub(super) fn new(
        path: &str,
        now: Option<&CurrentFile>,
        content: Option<&str>,
        appends: bool,
    ) -> Self {
        let content_now = now.map(|now| &now.content);
        let resolved = now.and_then(|now| now.resolved.clone());
        let mut change = Self {
            path: path.to_owned(),
            resolved: resolved.filter(|resolved| resolved != path),
            exists: content_now.map(|now| *now != CurrentContent::Missing),
            appends,
            not_compared: None,
            diff: Vec::new(),
        };
        match (content_now, content) {
            (Some(CurrentContent::Unreadable(why)), _) => change.not_compared = Some(why.clone()),
            (Some(CurrentContent::Text(_)), None) => {
                change.not_compared = Some("the new content is only known later".to_owned());
            }
            (Some(CurrentContent::Text(old)), Some(new)) => {
                let new = if appends {
                    format!("{old}{new}")
                } else {
                    new.to_owned()
                };
                change.diff = compare(old, &new);
            }
            (Some(CurrentContent::Missing) | None, _) => {}
        }
        change
    }
}

fn compare(old: &str, new: &str) -> Vec<DiffLine> {
    if old.lines().count() + new.lines().count() > MAX_COMPARED {
        return compare_roughly(old, new);
    }
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    for (number, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if number > 0 {
            lines.push(DiffLine {
                sign: DiffSign::Gap,
                text: String::new(),
            });
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Equal => DiffSign::Same,
                ChangeTag::Insert => DiffSign::Added,
                ChangeTag::Delete => DiffSign::Removed,
            };
            let text = change.value().trim_end_matches('\n').to_owned();
            lines.push(DiffLine { sign, text });
        }
    }
    lines
}

fn compare_roughly(old: &str, new: &str) -> Vec<DiffLine> {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - start;
    let ends = old.iter().rev().zip(new.iter().rev());
    let end = ends.take(rest).take_while(|(a, b)| a == b).count();
    let line = |sign| {
        move |text: &&str| DiffLine {
            sign,
            text: (*text).to_owned(),
        }
    };
    let removed = old[start..old.len() - end].iter();
    let added = new[start..new.len() - end].iter();
    removed
        .map(line(DiffSign::Removed))
        .chain(added.map(line(DiffSign::Added)))
        .collect()
}
