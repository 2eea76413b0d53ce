//! Everything the program says: data on stdout, talk on stderr.
//!
//! Texts of plans, tools and files pass through [`line()`] or [`block`] before they reach a
//! terminal.

use anstyle::{AnsiColor, Style};
use planwright_core::plan::{Finding, Severity};
use planwright_core::text::{escape_invisible_json, sanitize_line};
use serde::Serialize;
use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::{Exit, Failure};
use crate::telemetry::stderr;

/// Where output goes and how it looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    pub(crate) json: bool,
    color_out: bool,
    color_err: bool,
}

/// Set once something was written to stdout: `--json` prints one document.
static HAS_DATA: AtomicBool = AtomicBool::new(false);

/// A text that may be painted.
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();

impl Printer {
    pub(crate) fn new(json: bool, no_color: bool) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_unset = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let wanted = !no_color && is_unset && !is_dumb;
        Self {
            json,
            color_out: wanted && io::stdout().is_terminal(),
            color_err: wanted && io::stderr().is_terminal(),
        }
    }

    /// Paints a text for stdout.
    pub(crate) fn out(self, style: Style, text: &str) -> String {
        paint(self.color_out, style, text)
    }

    /// Paints a text for stderr.
    pub(crate) fn err(self, style: Style, text: &str) -> String {
        paint(self.color_err, style, text)
    }

    /// Returns whether stderr is a terminal, so that progress can be redrawn.
    pub(crate) fn is_live(self) -> bool {
        io::stderr().is_terminal() && !stderr::is_held_back()
    }

    /// Returns whether a person can be asked: stdin and stderr are terminals.
    pub(crate) fn can_ask(self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Prints a failure: talk for people, and with `--json` one document, unless one was printed.
    pub(crate) fn report_failure(self, failure: &Failure) {
        self.failure(failure);
        if self.json && !failure.message.is_empty() && !HAS_DATA.load(Ordering::Relaxed) {
            // What cannot be written has been said on stderr.
            drop(self.document(&failure.document()));
        }
    }

    /// One line of data.
    pub(crate) fn data(self, text: &str) -> Result<(), Failure> {
        HAS_DATA.store(true, Ordering::Relaxed);
        check_written(writeln!(io::stdout().lock(), "{text}"))
    }

    /// Data exactly as it is.
    pub(crate) fn raw(self, bytes: &[u8]) -> Result<(), Failure> {
        HAS_DATA.store(true, Ordering::Relaxed);
        let mut out = io::stdout().lock();
        check_written(out.write_all(bytes).and_then(|()| out.flush()))
    }

    /// The one JSON document of `--json`; on one line unless a person looks at it.
    pub(crate) fn document(self, document: &impl Serialize) -> Result<(), Failure> {
        HAS_DATA.store(true, Ordering::Relaxed);
        let stdout = io::stdout();
        let mut out = SpelledOut(BufWriter::new(stdout.lock()));
        let json = if stdout.is_terminal() {
            serde_json::to_writer_pretty(&mut out, document)
        } else {
            serde_json::to_writer(&mut out, document)
        };
        check_written(
            json.map_err(io::Error::from)
                .and_then(|()| writeln!(out))
                .and_then(|()| out.flush()),
        )
    }

    /// Writes one line to stderr. A closed stderr is no reason to fail.
    pub(crate) fn talk(self, text: &str) {
        stderr::write(&format!("{text}\n"));
    }

    pub(crate) fn warn(self, text: &str) {
        self.talk(&format!("{} {}", self.err(YELLOW, "warning:"), line(text)));
    }

    pub(crate) fn hint(self, text: &str) {
        self.talk(&format!("{} {}", self.err(BOLD, "hint:"), line(text)));
    }

    pub(crate) fn failure(self, failure: &Failure) {
        if failure.message.is_empty() {
            return;
        }
        self.talk(&format!(
            "{} {}",
            self.err(RED, "error:"),
            line(&failure.message)
        ));
        self.findings(&failure.findings);
        if let Some(hint) = &failure.hint {
            self.hint(hint);
        }
    }

    /// What validation found, one line each.
    pub(crate) fn findings(self, findings: &[Finding]) {
        for finding in findings {
            let word = match finding.severity {
                Severity::Error => self.err(RED, "  error"),
                Severity::Warning => self.err(YELLOW, "  warning"),
            };
            let place = if finding.pointer.is_empty() {
                ""
            } else {
                " at "
            };
            let mut text = format!(
                "{word} {}{place}{}",
                line(&finding.to_string()),
                line(&finding.pointer)
            );
            if let Some(suggestion) = &finding.suggestion {
                text = format!("{text} ({})", line(suggestion));
            }
            self.talk(&text);
        }
    }
}

/// Writes JSON so that nothing in it is hidden from a reader or moves a cursor.
struct SpelledOut<W>(W);

impl<W: io::Write> io::Write for SpelledOut<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The serializer writes whole characters. What is no text is not its.
        match str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(escape_invisible_json(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn paint(color: bool, style: Style, text: &str) -> String {
    if color {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

/// A reader that has gone away (`| head`) is no reason to complain, only to stop.
fn check_written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::new(Exit::Done, "")),
        Err(error) => Err(Failure::new(
            Exit::RunFailed,
            format!("cannot write to stdout: {error}"),
        )),
    }
}

/// An untrusted text on one line, without anything that could steer a terminal or hide what is
/// written.
pub(crate) fn line(text: &str) -> String {
    sanitize_line(text).into_owned()
}

/// As [`line()`], but its line breaks stay.
pub(crate) fn block(text: &str) -> String {
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A duration as people read it.
pub(crate) fn duration(took: std::time::Duration) -> String {
    let millis = took.as_millis();
    match millis {
        0..10_000 => format!("{millis} ms"),
        10_000..120_000 => format!("{:.1} s", took.as_secs_f64()),
        _ => format!("{} min {} s", took.as_secs() / 60, took.as_secs() % 60),
    }
}

/// Says roughly how long ago something was.
pub(crate) fn ago(since: std::time::Duration) -> String {
    let minutes = since.as_secs() / 60;
    match minutes {
        0 => "just now".to_owned(),
        1..120 => format!("{minutes} min ago"),
        120..2_880 => format!("{} hours ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1_440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rough() {
        let ago = |minutes| ago(std::time::Duration::from_mins(minutes));
        let said = [0, 1, 119, 120, 2_879, 2_880].map(ago);
        let times = [
            "just now",
            "1 min ago",
            "119 min ago",
            "2 hours ago",
            "47 hours ago",
        ];
        assert_eq!(said[..5], times);
        assert_eq!(said[5], "2 days ago");
    }

    #[test]
    fn control_sequences_do_not_reach_the_terminal() {
        assert_eq!(line("a\u{1b}[31mb\u{7}\u{9b}c\nd"), "a[31mbc d");
        assert_eq!(block("a\u{202e}b\r\nc\u{0}"), "ab\nc");
    }
}
