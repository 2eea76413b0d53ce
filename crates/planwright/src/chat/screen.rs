//! What the person sees of a conversation: answers on stdout as they come, everything else on
//! stderr; or JSON lines on stdout.

use crate::exit::Failure;
use crate::terminal::printer::{DIM, GREEN, Printer, RED, YELLOW, line};
use planwright_core::text::{escape_invisible, sanitize_line};
use planwright_engine::{MaskedText, Redaction};
use serde_json::{Value, json};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most characters of a call's arguments in one line. What is asked about is always shown
/// whole.
const MAX_ARGS: usize = 300;

/// Where a conversation is shown.
pub(crate) struct Screen {
    printer: Printer,
    redaction: Redaction,
    state: Mutex<ScreenState>,
}

struct ScreenState {
    masked: MaskedText,
    /// The line that is being written has not ended.
    open: bool,
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Screen")
    }
}

impl Screen {
    pub(super) fn new(printer: Printer, redaction: Redaction) -> Self {
        let state = ScreenState {
            masked: MaskedText::new(redaction.clone()),
            open: false,
        };
        Self {
            printer,
            redaction,
            state: Mutex::new(state),
        }
    }

    pub(super) fn printer(&self) -> Printer {
        self.printer
    }

    fn state(&self) -> MutexGuard<'_, ScreenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next piece of an answer.
    pub(super) fn print_piece(&self, piece: &str) {
        let mut state = self.state();
        let text = state.masked.push(piece);
        self.write(&mut state, &text);
    }

    /// The answer, or this part of it, is over.
    pub(super) fn pause(&self) {
        let mut state = self.state();
        let rest = state.masked.finish();
        self.write(&mut state, &rest);
        if std::mem::take(&mut state.open) && !self.printer.json {
            // A reader that has gone away is noticed when the next answer begins.
            drop(self.printer.raw(b"\n"));
        }
    }

    fn write(&self, state: &mut ScreenState, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.printer.json {
            state.open = true;
            return self.event(&json!({ "event": "delta", "text": text }));
        }
        let text = piece(text);
        if let Some(last) = text.chars().last() {
            state.open = last != '\n';
            drop(self.printer.raw(text.as_bytes()));
        }
    }

    /// A whole text that was said before.
    pub(super) fn repeat(&self, text: &str) {
        self.print_piece(text);
        self.pause();
    }

    /// The model wants a call, and this is what is to become of it.
    pub(super) fn call(&self, tool: &str, args: &Value, verdict: &str, reason: Option<&str>) {
        self.pause();
        if self.printer.json {
            return self.event(&json!({
                "event": "call", "tool": tool, "args": args, "verdict": verdict, "reason": reason,
            }));
        }
        let all = escape_invisible(&args.to_string()).into_owned();
        let short: String = all.chars().take(MAX_ARGS).collect();
        let more = if short.len() < all.len() { "…" } else { "" };
        let style = match verdict {
            "allowed" => GREEN,
            "refused" => RED,
            _ => YELLOW,
        };
        let why = reason
            .map(|reason| format!(": {}", line(reason)))
            .unwrap_or_default();
        let verdict = self.printer.err(style, verdict);
        self.printer.talk(&format!(
            "→ {} {short}{more}  {verdict}{why}",
            escape_invisible(tool)
        ));
    }

    /// A call came back.
    pub(super) fn result(&self, tool: &str, took: Duration, error: Option<&str>) {
        self.pause();
        if self.printer.json {
            let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            return self.event(&json!({
                "event": "result", "tool": tool, "ok": error.is_none(), "durationMs": millis, "error": error,
            }));
        }
        let time = self
            .printer
            .err(DIM, &crate::terminal::printer::duration(took));
        match error {
            None => self.printer.talk(&format!(
                "{} {}  {time}",
                self.printer.err(GREEN, "✓"),
                escape_invisible(tool)
            )),
            Some(error) => self.printer.talk(&format!(
                "{} {}  {time}  {}",
                self.printer.err(RED, "✗"),
                escape_invisible(tool),
                line(error)
            )),
        }
    }

    /// Something for the person that the model did not say.
    pub(super) fn note(&self, text: &str) {
        self.pause();
        if self.printer.json {
            return self.event(&json!({ "event": "note", "text": text }));
        }
        self.printer.talk(&line(text));
    }

    /// Something went wrong, and the chat goes on.
    pub(super) fn failure(&self, failure: &Failure) {
        self.pause();
        if self.printer.json {
            return self.event(&json!({
                "event": "error", "error": failure.message, "hint": failure.hint, "findings": failure.findings,
            }));
        }
        self.printer.failure(failure);
    }

    /// One JSON line, masked.
    pub(super) fn event(&self, event: &Value) {
        let mut event = event.clone();
        self.redaction.redactor().value(&mut event);
        drop(self.printer.raw(format!("{event}\n").as_bytes()));
    }
}

/// A piece of text without anything that could steer a terminal; its line breaks stay. It looks at
/// single characters, so that a sequence is harmless wherever it is cut.
fn piece(text: &str) -> String {
    text.split('\n')
        .map(sanitize_line)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::piece;

    #[test]
    fn a_control_sequence_is_harmless_wherever_it_is_cut() {
        let hostile = "a\u{1b}]0;title\u{7}\nb\u{1b}[2Jc\u{202e}d\r\u{9b}31m";
        let whole = piece(hostile);
        assert_eq!(whole, "a]0;title\nb[2Jcd 31m");
        let characters: Vec<char> = hostile.chars().collect();
        for size in 1..characters.len() {
            let pieces = characters
                .chunks(size)
                .map(|part| piece(&part.iter().collect::<String>()));
            assert_eq!(pieces.collect::<String>(), whole, "{size}");
        }
    }
}
