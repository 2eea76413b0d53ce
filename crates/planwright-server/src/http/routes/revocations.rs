//! Approvals that are taken back before they are used.

use super::decisions::{check_reason, standing};
use crate::http::auth::{Caller, Trace, authorize};
use crate::http::body::{OptionalBody, PathId};
use crate::http::problem::{HttpResult, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use planwright_api::PlanDecided;
use planwright_core::id::PlanId;
use planwright_core::policy::{MAX_PRINCIPAL_NAME, Permission};
use planwright_core::principal::Principal;
use serde::Deserialize;
use serde_json::Map;
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().routes(routes!(revoke_approval))
}

/// Whose approvals, and why.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({ "reason": "I looked at the wrong file" }))]
struct RevokeApproval {
    /// The person whose approvals are revoked, for an administrator; your own without it.
    #[schema(min_length = 1, max_length = 64)]
    of: Option<String>,
    #[schema(max_length = 10_000)]
    reason: Option<String>,
}

/// Takes an approval back that no run has used yet.
#[utoipa::path(post, path = "/plan/{id}/revoke-approval", operation_id = "revokeApproval", tag = "decisions",
    params(("id" = String, Path, description = "The plan.")),
    request_body = Option<RevokeApproval>,
    responses((status = 200, description = "The approval counts no more.", body = PlanDecided)),
    extensions(("x-planwright-action" = json!("approve"))))]
async fn revoke_approval(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    OptionalBody(RevokeApproval { of, reason }): OptionalBody<RevokeApproval>,
) -> HttpResult<Json<PlanDecided>> {
    check_reason(reason.as_deref().unwrap_or_default())?;
    let of = whose(&caller, of)?;
    let engine = &http.service.engine;
    if of != caller.principal {
        authorize(&caller, Permission::Administer, engine.policy())?;
    }
    super::load(&http, &id).await?;
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let review = engine
        .plans()
        .revoke_approval(&id, &of, &caller.principal, reason)
        .await?;
    http.service.write_files(&id).await;
    // It is done, also where what would run cannot be put together any more.
    let candidate = engine.plans().candidate(&review, &Map::new()).await;
    let (digest, findings) = candidate.map_or_else(
        |_| (review.current().digest, Vec::new()),
        |candidate| (candidate.digest, candidate.findings),
    );
    standing(&http, &review, (&digest, findings), trace).await
}

fn whose(caller: &Caller, of: Option<String>) -> HttpResult<Principal> {
    let Some(name) = of else {
        return Ok(caller.principal.clone());
    };
    if !(1..=MAX_PRINCIPAL_NAME).contains(&name.chars().count()) {
        return Err(Problem::bad_request(format!(
            "`of` is a name of 1 to {MAX_PRINCIPAL_NAME} characters"
        )));
    }
    Ok(Principal::person(name))
}
