//! Texts that prose cannot carry, kept beside it.
//!
//! An exact text counts only while the prose reads as it would if it had just been written from
//! that text. So nothing can hide behind other words, and an edit of the prose wins.

use super::blocks::Fence;
use super::fence::{read_fence, write_fence};
use super::text::{escape_line, escape_prose, shown_line, shown_prose};
use crate::plan::{Code, ReadPlanError, SourceLocation};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The words after the fence of exact texts.
pub(super) const INFO: &str = "json exact";

pub(super) fn is_exact(fence: &Fence) -> bool {
    fence.info.split_whitespace().eq(INFO.split_whitespace())
}

/// Writes several lines of text.
pub(super) fn write_prose(page: &mut String, text: &str) {
    let prose = escape_prose(text);
    page.push_str(prose.trim_matches('\n'));
    page.push('\n');
    if shown_prose(text) != text {
        page.push('\n');
        write_fence(page, &text, INFO, "");
    }
}

/// Writes a list of lines.
pub(super) fn write_list(page: &mut String, items: &[String]) {
    for item in items {
        page.push_str(format!("- {}", escape_line(item)).trim_end());
        page.push('\n');
    }
    write_exact_items(page, items);
}

/// Writes what the items say exactly. Those that look like such an item are repeated too, or it
/// could not be told which of them is meant.
pub(super) fn write_exact_items(page: &mut String, items: &[String]) {
    let shown: Vec<String> = items.iter().map(|item| shown_line(item)).collect();
    let changed: BTreeSet<&String> = items
        .iter()
        .zip(&shown)
        .filter(|(item, shown)| item != shown)
        .map(|(_, shown)| shown)
        .collect();
    let exact: Vec<&String> = items
        .iter()
        .zip(&shown)
        .filter(|(_, shown)| changed.contains(shown))
        .map(|(item, _)| item)
        .collect();
    if !exact.is_empty() {
        page.push('\n');
        write_fence(page, &exact, INFO, "");
    }
}

/// The text that the prose stands for.
pub(super) fn prose_of(
    prose: String,
    exact: Option<(&Fence, usize)>,
) -> Result<Exactly<String>, ReadPlanError> {
    let Some((fence, line)) = exact else {
        return Ok(Exactly {
            value: prose,
            edited: false,
        });
    };
    match read_fence(fence, line)? {
        Value::String(text) if shown_prose(&text) == prose => Ok(Exactly {
            value: text,
            edited: false,
        }),
        Value::String(_) => Ok(Exactly {
            value: prose,
            edited: true,
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(refuse(line, "a text in quotes"))
        }
    }
}

/// The texts that the items of a list stand for.
pub(super) fn list_of(
    mut items: Vec<String>,
    exact: Option<(&Fence, usize)>,
) -> Result<Exactly<Vec<String>>, ReadPlanError> {
    let Some((fence, line)) = exact else {
        return Ok(Exactly {
            value: items,
            edited: false,
        });
    };
    let Ok(texts) = serde_json::from_value::<Vec<String>>(read_fence(fence, line)?) else {
        return Err(refuse(line, "a list of texts"));
    };
    let mut places: BTreeMap<String, VecDeque<usize>> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        places.entry(item.clone()).or_default().push_back(index);
    }
    let mut edited = false;
    for text in texts {
        match places
            .get_mut(&shown_line(&text))
            .and_then(VecDeque::pop_front)
        {
            Some(index) => items[index] = text,
            None => edited = true,
        }
    }
    Ok(Exactly {
        value: items,
        edited,
    })
}

/// A value that was read. `edited` is set if an exact text was left out because the prose above it
/// says something else.
#[derive(Debug)]
pub(super) struct Exactly<T> {
    pub(super) value: T,
    pub(super) edited: bool,
}

fn refuse(line: usize, what: &str) -> ReadPlanError {
    ReadPlanError {
        code: Code::Shape,
        place: SourceLocation::Text { line, column: 1 },
        message: format!("a `{INFO}` block here holds {what}"),
        suggestion: Some("remove the block: the text above it is taken then".to_owned()),
    }
}
