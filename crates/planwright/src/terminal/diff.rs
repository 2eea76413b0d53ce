//! What differs between versions, on the screen.

use crate::exit::Failure;
use crate::terminal::printer::{BOLD, GREEN, Printer, RED, YELLOW, line};
use crate::workspace::app::App;
use anstyle::Style;
use planwright_core::id::StepId;
use planwright_core::plan::PlanDiff;
use planwright_core::review::Review;
use planwright_engine::{Candidate, Reapproval};

/// The lines of a diff, each with the style of its sign.
fn lines(diff: &PlanDiff) -> Vec<(Option<Style>, String)> {
    let text = diff.to_string();
    let styled = text.lines().map(|text| {
        let style = match text.trim_start().chars().next() {
            Some('+') => Some(GREEN),
            Some('-') => Some(RED),
            Some('~') => Some(YELLOW),
            Some(_) | None => None,
        };
        (style, line(text))
    });
    styled.collect()
}

/// A diff as data.
pub(crate) fn print(printer: Printer, diff: &PlanDiff) -> Result<(), Failure> {
    for (style, text) in lines(diff) {
        printer.data(&style.map_or_else(|| text.clone(), |style| printer.out(style, &text)))?;
    }
    Ok(())
}

/// A diff as talk.
pub(crate) fn tell(printer: Printer, diff: &PlanDiff) {
    for (style, text) in lines(diff) {
        printer.talk(&style.map_or_else(|| text.clone(), |style| printer.err(style, &text)));
    }
}

/// What changed since the plan was last agreed to, if an edit voided that.
pub(crate) async fn since_agreed(
    app: &App,
    review: &Review,
    candidate: &Candidate,
) -> Result<Option<Reapproval>, Failure> {
    Ok(app.engine.reapproval(review, candidate).await?)
}

/// The heading over what changed.
pub(crate) fn heading(since: &Reapproval) -> String {
    format!(
        "changed since version {}, which was approved:",
        since.since.version
    )
}

/// The steps that failed before and run again as they are.
pub(crate) fn again(since: &Reapproval) -> Option<String> {
    let names: Vec<&str> = since.again.iter().map(StepId::as_str).collect();
    (!names.is_empty()).then(|| format!("did not succeed, and run again: {}", names.join(", ")))
}

/// The steps nobody has to look at again.
pub(crate) fn agreed(since: &Reapproval) -> Option<String> {
    let names: Vec<&str> = since.agreed.iter().map(StepId::as_str).collect();
    (!names.is_empty()).then(|| format!("already agreed, and as they were: {}", names.join(", ")))
}

/// Tells whoever decides what changed since somebody last agreed.
pub(crate) fn tell_since(printer: Printer, since: &Reapproval) {
    printer.talk(&printer.err(BOLD, &heading(since)));
    tell(printer, &since.diff);
    for text in again(since).into_iter().chain(agreed(since)) {
        printer.talk(&text);
    }
}
