//! The run that an agent wants as soon as the plan is approved.

use crate::terminal::printer::line;
use planwright_core::review::{RequestedRun, Review};
use planwright_core::time::Timestamp;

/// Says that an approval starts a run, if it does.
pub(crate) fn requested_line(review: &Review, now: Timestamp) -> Option<String> {
    let requested = review.requested_run(now)?;
    let until = requested.at.plus(RequestedRun::VALID_FOR);
    Some(format!(
        "{} wants it run as soon as it is approved, until {until}",
        line(&requested.by.to_string())
    ))
}
