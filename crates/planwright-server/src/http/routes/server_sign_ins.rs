//! Signing in to the servers of tools: by an admin for all who use this service, or, where people
//! sign in by themselves, by each for the runs in their name.
//!
//! The page asks for the address and opens it; the browser comes back with a code, which the service
//! exchanges for tokens. A browser that did not begin the sign-in cannot end it.

use crate::http::auth::{Caller, VISIT_LIFE, authorize, own_url, set_visit, visit_of};
use crate::http::body::Params;
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use planwright_core::policy::Permission;
use planwright_core::principal::PrincipalKind;
use planwright_engine::CompletedSignIn;
use planwright_engine::port::{ReturnedCode, ServerSignInError, ServerSignIns};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

/// Where people come back to after signing in to a server.
pub(in crate::http) const FROM_SERVER: &str = "/servers/{name}/sign-in/callback";

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(list_server_sign_ins))
        .routes(routes!(begin_server_sign_in))
        .routes(routes!(end_server_sign_in))
        .routes(routes!(finish_server_sign_in))
}

/// A server that people can sign in to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ServerSignIn {
    /// The server, as the operator names it.
    name: String,
    /// Whether a person has signed in, and that is not over: the caller, if people sign in by themselves.
    signed_in: bool,
    /// Whether people sign in by themselves. Runs then use the sign-in of the person whose name they are in.
    personal: bool,
}

/// Where to sign in.
#[derive(Debug, Serialize, ToSchema)]
struct SignInAddress {
    /// The page to open, in the browser that asked for it.
    address: String,
}

/// Lists the servers over HTTP that people can sign in to.
#[utoipa::path(get, path = "/servers/sign-ins", operation_id = "listServerSignIns", tag = "tools",
    responses((status = 200, description = "The servers.", body = Vec<ServerSignIn>)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_server_sign_ins(State(http): State<Http>, caller: Caller) -> Json<Vec<ServerSignIn>> {
    let servers = match &http.settings.server_sign_ins {
        Some(sign_ins) => sign_ins.servers(&caller.principal).await,
        None => Vec::new(),
    };
    let lines = servers.into_iter().map(|server| ServerSignIn {
        name: server.name,
        signed_in: server.signed_in,
        personal: server.is_personal,
    });
    Json(lines.collect())
}

/// Begins a sign-in to a server: by an admin for everyone who uses this service, or, where people sign in by themselves, by a person for
/// the runs in their name.
#[utoipa::path(post, path = "/servers/{name}/sign-in", operation_id = "beginServerSignIn", tag = "tools",
    params(("name" = String, Path, description = "The server.")),
    responses(
        (status = 200, description = "Where to sign in. The answer sets a cookie, and the browser that has it can end the sign-in, for ten minutes.", body = SignInAddress),
        (status = 403, description = "All share the sign-in and the caller is no admin, or people sign in by themselves and the caller is a program.", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such server to sign in to.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The server does not say how to sign in, or does not answer.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("run"))))]
async fn begin_server_sign_in(
    State(http): State<Http>,
    caller: Caller,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> HttpResult<Response> {
    let place = (&uri, &headers);
    let sign_ins = check_server(&http, &caller, &name)?;
    let redirect = callback_url(&http, place, &name)?;
    let now = http.service.engine.now();
    let visits = http.visits().await?;
    let (visit, kept) = visits.begin_for(redirect, &caller.principal, now)?;
    let address = sign_ins.address(&name, &visit).await.map_err(explain)?;
    tracing::info!(server = name, by = %caller.principal, "a person begins to sign in to a server");
    let mut response = Json(SignInAddress { address }).into_response();
    let answer = response.headers_mut();
    answer.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(cookie) = set_visit(&http.settings, place, &kept, VISIT_LIFE) {
        answer.insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Forgets a sign-in to a server. What is under way with it comes to its end.
#[utoipa::path(delete, path = "/servers/{name}/sign-in", operation_id = "endServerSignIn", tag = "tools",
    params(("name" = String, Path, description = "The server.")),
    responses(
        (status = 204, description = "It is forgotten here, or there was none."),
        (status = 403, description = "All share the sign-in and the caller is no admin, or people sign in by themselves and the caller is a program.", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such server to sign in to.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "It could not be forgotten.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("run"))))]
async fn end_server_sign_in(
    State(http): State<Http>,
    caller: Caller,
    Path(name): Path<String>,
) -> HttpResult<StatusCode> {
    let sign_ins = check_server(&http, &caller, &name)?;
    let ended = sign_ins.sign_out(&name, &caller.principal).await;
    let had_one = ended.map_err(explain)?;
    tracing::info!(server = name, by = %caller.principal, had_one, "a person signed out of a server");
    Ok(StatusCode::NO_CONTENT)
}

/// What a browser brings back. Those who sign in add more, which is not read.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Returned {
    /// What is exchanged for tokens; absent if the person was refused, or refused.
    code: Option<String>,
    /// What the browser was sent away with.
    state: Option<String>,
    /// Who answers.
    iss: Option<String>,
}

/// Receives a browser that comes back from signing in to a server.
#[utoipa::path(get, path = "/servers/{name}/sign-in/callback", operation_id = "finishServerSignIn", tag = "tools",
    params(("name" = String, Path, description = "The server."), Returned),
    responses(
        (status = 200, description = "The sign-in is done.", body = String, content_type = "text/plain"),
        (status = 401, description = "It was refused, is over, or was begun in another browser.", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such server to sign in to.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The one who signs in does not answer.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("public"))))]
async fn finish_server_sign_in(
    State(http): State<Http>,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    Params(returned): Params<Returned>,
) -> HttpResult<Response> {
    let place = (&uri, &headers);
    let (sign_ins, is_personal) = find_server(&http, &name)?;
    let refused = |words: &str| Problem::of(ProblemCode::SignInRefused, words);
    let browser = visit_of(&http.settings, place);
    let (Some(state), Some(browser)) = (returned.state, browser) else {
        return Err(refused("this browser did not begin a sign-in"));
    };
    let redirect = callback_url(&http, place, &name)?;
    let now = http.service.engine.now();
    let visits = http.visits().await?;
    let visit = visits.end_for(redirect, (&state, &browser), now);
    let (visit, by) = visit.ok_or_else(|| refused("the sign-in is over: begin again"))?;
    let code = returned
        .code
        .ok_or_else(|| refused("the sign-in was refused"))?;
    let code = ReturnedCode {
        code: &code,
        issuer: returned.iss.as_deref(),
    };
    sign_ins
        .finish((&name, &by), &visit, code)
        .await
        .map_err(explain)?;
    tracing::info!(server = name, %by, "a person signed in to a server");
    let signed_in = CompletedSignIn {
        server: &name,
        by: &by,
        is_personal,
    };
    // The sign-in is made: a run that does not go on with it waits for an answer as before.
    match http.supervisor.continue_after_sign_in(signed_in).await {
        Ok(runs) => tracing::info!(server = name, runs, "steps go on after a sign-in"),
        Err(error) => tracing::warn!(%error, "steps that wait for a sign-in cannot be found"),
    }
    let words = format!("You are signed in to {name}. You can close this page.\n");
    let mut response = (StatusCode::OK, words).into_response();
    let answer = response.headers_mut();
    answer.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(cookie) = set_visit(&http.settings, place, "", Duration::ZERO) {
        answer.insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The servers, if this is one that people can sign in to, and whether they do by themselves. Nothing
/// else of the path is used.
fn find_server<'a>(http: &'a Http, name: &str) -> HttpResult<(&'a dyn ServerSignIns, bool)> {
    let sign_ins = http.settings.server_sign_ins.as_deref();
    let found = sign_ins.and_then(|sign_ins| Some((sign_ins, sign_ins.is_personal(name)?)));
    found.ok_or_else(|| Problem::not_found("there is no such server to sign in to"))
}

/// The servers, if this caller may sign in to this one: what all share is an admin's.
fn check_server<'a>(
    http: &'a Http,
    caller: &Caller,
    name: &str,
) -> HttpResult<&'a dyn ServerSignIns> {
    let (sign_ins, is_personal) = find_server(http, name)?;
    if !is_personal {
        authorize(caller, Permission::Administer, http.service.engine.policy())?;
    } else if caller.principal.kind != PrincipalKind::Person {
        return Err(Problem::of(
            ProblemCode::NotPermitted,
            format!(
                "each person signs in to {name}, and {} is no person",
                caller.principal
            ),
        ));
    }
    Ok(sign_ins)
}

fn explain(error: ServerSignInError) -> Problem {
    tracing::warn!(%error, "a person could not sign in to a server");
    match error {
        ServerSignInError::Unknown(_) => Problem::not_found(error.to_string()),
        ServerSignInError::Unavailable(words) => {
            Problem::later(ProblemCode::NoIdentityProvider, words, 10)
        }
        ServerSignInError::Refused(words) => Problem::of(ProblemCode::SignInRefused, words),
    }
}

fn callback_url(http: &Http, place: (&Uri, &HeaderMap), name: &str) -> HttpResult<String> {
    let own = own_url(&http.settings, place);
    let own = own.ok_or_else(|| Problem::bad_request("the request names no host"))?;
    Ok(format!("{own}{}", FROM_SERVER.replace("{name}", name)))
}
