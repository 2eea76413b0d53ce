//! Remarks of people about a plan, for the planner that writes its next version.

use super::budget::estimate_tokens;
use super::quote::quote_text;
use crate::principal::Principal;
use crate::review::Review;

const MAX_TEXT: usize = 1_000;

/// The section of the prompt: what was rejected, what was asked for, what is still discussed. The
/// latest first, since it must not be what falls out of the budget; nothing if nothing was said.
pub(super) fn write_section(review: &Review, feedback: Option<&str>, budget: usize) -> String {
    let by = |principal: &Principal| quote_text(&principal.to_string(), 100);
    let mut lines = Vec::new();
    if let Some(feedback) = feedback {
        lines.push(format!(
            "- asked for now: {}\n",
            quote_text(feedback, 4 * MAX_TEXT)
        ));
    }
    for rejection in review.rejections().iter().rev() {
        let version = rejection.version;
        let text = quote_text(&rejection.reason, MAX_TEXT);
        lines.push(format!(
            "- version {version} was rejected by {}: {text}\n",
            by(&rejection.by)
        ));
    }
    for asked in review.change_requests().iter().rev() {
        let version = asked.version;
        let text = quote_text(&asked.reason, MAX_TEXT);
        lines.push(format!(
            "- changes to version {version} asked for by {}: {text}\n",
            by(&asked.by)
        ));
    }
    for thread in review.open_threads() {
        let about = thread
            .on
            .as_ref()
            .map_or_else(|| "the plan".to_owned(), |step| format!("step {step}"));
        for comment in thread.comments() {
            lines.push(format!(
                "- {} about {about}: {}\n",
                by(&comment.by),
                quote_text(&comment.text, MAX_TEXT)
            ));
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let mut text = "## What people said about it\n\n".to_owned();
    for line in lines {
        if estimate_tokens(&text) + estimate_tokens(&line) <= budget {
            text.push_str(&line);
        }
    }
    text.push('\n');
    text
}
