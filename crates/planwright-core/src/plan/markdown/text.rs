//! Text within Markdown: escaped so that nothing in it is markup, and read back.

use crate::text::sanitize_line;

/// The inverse of every escape below: a backslash before ASCII punctuation is not part of the text.
pub(super) fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut characters = raw.chars().peekable();
    while let Some(c) = characters.next() {
        match characters.peek() {
            Some(next) if c == '\\' && next.is_ascii_punctuation() => {
                text.push(*next);
                characters.next();
            }
            _ => text.push(c),
        }
    }
    text
}

/// Text within a line: nothing in it is Markdown.
pub(super) fn escape_line(text: &str) -> String {
    let text = sanitize_line(text);
    let text = text.trim();
    let ordinal = ordinal_end(text);
    escape(text, |at, c| match c {
        '-' | '+' | '=' => at == 0,
        '.' | ')' => ordinal == Some(at),
        _ => false,
    })
}

/// Text in parentheses at the end of a line.
pub(super) fn escape_label(text: &str) -> String {
    let text = sanitize_line(text);
    escape(text.trim(), |_, c| matches!(c, '(' | ')'))
}

fn escape(text: &str, is_markup_here: impl Fn(usize, char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = None;
    for (at, c) in text.char_indices() {
        let after = text[at + c.len_utf8()..].chars().next();
        let is_markup = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '~' | '&' => true,
            // Within a word it is only a character.
            '_' => ![before, after]
                .iter()
                .all(|side| side.is_some_and(char::is_alphanumeric)),
            _ => is_markup_here(at, c),
        };
        if is_markup {
            escaped.push('\\');
        }
        escaped.push(c);
        before = Some(c);
    }
    escaped
}

/// Returns the offset of the mark that would make a numbered item of the text.
fn ordinal_end(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0 && text[digits..].starts_with(['.', ')'])).then_some(digits)
}

/// Reads a line of Markdown. Lines that belong together are one line.
pub(super) fn read_line(raw: &str) -> String {
    let lines: Vec<&str> = raw.lines().map(str::trim).collect();
    unescape(lines.join(" ").trim())
}

/// Returns the text a reader sees after it was written as a line.
pub(super) fn shown_line(text: &str) -> String {
    read_line(&escape_line(text))
}

/// Several lines of text: paragraphs and lists stay readable, but no line opens a section, a fence,
/// a rule or a tag.
pub(super) fn escape_prose(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(escape_prose_line).collect();
    lines.join("\n")
}

fn escape_prose_line(line: &str) -> String {
    let line = sanitize_line(line);
    let start = line.trim_start_matches(' ');
    let mut escaped = line[..line.len() - start.len()].to_owned();
    if opens_a_block(start) {
        escaped.push('\\');
    }
    let mut rest = start.chars().peekable();
    let mut before = None;
    let mut first = true;
    while let Some(c) = rest.next() {
        let is_markup = match c {
            // The first character of an opening line has its backslash already.
            _ if first && opens_a_block(start) => false,
            '\\' | '<' | '&' => true,
            '(' => before == Some(']'),
            '!' => rest.peek() == Some(&'['),
            _ => false,
        };
        if is_markup {
            escaped.push('\\');
        }
        escaped.push(c);
        before = Some(c);
        first = false;
    }
    escaped
}

/// Returns whether a line that begins so is more than a line of a paragraph or of a list.
fn opens_a_block(start: &str) -> bool {
    let mut characters = start.chars();
    match characters.next() {
        Some('-' | '*' | '+') => {
            // An item of a list may stay one.
            let is_item = characters.next() == Some(' ')
                && characters.next().is_some_and(char::is_alphanumeric);
            let is_emphasis =
                start.starts_with('*') && !start.starts_with("**") && !start.starts_with("* ");
            !is_item && !is_emphasis
        }
        Some('#' | '=' | '_' | '`' | '~' | '>' | '|' | '[' | '<' | '\\' | '&') => true,
        Some(_) | None => false,
    }
}

/// Reads several lines of Markdown. Empty lines around them are not part of it.
pub(super) fn read_prose(raw: &str) -> String {
    let lines: Vec<&str> = raw.split('\n').collect();
    let is_blank = |line: &&str| line.trim().is_empty();
    let Some(first) = lines.iter().position(|line| !is_blank(line)) else {
        return String::new();
    };
    let last = lines
        .iter()
        .rposition(|line| !is_blank(line))
        .expect("one line is not empty");
    unescape(&lines[first..=last].join("\n"))
}

/// Returns the text a reader sees after it was written as several lines.
pub(super) fn shown_prose(text: &str) -> String {
    read_prose(&escape_prose(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_lines_look_ordinary() {
        for plain in [
            "Fetch invoice 2024-0847 (urgent)",
            "list_dir of a.b: ok?",
            "50 % of 3.5",
            "a - b",
        ] {
            assert_eq!(escape_line(plain), plain);
            assert_eq!(shown_line(plain), plain);
        }
    }

    #[test]
    fn lines_that_would_be_markup_read_back() {
        for odd in [
            "# x", "- x", "1. x", "12) x", "[ ] x", "a*b*", "_x_", "`x`", "<b>", "\\", "\\\\*",
            "=", "&amp;",
        ] {
            assert_eq!(shown_line(odd), odd, "{}", escape_line(odd));
        }
    }

    #[test]
    fn prose_keeps_its_lists_and_paragraphs() {
        let text = "First *really*.\n\n- one\n  - two\n* three\n1. four\n    code";
        assert_eq!(escape_prose(text), text);
        assert_eq!(shown_prose(text), text);
    }

    #[test]
    fn prose_opens_nothing_and_reads_back() {
        let text = "## x\n---\na\n-\n=\n```\n~~~\n> q\n<!--\n[a]: b\n***\n- - -\n\\#\n[x](y) ![z]\n_ _ _\n**b**";
        assert_eq!(shown_prose(text), text);
        assert!(
            escape_prose(text)
                .lines()
                .all(|line| line == "a" || line.starts_with('\\'))
        );
    }
}
