//! Signing in, and who one is.

use crate::http::auth::Caller;
use crate::http::auth::secret;
use crate::http::body::JsonBody;
use crate::http::problem::{HttpResult, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(sign_in))
        .routes(routes!(whoami))
        .routes(routes!(ticket))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignInRequest {
    /// The code of the link that the service printed on its terminal.
    code: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Session {
    token: String,
    expires_at: String,
}

/// Spends a sign-in code for a session.
#[utoipa::path(post, path = "/sign-in", operation_id = "signIn", tag = "access",
    request_body = SignInRequest,
    responses((status = 200, description = "A session.", body = Session), (status = 401, description = "The code is not good, or no longer.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("public"))))]
async fn sign_in(
    State(http): State<Http>,
    JsonBody(SignInRequest { code }): JsonBody<SignInRequest>,
) -> HttpResult<Json<Session>> {
    let token = secret("pws_")?;
    let spent = http.sign_in.spend(&code, &token, http.service.engine.now());
    let refused = || {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "the code was used, has expired, or never was one",
        )
    };
    let expires_at = spent.ok_or_else(refused)?.to_string();
    Ok(Json(Session { token, expires_at }))
}

/// What the ticket is for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "path": "/events" }))]
struct TicketRequest {
    /// `/events` or `/plan/{id}/events`, without a query.
    path: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TicketAnswer {
    ticket: String,
    expires_at: String,
}

/// Gives a ticket for one event stream, to be used once as `?ticket=` within 30 seconds.
#[utoipa::path(post, path = "/tickets", operation_id = "ticket", tag = "access",
    request_body = TicketRequest,
    responses((status = 200, description = "The ticket.", body = TicketAnswer)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn ticket(
    State(http): State<Http>,
    caller: Caller,
    JsonBody(TicketRequest { path }): JsonBody<TicketRequest>,
) -> HttpResult<Json<TicketAnswer>> {
    let streams = path.parse::<Uri>().is_ok_and(|uri| uri.path() == path)
        && (path == "/events" || path.starts_with("/plan/") && path.ends_with("/events"));
    if !streams {
        return Err(Problem::bad_request(
            "a ticket is for the path of an event stream",
        ));
    }
    let ticket = secret("pwk_")?;
    let now = http.service.engine.now();
    let full = || {
        Problem::later(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many tickets are open",
            30,
        )
    };
    let expires_at = http
        .tickets
        .give(&ticket, caller, path, now)
        .ok_or_else(full)?
        .to_string();
    Ok(Json(TicketAnswer { ticket, expires_at }))
}

#[derive(Debug, Serialize, ToSchema)]
struct Whoami {
    /// `person`, `agent` or `service`.
    kind: &'static str,
    name: String,
    role: &'static str,
    /// How we know: `token` or `web_sign_in`.
    #[schema(value_type = String)]
    assurance: planwright_core::principal::Assurance,
}

/// Says whose token this is.
#[utoipa::path(get, path = "/whoami", operation_id = "whoami", tag = "access",
    responses((status = 200, description = "Who it is.", body = Whoami)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn whoami(
    Caller {
        principal,
        role,
        assurance,
        credential: _,
    }: Caller,
) -> Json<Whoami> {
    Json(Whoami {
        kind: principal.kind.as_str(),
        name: principal.name,
        role: role.as_str(),
        assurance,
    })
}
