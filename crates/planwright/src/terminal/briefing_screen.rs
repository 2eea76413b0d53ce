//! A briefing on the terminal.

use crate::exit::Failure;
use crate::terminal::printer::{BOLD, DIM, GREEN, Printer, RED, YELLOW};
use anstyle::Style;
use planwright_core::briefing::{BriefingLine, RenderOptions, Tone};
use std::collections::BTreeSet;

/// A screen is never taken for narrower or wider than this.
const WIDTHS: std::ops::RangeInclusive<u16> = 40..=200;
const WIDTH_WITHOUT_TERMINAL: u16 = 80;

/// How a briefing is rendered for the screen of this process.
pub(crate) fn screen_options(full: bool, agreed: BTreeSet<String>) -> RenderOptions {
    let size = terminal_size::terminal_size_of(std::io::stderr())
        .or_else(|| terminal_size::terminal_size_of(std::io::stdout()));
    let width = size.map_or(WIDTH_WITHOUT_TERMINAL, |(width, _)| width.0);
    RenderOptions {
        width: usize::from(width.clamp(*WIDTHS.start(), *WIDTHS.end())),
        full,
        agreed,
    }
}

/// Prints the lines as talk.
pub(crate) fn talk_lines(printer: Printer, lines: &[BriefingLine]) {
    for line in lines {
        let text = style_of(line.tone).map(|style| printer.err(style, &line.text));
        printer.talk(text.as_deref().unwrap_or(&line.text));
    }
}

/// Prints the lines as data.
pub(crate) fn print_lines(printer: Printer, lines: &[BriefingLine]) -> Result<(), Failure> {
    for line in lines {
        let text = style_of(line.tone).map(|style| printer.out(style, &line.text));
        printer.data(text.as_deref().unwrap_or(&line.text))?;
    }
    Ok(())
}

fn style_of(tone: Tone) -> Option<Style> {
    match tone {
        Tone::Plain => None,
        Tone::Strong => Some(BOLD),
        Tone::Warning => Some(YELLOW),
        Tone::Faint => Some(DIM),
        Tone::Added => Some(GREEN),
        Tone::Removed => Some(RED),
    }
}
