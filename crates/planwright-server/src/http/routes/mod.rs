//! One noun per file: each route says what it takes, what it answers and what its caller has to be
//! allowed.

mod approvals;
mod chat;
mod comments;
mod decisions;
mod docs;
mod health;
pub(super) mod mcp;
mod planner;
mod plans;
mod revocations;
mod runs;
mod session;
mod stats;
mod step_values;
mod steps;
mod tools;
mod versions;

use super::problem::{HttpResult, Problem};
use super::router::Routes;
use super::state::Http;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::Head;
use planwright_core::review::{Review, ReviewState};
use planwright_core::run::{Run, Shown};
use serde::Deserialize;
use utoipa::ToSchema;

/// Every route of the service.
pub(super) fn all() -> Routes {
    Routes::default()
        .merge(plans::routes())
        .merge(planner::routes())
        .merge(decisions::routes())
        .merge(revocations::routes())
        .merge(runs::routes())
        .merge(steps::routes())
        .merge(step_values::routes())
        .merge(versions::routes())
        .merge(comments::routes())
        .merge(approvals::routes())
        .merge(tools::routes())
        .merge(stats::routes())
        .merge(chat::routes())
        .merge(session::routes())
        .merge(health::routes())
        .merge(docs::routes())
        .merge(crate::events::routes())
}

/// Every path that is not a route.
pub(super) async fn nothing_here() -> Problem {
    Problem::not_found("there is nothing here").hint("GET /openapi.json lists what there is")
}

/// Loads a plan, unless it was deleted.
async fn load(http: &Http, id: &PlanId) -> HttpResult<Review> {
    let (review, _) = load_with_head(http, id).await?;
    Ok(review)
}

/// Loads a plan together with the head of its journal.
async fn load_with_head(http: &Http, id: &PlanId) -> HttpResult<(Review, Head)> {
    let (review, head) = http.service.engine.plans().load_review(id).await?;
    if review.state() == ReviewState::Deleted {
        return Err(Problem::not_found(format!("plan `{id}` was deleted")));
    }
    Ok((review, head))
}

/// The run that is named, or the latest one.
async fn load_run(http: &Http, review: &Review, named: Option<&str>) -> HttpResult<Run> {
    let id = review.id();
    let run = match named {
        None => {
            let latest = review.runs().last().map(|opened| opened.run.clone());
            latest.ok_or_else(|| Problem::conflict(format!("plan `{id}` has no run")))?
        }
        Some(text) => text
            .parse::<RunId>()
            .map_err(|error| Problem::bad_request(format!("`run`: {error}")))?,
    };
    let unknown = || Problem::not_found(format!("plan `{id}` has no run `{run}`"));
    if named.is_some() && http.service.engine.journals().plan_of_run(&run).await? != *id {
        return Err(unknown());
    }
    Ok(http.service.engine.runs().load_run(&run, review).await?.0)
}

/// What a person had on the screen: one of the two, and never none.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
struct Seen {
    /// The version that was shown.
    version: Option<u32>,
    /// The digest that was shown.
    #[schema(pattern = "^sha256:[0-9a-f]{64}$")]
    digest: Option<String>,
}

impl Seen {
    fn shown(&self) -> HttpResult<Shown> {
        match (self.version, &self.digest) {
            (Some(version), None) => Ok(Shown::Version(version)),
            (None, Some(digest)) => {
                let digest = digest
                    .parse()
                    .map_err(|error| Problem::bad_request(format!("`digest`: {error}")))?;
                Ok(Shown::Digest(digest))
            }
            (None, None) | (Some(_), Some(_)) => Err(Problem::bad_request(
                "say what you were shown: either `version` or `digest`",
            )),
        }
    }
}
