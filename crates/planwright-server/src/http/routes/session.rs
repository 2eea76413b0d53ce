//! Signing in, and who one is.

use crate::http::auth::{Caller, cookie_text, give_ticket, keep_cookie, secret};
use crate::http::body::JsonBody;
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode, Uri};
use planwright_api::{PrincipalKindShape, RoleShape};
use planwright_core::digest::Digest;
use planwright_core::principal::Assurance;
use planwright_engine::access;
use planwright_engine::passes::{
    self, INVITATION_PREFIX, SessionForm, SignedIn, accept_invitation, end_session, open_session,
};
use planwright_engine::port::PassKind;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(sign_in))
        .routes(routes!(renew_session))
        .routes(routes!(sign_out))
        .routes(routes!(whoami))
        .routes(routes!(ticket))
}

/// What is shown, and what is wanted for it. One of `code` and `token`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "code": "3mZ…", "cookie": true }))]
struct SignInRequest {
    /// The code of the link that the service printed on its terminal, or of an invitation.
    code: Option<String>,
    /// A token of `planwright token create`. The session ends with it.
    token: Option<String>,
    /// The session is a cookie that no script can read, and a proof that has to come with it.
    #[serde(default)]
    cookie: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Session {
    /// The session, to be brought as a token is. Absent if it is a cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// What has to come with the cookie, as the header `Planwright-Proof`, or as `?proof=` of an event stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
    expires_at: String,
}

/// Opens a session for a code or a token.
#[utoipa::path(post, path = "/sign-in", operation_id = "signIn", tag = "access",
    request_body = SignInRequest,
    responses((status = 200, description = "A session.", body = Session), (status = 401, description = "The code is not good, or no longer.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("public"))))]
async fn sign_in(
    State(http): State<Http>,
    uri: Uri,
    headers: HeaderMap,
    JsonBody(shown): JsonBody<SignInRequest>,
) -> HttpResult<Response> {
    let form = if shown.cookie {
        SessionForm::Cookie
    } else {
        SessionForm::Bearer
    };
    let who = recognise(&http, shown).await?;
    let now = http.service.engine.now();
    let opened = open_session(&*http.service.passes, who, form, now).await?;
    let session = Session {
        token: opened
            .proof
            .is_none()
            .then(|| opened.text.expose().to_owned()),
        proof: opened.proof.as_ref().map(|proof| proof.expose().to_owned()),
        expires_at: opened.pass.expires_at.to_string(),
    };
    let mut response = Json(session).into_response();
    if opened.proof.is_some() {
        let life = opened.pass.expires_at.since(now);
        set_cookie(
            &http,
            (&uri, &headers),
            &mut response,
            (opened.text.expose(), life),
        );
    }
    Ok(response)
}

/// Who shows a code or a token.
async fn recognise(http: &Http, shown: SignInRequest) -> HttpResult<SignedIn> {
    let now = http.service.engine.now();
    match (shown.code, shown.token) {
        (Some(code), None) => {
            let who = if code.starts_with(INVITATION_PREFIX) {
                let hash = Digest::of_bytes(code.as_bytes());
                let _turn = http.strangers.wait_for_lookup(&hash, false).await?;
                accept_invitation(&*http.service.passes, &code, now).await?
            } else {
                http.sign_in.spend(&code, now)
            };
            who.ok_or_else(|| {
                Problem::of(
                    ProblemCode::SignInRefused,
                    "the code was used, has expired, or never was one",
                )
            })
        }
        (None, Some(text)) => {
            let hash = Digest::of_bytes(text.as_bytes());
            let turn = http.strangers.wait_for_lookup(&hash, false).await?;
            let found = access::recognise(&*http.service.tokens, &text, now).await?;
            drop(turn);
            http.strangers.remember(hash, found.is_some());
            let token = found.ok_or_else(|| {
                Problem::of(
                    ProblemCode::SignInRefused,
                    "the token is unknown, expired or revoked",
                )
            })?;
            Ok(SignedIn {
                principal: token.principal.clone(),
                role: token.role,
                assurance: Assurance::Token,
                token: Some(token),
            })
        }
        (None, None) | (Some(_), Some(_)) => Err(Problem::of(
            ProblemCode::BadBody,
            "show one of the two: either `code` or `token`",
        )),
    }
}

/// Gives the browser its cookie for some time; for no time, takes it away.
fn set_cookie(
    http: &Http,
    place: (&Uri, &HeaderMap),
    response: &mut Response,
    (text, life): (&str, Duration),
) {
    if let Some(cookie) = keep_cookie(&http.settings, place, text, life) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Renewed {
    expires_at: String,
}

fn no_session() -> Problem {
    Problem::of(ProblemCode::NoSession, "the request brought no session")
        .hint("POST /sign-in opens one")
}

/// Makes the session of this request last for another 12 hours, and for at most 30 days in all.
#[utoipa::path(post, path = "/session/renew", operation_id = "renewSession", tag = "access",
    responses((status = 200, description = "Until when it lasts now.", body = Renewed), (status = 409, description = "The request brought no session.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("read"))))]
async fn renew_session(
    State(http): State<Http>,
    uri: Uri,
    headers: HeaderMap,
    caller: Caller,
) -> HttpResult<Response> {
    let now = http.service.engine.now();
    let stores = (&*http.service.passes, &*http.service.tokens);
    let until = passes::renew_session(stores, &caller.credential, now).await?;
    let until = until.ok_or_else(no_session)?;
    let expires_at = until.to_string();
    let mut response = Json(Renewed { expires_at }).into_response();
    if let Some(text) = cookie_text(&http.settings, (&uri, &headers)) {
        set_cookie(
            &http,
            (&uri, &headers),
            &mut response,
            (&text, until.since(now)),
        );
    }
    Ok(response)
}

/// Ends the session of this request, with its event streams.
#[utoipa::path(delete, path = "/session", operation_id = "signOut", tag = "access",
    responses((status = 204, description = "It is over."), (status = 409, description = "The request brought no session.", body = Problem, content_type = "application/problem+json")),
    extensions(("x-planwright-action" = json!("read"))))]
async fn sign_out(
    State(http): State<Http>,
    uri: Uri,
    headers: HeaderMap,
    caller: Caller,
) -> HttpResult<Response> {
    if !end_session(&*http.service.passes, &caller.credential).await? {
        return Err(no_session());
    }
    let now = http.service.engine.now();
    http.confirmations().forget(&caller.credential, now).await?;
    http.events.open_streams().close_streams(&caller.credential);
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&http, (&uri, &headers), &mut response, ("", Duration::ZERO));
    Ok(response)
}

/// What the ticket is for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "path": "/events" }))]
struct TicketRequest {
    /// `/events` or `/plan/{id}/events`, without a query.
    #[schema(pattern = r"^(/plan/[A-Za-z0-9][A-Za-z0-9_-]{0,62})?/events$")]
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
    let path = http.settings.base_path.strip(&path).to_owned();
    let streams = path.parse::<Uri>().is_ok_and(|uri| uri.path() == path)
        && (path == "/events" || path.starts_with("/plan/") && path.ends_with("/events"));
    if !streams {
        return Err(Problem::bad_request(
            "a ticket is for the path of an event stream",
        ));
    }
    let ticket = secret("pwk_")?;
    let now = http.service.engine.now();
    let full = || Problem::later(ProblemCode::TooManyTickets, "too many tickets are open", 30);
    let given = give_ticket(&*http.service.notes, &ticket, (caller, path), now).await?;
    let expires_at = given.ok_or_else(full)?.to_string();
    Ok(Json(TicketAnswer { ticket, expires_at }))
}

#[derive(Debug, Serialize, ToSchema)]
struct Whoami {
    #[schema(value_type = PrincipalKindShape)]
    kind: &'static str,
    name: String,
    #[schema(value_type = RoleShape)]
    role: &'static str,
    /// How we know: `token`, `web_sign_in`, `single_sign_on` or, for a while after it was used, `passkey`.
    #[schema(value_type = String)]
    assurance: Assurance,
    /// Until when the session of this request lasts, if it brought one.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Renewed>,
}

/// Says whose token or session this is.
#[utoipa::path(get, path = "/whoami", operation_id = "whoami", tag = "access",
    responses((status = 200, description = "Who it is.", body = Whoami)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn whoami(State(http): State<Http>, caller: Caller) -> HttpResult<Json<Whoami>> {
    let passes = &http.service.passes;
    let session = passes.find(PassKind::Session, &caller.credential).await?;
    Ok(Json(Whoami {
        kind: caller.principal.kind.as_str(),
        name: caller.principal.name,
        role: caller.role.as_str(),
        assurance: caller.assurance,
        session: session.map(|session| Renewed {
            expires_at: session.expires_at.to_string(),
        }),
    }))
}
