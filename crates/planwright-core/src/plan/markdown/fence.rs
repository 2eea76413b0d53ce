//! Blocks of JSON within Markdown.

use super::blocks::Fence;
use crate::json::{ParseJsonError, parse_strict};
use crate::plan::{ReadPlanError, SourceLocation};
use crate::text::is_invisible;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;

/// JSON in a fence that nothing inside can close. What cannot be seen is spelt out.
pub(super) fn write_fence(page: &mut String, value: &impl Serialize, info: &str, indent: &str) {
    let json = serde_json::to_string_pretty(value).expect("plans have only string keys");
    let json = spelt_out(&json);
    let longest = json.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    for line in std::iter::once(format!("{fence}{info}").as_str())
        .chain(json.lines())
        .chain([fence.as_str()])
    {
        page.push_str(indent);
        page.push_str(line);
        page.push('\n');
    }
}

/// JSON whose strings hold no character a reader cannot see. Outside strings there is none but the
/// line break.
fn spelt_out(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        if c != '\n' && (c.is_control() || is_invisible(c)) {
            for unit in c.encode_utf16(&mut units) {
                write!(text, "\\u{unit:04x}").expect("writing to a string cannot fail");
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// The JSON of a fence that begins in `line` of the file.
pub(super) fn read_fence(fence: &Fence, line: usize) -> Result<Value, ReadPlanError> {
    parse_strict(fence.content.as_bytes()).map_err(|error| {
        let ParseJsonError {
            line: within,
            column,
            ..
        } = error;
        let mut refused = ReadPlanError::from(error);
        refused.place = SourceLocation::Text {
            line: line + within,
            column,
        };
        refused
            .suggestion
            .get_or_insert_with(|| "this block holds JSON".to_owned());
        refused
    })
}
