//! The inbox beside its list: how much waits, telling when that changes, and several decisions at once.

use super::{Seen, decisions, steps};
use crate::events::{Wanted, full, inbox_stream, negotiate_format};
use crate::http::auth::{Caller, Trace};
use crate::http::body::{self, JsonBody};
use crate::http::problem::{HttpResult, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use planwright_api::{DecisionResult, InboxCount};
use planwright_core::id::{PlanId, RunId};
use planwright_core::run::Shown;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa_axum::routes;

/// Decisions in one request.
const MAX_DECISIONS: usize = 100;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(count_approvals))
        .routes(routes!(inbox_events))
        .routes(routes!(decide_several))
}

/// Says how much waits for people, without conversations.
#[utoipa::path(get, path = "/approvals/count", operation_id = "countApprovals", tag = "decisions",
    responses((status = 200, description = "How much waits.", body = InboxCount)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn count_approvals(State(http): State<Http>) -> HttpResult<Json<InboxCount>> {
    Ok(Json(http.inbox_watch.count(&http.service.engine).await?))
}

/// Tells how much waits for people, now and whenever something else waits.
///
/// Each event is named `inbox` and has what `/approvals/count` answers. The count is taken once for all listeners.
/// Who does not accept an event stream gets the count itself.
#[utoipa::path(get, path = "/approvals/events", operation_id = "inboxEvents", tag = "events",
    responses((status = 200, description = "A stream of counts.", content((InboxCount = "application/json"), (String = "text/event-stream")))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn inbox_events(
    State(http): State<Http>,
    caller: Caller,
    headers: HeaderMap,
) -> HttpResult<Response> {
    if negotiate_format(&headers) != Some(Wanted::Stream) {
        return Ok(count_approvals(State(http)).await?.into_response());
    }
    let permit = http.events.enter(&caller).ok_or_else(full)?;
    let watch = http.inbox_watch.clone();
    Ok(inbox_stream(&http.events, permit, watch))
}

/// Several decisions.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DecideSeveral {
    #[schema(min_items = 1, max_items = 100)]
    decisions: Vec<OneDecision>,
}

/// A yes or no to exactly what was shown.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct OneDecision {
    plan_id: String,
    /// A step of a run of the plan; the plan itself when absent.
    #[serde(default)]
    step: Option<String>,
    /// The run of the step; the latest one when absent.
    #[serde(default)]
    run_id: Option<String>,
    decision: Verdict,
    /// What was shown.
    #[schema(pattern = "^sha256:[0-9a-f]{64}$")]
    digest: String,
    /// Why not.
    #[serde(default)]
    #[schema(max_length = 10_000)]
    reason: String,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[schema(as = YesOrNo)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Approve,
    Reject,
}

/// Decides about several things at once, each by the digest that was shown.
///
/// Each decision is recorded or refused on its own, in their order: one that is refused stops no other.
#[utoipa::path(post, path = "/approvals/decide", operation_id = "decideSeveral", tag = "decisions",
    request_body = DecideSeveral,
    responses((status = 200, description = "What came of each, in their order.", body = Vec<DecisionResult>)),
    extensions(("x-planwright-action" = json!("approve"))))]
async fn decide_several(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    JsonBody(DecideSeveral { decisions }): JsonBody<DecideSeveral>,
) -> HttpResult<Json<Vec<DecisionResult>>> {
    if decisions.is_empty() || decisions.len() > MAX_DECISIONS {
        return Err(Problem::bad_request(format!(
            "there are 1 to {MAX_DECISIONS} decisions in one request"
        )));
    }
    // What cannot name anything is no decision: nothing of such a request is done.
    let read = |one: OneDecision| {
        let plan = body::id::<PlanId>(&one.plan_id)?;
        one.run_id.as_deref().map(body::id::<RunId>).transpose()?;
        decisions::check_reason(&one.reason)?;
        let seen = Seen {
            version: None,
            digest: Some(one.digest.clone()),
        };
        Ok((plan, seen.shown()?, one))
    };
    let decisions = decisions.into_iter().map(read);
    let decisions = decisions.collect::<HttpResult<Vec<_>>>()?;
    let mut results = Vec::with_capacity(decisions.len());
    for (plan, shown, one) in decisions {
        let plan_id = one.plan_id.clone();
        let step = one.step.clone();
        let refusal = decide(&http, &caller, (&plan, shown), (one, &trace)).await;
        let refusal = refusal.err();
        results.push(DecisionResult {
            plan_id,
            step,
            ok: refusal.is_none(),
            status: refusal.as_ref().map_or(200, |problem| problem.status),
            problem: refusal.map(|problem| serde_json::to_value(problem).unwrap_or(Value::Null)),
        });
    }
    Ok(Json(results))
}

async fn decide(
    http: &Http,
    caller: &Caller,
    (plan, shown): (&PlanId, Shown),
    (one, trace): (OneDecision, &str),
) -> HttpResult<()> {
    let trace = trace.to_owned();
    match (one.step, one.decision) {
        (None, Verdict::Approve) => {
            let terms = (&BTreeMap::new(), &Map::new());
            decisions::approve(http, caller, (plan, shown), terms, trace)
                .await
                .map(drop)
        }
        (None, Verdict::Reject) => {
            decisions::reject(http, caller, (plan, shown), &one.reason, trace)
                .await
                .map(drop)
        }
        (Some(step), Verdict::Approve) => {
            let place = (plan, step.as_str(), one.run_id.as_deref());
            steps::approve(http, caller.clone(), place, shown, trace)
                .await
                .map(drop)
        }
        (Some(step), Verdict::Reject) => {
            let place = (plan, step.as_str(), one.run_id.as_deref());
            let verdict = (shown, one.reason);
            steps::reject(http, caller.clone(), place, verdict, trace)
                .await
                .map(drop)
        }
    }
}
