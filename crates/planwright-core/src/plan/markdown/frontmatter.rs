//! The YAML at the top of a file.

use crate::plan::import::parse_yaml;
use crate::plan::{Bounds, Code, ReadPlanError, SourceLocation};
use crate::text::{is_invisible, nearest_names};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A file's frontmatter and the rest of it.
#[derive(Debug)]
pub(super) struct Split<'a> {
    /// Absent if the file does not begin with it.
    pub(super) yaml: Option<&'a str>,
    pub(super) body: &'a str,
    /// The number of the body's first line, counted from 1.
    pub(super) body_line: usize,
}

/// Tells the frontmatter from the body.
pub(super) fn split(text: &str) -> Result<Split<'_>, ReadPlanError> {
    let is_mark = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    if !lines.next().is_some_and(is_mark) {
        return Ok(Split {
            yaml: None,
            body: text,
            body_line: 1,
        });
    }
    let start = text.find('\n').map_or(text.len(), |at| at + 1);
    let mut end = start;
    for (index, line) in lines.enumerate() {
        if is_mark(line) {
            let body = &text[end + line.len()..];
            return Ok(Split {
                yaml: Some(&text[start..end]),
                body,
                body_line: index + 3,
            });
        }
        end += line.len();
    }
    Err(refuse(
        1,
        1,
        "the frontmatter is never closed".to_owned(),
        "end it with a line `---`",
    ))
}

/// The keys that are known. What the journal says (status, times) is not read: it is not the file's
/// to say.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Frontmatter {
    pub(super) id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) version: Option<u32>,
    pub(super) planner_model: Option<String>,
    pub(super) tools_required: Option<Vec<String>>,
    pub(super) executor_model: Option<String>,
    pub(super) name: Option<String>,
    pub(super) overview: Option<String>,
    pub(super) todos: Option<Vec<Todo>>,
}

/// A todo of a `*.plan.md` file.
#[derive(Debug, Deserialize)]
pub(super) struct Todo {
    pub(super) id: Option<String>,
    pub(super) content: String,
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) dependencies: Option<Vec<String>>,
}

/// The keys of a plan, in the order they are written.
pub(super) const PLAN_KEYS: [&str; 13] = [
    "id",
    "title",
    "status",
    "version",
    "created_at",
    "updated_at",
    "planner_model",
    "tools_required",
    "executor_model",
    "execution_session",
    "execution_started_at",
    "execution_ended_at",
    "result_summary",
];

/// The keys that only files with todos have.
pub(super) const CURSOR_KEYS: [&str; 4] = ["name", "overview", "todos", "isProject"];

/// The keys that are there, in the order of the alphabet.
pub(super) fn keys(yaml: &str, bounds: &Bounds) -> Result<Vec<String>, ReadPlanError> {
    let all: Option<BTreeMap<String, IgnoredAny>> = parse(yaml, bounds)?;
    Ok(all.unwrap_or_default().into_keys().collect())
}

/// Refuses keys that nothing is done with: what they say would be lost.
pub(super) fn check_keys(yaml: &str, keys: &[String]) -> Result<(), ReadPlanError> {
    let Some(unknown) = keys.iter().find(|key| !PLAN_KEYS.contains(&key.as_str())) else {
        return Ok(());
    };
    let line = yaml
        .lines()
        .position(|line| line.trim_start().starts_with(unknown.as_str()));
    let near = nearest_names(unknown, PLAN_KEYS.iter().map(|&key| key.to_owned()));
    let suggestion = match near.first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the keys known here are {}", PLAN_KEYS.join(", ")),
    };
    let message = format!("the key `{unknown}` is unknown");
    Err(refuse(
        line.unwrap_or_default() + 2,
        1,
        message,
        &suggestion,
    ))
}

/// Reads the keys that are known.
pub(super) fn read(yaml: &str, bounds: &Bounds) -> Result<Frontmatter, ReadPlanError> {
    Ok(parse::<Option<Frontmatter>>(yaml, bounds)?.unwrap_or_default())
}

fn parse<T: DeserializeOwned>(yaml: &str, bounds: &Bounds) -> Result<T, ReadPlanError> {
    // The frontmatter begins in the second line of the file.
    parse_yaml(yaml, bounds).map_err(|error| error.refuse("the frontmatter", 1))
}

fn refuse(line: usize, column: usize, message: String, suggestion: &str) -> ReadPlanError {
    let place = SourceLocation::Text { line, column };
    ReadPlanError {
        code: Code::Syntax,
        place,
        message,
        suggestion: Some(suggestion.to_owned()),
    }
}

/// Formats any text as a YAML scalar in double quotes.
pub(super) fn quote_scalar(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            // The last two of every plane are no characters, and some parsers refuse them.
            _ if c.is_control() || is_invisible(c) || u32::from(c) & 0xfffe == 0xfffe => {
                write!(quoted, "\\U{:08X}", u32::from(c)).expect("writing to a string cannot fail");
            }
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
