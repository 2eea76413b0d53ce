//! What differs between versions, on the screen.

use crate::exit::Failure;
use crate::terminal::printer::{BOLD, GREEN, Printer, RED, YELLOW, line};
use crate::workspace::app::App;
use anstyle::Style;
use planwright_core::id::StepId;
use planwright_core::plan::{PlanDiff, SafeguardLoss};
use planwright_core::review::Review;
use planwright_engine::{Candidate, Reapproval};

/// The lines of a diff, each with the style of its sign.
fn styled_lines(diff: &PlanDiff) -> Vec<(Option<Style>, String)> {
    let text = diff.to_string();
    let styled = text.lines().map(|text| {
        let style = match text.trim_start().chars().next() {
            Some('+') => Some(GREEN),
            Some('-' | '!') => Some(RED),
            Some('~') => Some(YELLOW),
            Some(_) | None => None,
        };
        (style, line(text))
    });
    styled.collect()
}

/// A diff as data.
pub(crate) fn print_diff(printer: Printer, diff: &PlanDiff) -> Result<(), Failure> {
    for (style, text) in styled_lines(diff) {
        printer.data(&style.map_or_else(|| text.clone(), |style| printer.out(style, &text)))?;
    }
    Ok(())
}

/// A diff as talk.
pub(crate) fn talk_diff(printer: Printer, diff: &PlanDiff) {
    for (style, text) in styled_lines(diff) {
        printer.talk(&style.map_or_else(|| text.clone(), |style| printer.err(style, &text)));
    }
}

/// What changed since the plan was last agreed to, if an edit voided that.
pub(crate) async fn load_changes_since_approval(
    app: &App,
    review: &Review,
    candidate: &Candidate,
) -> Result<Option<Reapproval>, Failure> {
    Ok(app.engine.runs().reapproval(review, candidate).await?)
}

/// The heading over what changed.
pub(crate) fn changes_heading(since: &Reapproval) -> String {
    format!(
        "changed since version {}, which was approved:",
        since.since.version
    )
}

/// The steps that failed before and run again as they are.
pub(crate) fn repeated_steps_line(since: &Reapproval) -> Option<String> {
    let names: Vec<&str> = since.again.iter().map(StepId::as_str).collect();
    (!names.is_empty()).then(|| format!("failed before, will run again: {}", names.join(", ")))
}

/// Formats the steps that need no further review.
pub(crate) fn agreed_steps_line(since: &Reapproval) -> Option<String> {
    let names: Vec<&str> = since.agreed.iter().map(StepId::as_str).collect();
    (!names.is_empty()).then(|| format!("already approved and unchanged: {}", names.join(", ")))
}

/// What earlier versions had and this one lacks, where the shown changes do not name it.
pub(crate) fn lost_safeguard_lines(review: &Review, since: Option<&Reapproval>) -> Vec<String> {
    let is_shown = since.is_some_and(|since| !since.diff.safeguards.is_empty());
    let Some(lost) = review.lost_safeguards().filter(|_| !is_shown) else {
        return Vec::new();
    };
    let heading = format!(
        "safeguards of version {} that are gone or weaker, which only a person may agree to:",
        lost.since
    );
    let losses = lost.losses.iter().map(SafeguardLoss::diff_line);
    std::iter::once(heading)
        .chain(losses.map(|text| line(&text)))
        .collect()
}

/// Shows the approver what changed since the last approval.
pub(crate) fn talk_changes(printer: Printer, since: &Reapproval) {
    printer.talk(&printer.err(BOLD, &changes_heading(since)));
    talk_diff(printer, &since.diff);
    for text in repeated_steps_line(since)
        .into_iter()
        .chain(agreed_steps_line(since))
    {
        printer.talk(&text);
    }
}
