//! The tag of a plan as it was read, so that no caller overwrites what it has not seen.

use super::problem::{Problem, ProblemCode};
use http::HeaderMap;
use http::header::IF_MATCH;
use planwright_core::review::Review;

/// `"v<version>-<entry>"`: changes with every entry in the plan's journal that is about more than comments. What a
/// colleague says about a plan is no reason to refuse an edit of it.
pub(crate) fn of(review: &Review) -> String {
    format!("\"v{}-{}\"", review.current().number, review.settled_seq())
}

/// Refuses a change to a plan that is not, or no longer, as its editor saw it.
pub(crate) fn check(headers: &HeaderMap, review: &Review) -> Result<(), Problem> {
    let current = of(review);
    let mut given = headers.get_all(IF_MATCH).iter().peekable();
    if given.peek().is_none() {
        return Err(Problem::of(
            ProblemCode::StateNeeded,
            "say which state of the plan you changed",
        )
        .hint("send the `ETag` of GET /plan/{id} as `If-Match`"));
    }
    let tags: Vec<&str> = given
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .collect();
    // A star would mean "any state", which is what this header is there to prevent.
    if tags.contains(&current.as_str()) {
        return Ok(());
    }
    Err(Problem::of(
        ProblemCode::StateChanged,
        format!("the plan is at {current} by now; the change was made to another state"),
    )
    .hint("read it again and repeat the change"))
}
