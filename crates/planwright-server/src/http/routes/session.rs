//! Signing in, and who one is.

use crate::http::body::JsonBody;
use crate::http::caller::Caller;
use crate::http::problem::{Answer, Problem};
use crate::http::router::Routes;
use crate::http::sign_in::secret;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default().routes(routes!(sign_in)).routes(routes!(whoami))
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
    responses((status = 200, body = Session), (status = 401, description = "The code is not good, or no longer.")),
    extensions(("x-planwright-action" = json!("public"))))]
async fn sign_in(
    State(http): State<Http>,
    JsonBody(SignInRequest { code }): JsonBody<SignInRequest>,
) -> Answer<Json<Session>> {
    let environment = http.service.engine.environment();
    let token = secret("pws_")?;
    let spent = http.sign_in.spend(&code, &token, environment.clock.now());
    let refused =
        || Problem::new(StatusCode::UNAUTHORIZED, "the code was used, has expired, or never was one");
    let expires_at = spent.ok_or_else(refused)?.to_string();
    Ok(Json(Session { token, expires_at }))
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
    responses((status = 200, body = Whoami)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn whoami(Caller { principal, role, assurance }: Caller) -> Json<Whoami> {
    Json(Whoami { kind: principal.kind.as_str(), name: principal.name, role: role.as_str(), assurance })
}
