//! Inviting people.

use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use planwright_api::RoleShape;
use planwright_core::policy::Role;
use planwright_engine::passes::{INVITATION_LIFE, Invitation, invite};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().routes(routes!(invite_person))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(example = json!({ "name": "Bob", "role": "approver" }))]
struct InvitationRequest {
    /// The name under which the person appears in the journal.
    name: String,
    /// The most they may do.
    #[schema(value_type = RoleShape)]
    role: String,
    /// How long the link is good; 24 hours unless it is said, at most 720.
    #[schema(minimum = 1, maximum = 720)]
    expires_in_hours: Option<u32>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct InvitationAnswer {
    /// What signs in once. A link to the page with `#sign-in=` and this code does it.
    code: String,
    expires_at: String,
}

/// Invites a person, who signs in once with the code that is answered.
#[utoipa::path(post, path = "/invitations", operation_id = "invite", tag = "access",
    request_body = InvitationRequest,
    responses((status = 201, description = "The invitation.", body = InvitationAnswer)),
    extensions(("x-planwright-action" = json!("administer"))))]
async fn invite_person(
    State(http): State<Http>,
    caller: Caller,
    JsonBody(asked): JsonBody<InvitationRequest>,
) -> HttpResult<(StatusCode, Json<InvitationAnswer>)> {
    let role: Role = asked
        .role
        .parse()
        .map_err(|error| Problem::of(ProblemCode::BadBody, format!("`role`: {error}")))?;
    let invitation = Invitation {
        name: asked.name,
        role,
        lifetime: asked.expires_in_hours.map_or(INVITATION_LIFE, |hours| {
            Duration::from_hours(u64::from(hours))
        }),
    };
    let engine = &http.service.engine;
    let giver = (&engine.policy().roles, &caller.principal);
    let invited = invite(&*http.service.passes, giver, &invitation, engine.now()).await?;
    let answer = InvitationAnswer {
        code: invited.text.expose().to_owned(),
        expires_at: invited.pass.expires_at.to_string(),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}
