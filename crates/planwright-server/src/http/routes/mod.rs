//! One noun per file: each route says what it takes, what it answers and what its caller has to be
//! allowed.

mod approvals;
mod chat;
mod comments;
mod decisions;
mod docs;
mod export;
mod health;
mod inbox;
mod invitations;
mod journal;
pub(super) mod mcp;
mod passkeys;
mod patching;
mod plan_search;
mod planner;
mod planning_jobs;
mod plans;
mod revocations;
mod runs;
mod server_sign_ins;
mod session;
mod settings;
mod single_sign_on;
mod stats;
mod step_values;
mod steps;
mod templates;
mod tools;
mod trials;
mod versions;
mod workers;

pub(super) use server_sign_ins::FROM_SERVER;
pub(super) use single_sign_on::FROM_PROVIDER;

use super::problem::{HttpResult, Problem, ProblemCode};
use super::router::Routes;
use super::state::Http;
use axum::extract::{MatchedPath, Request};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::Head;
use planwright_core::review::{Review, ReviewState};
use planwright_core::run::{Run, Shown};
use serde::Deserialize;
use utoipa::ToSchema;

/// Routes whose answers hold a secret. They are neither packed, where their length would tell something about it,
/// nor kept to be given again.
const SECRET: [&str; 4] = [
    "/sign-in",
    "/tickets",
    "/invitations",
    "/servers/{name}/sign-in",
];

/// Returns whether the answers of a route hold a secret.
pub(super) fn answers_secret(request: &Request) -> bool {
    let route = request.extensions().get::<MatchedPath>();
    route.is_some_and(|route| is_secret(route.as_str()))
}

/// Returns whether the answers of the route with this path hold a secret.
pub(super) fn is_secret(path: &str) -> bool {
    SECRET.contains(&path)
}

/// Every route of the service.
pub(super) fn all() -> Routes {
    Routes::default()
        .merge(plans::routes())
        .merge(planner::routes())
        .merge(planning_jobs::routes())
        .merge(decisions::routes())
        .merge(revocations::routes())
        .merge(runs::routes())
        .merge(steps::routes())
        .merge(step_values::routes())
        .merge(versions::routes())
        .merge(journal::routes())
        .merge(export::routes())
        .merge(comments::routes())
        .merge(approvals::routes())
        .merge(inbox::routes())
        .merge(templates::routes())
        .merge(tools::routes())
        .merge(trials::routes())
        .merge(stats::routes())
        .merge(workers::routes())
        .merge(settings::routes())
        .merge(chat::routes())
        .merge(session::routes())
        .merge(single_sign_on::routes())
        .merge(server_sign_ins::routes())
        .merge(invitations::routes())
        .merge(passkeys::routes())
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
        return Err(Problem::of(
            ProblemCode::PlanDeleted,
            format!("plan `{id}` was deleted"),
        ));
    }
    Ok((review, head))
}

/// The run that is named, or the latest one.
async fn load_run(http: &Http, review: &Review, named: Option<&str>) -> HttpResult<Run> {
    let (run, _) = load_run_with_head(http, review, named).await?;
    Ok(run)
}

/// The same, together with the head of its journal.
async fn load_run_with_head(
    http: &Http,
    review: &Review,
    named: Option<&str>,
) -> HttpResult<(Run, Head)> {
    let id = review.id();
    let run = match named {
        None => {
            let latest = review.runs().last().map(|opened| opened.run.clone());
            latest
                .ok_or_else(|| Problem::of(ProblemCode::NoRun, format!("plan `{id}` has no run")))?
        }
        Some(text) => text
            .parse::<RunId>()
            .map_err(|error| Problem::of(ProblemCode::BadId, format!("`run`: {error}")))?,
    };
    let unknown = || {
        Problem::of(
            ProblemCode::UnknownRun,
            format!("plan `{id}` has no run `{run}`"),
        )
    };
    if named.is_some() && http.service.engine.journals().plan_of_run(&run).await? != *id {
        return Err(unknown());
    }
    Ok(http.service.engine.runs().load_run(&run, review).await?)
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
                let digest = digest.parse().map_err(|error| {
                    Problem::of(ProblemCode::BadBody, format!("`digest`: {error}"))
                })?;
                Ok(Shown::Digest(digest))
            }
            (None, None) | (Some(_), Some(_)) => Err(Problem::of(
                ProblemCode::BadBody,
                "say what you were shown: either `version` or `digest`",
            )),
        }
    }
}
