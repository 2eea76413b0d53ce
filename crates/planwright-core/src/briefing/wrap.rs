//! Lines of a briefing, broken to the width of a screen.

use unicode_width::UnicodeWidthChar as _;

/// One line of a rendered briefing. Its text can be put on a terminal as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BriefingLine {
    /// The tone in which a face may set it off.
    pub tone: Tone,
    /// The text.
    pub text: String,
}

/// The tone of a line, where a face can set it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tone {
    /// As any text.
    Plain,
    /// A heading.
    Strong,
    /// A line that an approver must not overlook.
    Warning,
    /// The author's words and other things that matter less.
    Faint,
    /// A line that a file gains.
    Added,
    /// A line that a file loses.
    Removed,
}

/// Breaks a text that can be put on a terminal into lines of at most `width` columns. The spaces it
/// begins with stand before every line.
pub fn wrap_text(tone: Tone, text: &str, width: usize) -> Vec<BriefingLine> {
    let indent = text.len() - text.trim_start_matches(' ').len();
    let mut lines = Lines::new(width);
    lines.add_wrapped(tone, &text[..indent], &text[indent..]);
    lines.lines
}

/// Collects lines of at most `width` columns.
pub(super) struct Lines {
    pub(super) lines: Vec<BriefingLine>,
    pub(super) width: usize,
}

/// The narrowest text that is still broken into lines: below it a screen cannot be read anyway.
const MIN_WIDTH: usize = 20;

impl Lines {
    pub(super) fn new(width: usize) -> Self {
        Self {
            lines: Vec::new(),
            width,
        }
    }

    pub(super) fn blank(&mut self) {
        self.push(Tone::Plain, String::new());
    }

    pub(super) fn push(&mut self, tone: Tone, text: String) {
        self.lines.push(BriefingLine { tone, text });
    }

    /// Adds a text behind `prefix`, broken between words; what follows is set behind as many
    /// spaces.
    pub(super) fn add_wrapped(&mut self, tone: Tone, prefix: &str, text: &str) {
        let room = self.room(prefix);
        let indent = " ".repeat(columns(prefix));
        for (number, part) in break_words(text, room).into_iter().enumerate() {
            let start = if number == 0 { prefix } else { &indent };
            self.push(tone, format!("{start}{part}").trim_end().to_owned());
        }
    }

    /// Columns that are left behind a prefix.
    pub(super) fn room(&self, prefix: &str) -> usize {
        self.width.saturating_sub(columns(prefix)).max(MIN_WIDTH)
    }
}

/// Counts the columns that a text takes on a terminal.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Breaks a text of one line between words, and words that are longer than a line anywhere.
fn break_words(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let needed = columns(word) + usize::from(!line.is_empty());
        if !line.is_empty() && columns(&line) + needed > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        if columns(word) <= room {
            line.push_str(word);
            continue;
        }
        let mut parts = break_anywhere(word, room);
        line = parts.pop().unwrap_or_default();
        lines.extend(parts);
    }
    lines.push(line);
    lines
}

/// Breaks a text of one line at every `room` columns: nothing of it is lost.
pub(super) fn break_anywhere(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for c in text.chars() {
        let width = c.width().unwrap_or(0);
        if used + width > room && !line.is_empty() {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        line.push(c);
        used += width;
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}
