//! Values of arguments as lines of text.
//!
//! Text of the plan that takes more than a line stands behind a bar, so that it cannot pass for a
//! line of the briefing itself.

use super::wrap::{Lines, Tone, break_anywhere, columns};
use crate::text::{reveal_around_words, reveal_hidden};
use serde_json::Value;
use std::borrow::Cow;

const BAR: &str = "│ ";
/// Lines of a long text that are shown from its beginning and from its end.
const SHOWN_FIRST: usize = 16;
const SHOWN_LAST: usize = 8;

/// Writes values into the lines of a briefing.
pub(super) struct ValueWriter<'a> {
    pub(super) lines: &'a mut Lines,
    /// JSON pointers of strings that words of ours were put into.
    pub(super) late: &'a [String],
    /// True: nothing is cut.
    pub(super) full: bool,
}

impl ValueWriter<'_> {
    /// Writes `name: value`, over as many lines as it takes.
    pub(super) fn write(&mut self, indent: &str, name: &str, value: &Value, pointer: &str) {
        let name = escape_line(&reveal_hidden(name)).into_owned();
        match value {
            Value::String(text) => {
                let shown = if self.late.iter().any(|late| late == pointer) {
                    reveal_around_words(text)
                } else {
                    reveal_hidden(text)
                };
                self.write_text(indent, &name, &shown);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.write_text(indent, &name, &value.to_string());
            }
            Value::Array(list) if list.is_empty() => self.write_text(indent, &name, "[]"),
            Value::Object(map) if map.is_empty() => self.write_text(indent, &name, "{}"),
            Value::Array(list) => {
                if let Some(line) = self.one_line_list(indent, &name, list, pointer) {
                    self.lines.push(Tone::Plain, line);
                    return;
                }
                self.heading(indent, &name);
                let below = format!("{indent}  ");
                for (index, item) in list.iter().enumerate() {
                    if !self.full && index == SHOWN_FIRST && list.len() > SHOWN_FIRST + 1 {
                        let left_out = format!("{below}… {} more elements", list.len() - index);
                        self.lines.push(Tone::Warning, left_out);
                        break;
                    }
                    let number = format!("[{index}]");
                    self.write(&below, &number, item, &format!("{pointer}/{index}"));
                }
            }
            Value::Object(map) => {
                self.heading(indent, &name);
                let below = format!("{indent}  ");
                for (key, field) in map {
                    let token = crate::json::pointer_token(key);
                    self.write(&below, key, field, &format!("{pointer}/{token}"));
                }
            }
        }
    }

    /// A list of plain values on one line, if it fits.
    fn one_line_list(
        &self,
        indent: &str,
        name: &str,
        list: &[Value],
        pointer: &str,
    ) -> Option<String> {
        let mut shown = Vec::with_capacity(list.len().min(SHOWN_FIRST));
        for (index, item) in list.iter().enumerate() {
            let is_late = || {
                let at = format!("{pointer}/{index}");
                self.late.contains(&at)
            };
            shown.push(match item {
                Value::Null | Value::Bool(_) | Value::Number(_) => item.to_string(),
                Value::String(text) if is_late() => reveal_around_words(text).into_owned(),
                Value::String(text) => Value::from(&*reveal_hidden(text)).to_string(),
                Value::Array(_) | Value::Object(_) => return None,
            });
            if shown.len() > self.lines.width {
                return None;
            }
        }
        let line = format!("{indent}{name}: [{}]", shown.join(", "));
        (columns(&line) <= self.lines.width).then_some(line)
    }

    fn heading(&mut self, indent: &str, name: &str) {
        self.lines.push(Tone::Plain, format!("{indent}{name}:"));
    }

    /// Writes a text that has been made safe.
    pub(super) fn write_text(&mut self, indent: &str, name: &str, text: &str) {
        let is_plain = !text.is_empty() && text.trim() == text && !text.contains('\n');
        let line = format!("{indent}{name}: {text}");
        if is_plain && columns(&line) <= self.lines.width {
            self.lines.push(Tone::Plain, line);
            return;
        }
        if text.is_empty() {
            let line = format!("{indent}{name}: (empty)");
            self.lines.push(Tone::Plain, line);
            return;
        }
        let size = text.chars().count();
        let heading = if text.contains('\n') {
            match text.lines().count() {
                1 => format!("{indent}{name} (1 line):"),
                lines => format!("{indent}{name} ({lines} lines):"),
            }
        } else {
            format!("{indent}{name} ({size} characters):")
        };
        self.lines.push(Tone::Plain, heading);
        self.write_block(&format!("{indent}  "), text);
    }

    /// Writes a text of several lines behind a bar, cut in its middle if it is long.
    pub(super) fn write_block(&mut self, indent: &str, text: &str) {
        let prefix = format!("{indent}{BAR}");
        let room = self.lines.room(&prefix);
        let rows: Vec<String> = text
            .lines()
            .flat_map(|line| break_anywhere(line, room))
            .collect();
        let rows: Vec<_> = rows.iter().map(|row| (Tone::Plain, row.as_str())).collect();
        self.write_rows(indent, &prefix, &rows);
    }

    /// Writes rows that fit the width, cut in their middle if there are many.
    pub(super) fn write_rows(&mut self, indent: &str, prefix: &str, rows: &[(Tone, &str)]) {
        let cut = !self.full && rows.len() > SHOWN_FIRST + SHOWN_LAST + 1;
        let last = rows.len() - SHOWN_LAST.min(rows.len());
        for (number, &(tone, row)) in rows.iter().enumerate() {
            if cut && number == SHOWN_FIRST {
                let hidden = &rows[SHOWN_FIRST..last];
                let size: usize = hidden.iter().map(|(_, row)| row.chars().count()).sum();
                let words = format!(
                    "{indent}… {} lines with {size} characters are not shown here",
                    hidden.len()
                );
                self.lines.push(Tone::Warning, words);
            }
            if cut && (SHOWN_FIRST..last).contains(&number) {
                continue;
            }
            let text = format!("{prefix}{row}");
            self.lines.push(tone, text.trim_end().to_owned());
        }
    }
}

/// Makes one line of a text that has been made safe.
pub(super) fn escape_line(text: &str) -> Cow<'_, str> {
    if text.contains('\n') {
        Cow::Owned(text.replace('\n', "\\n"))
    } else {
        Cow::Borrowed(text)
    }
}
