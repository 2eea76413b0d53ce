//! Authentication: a token on every route, and only what the token's owner may do.
//!
//! What a route is for is declared once, as `x-planwright-action` in the OpenAPI document, and
//! enforced from there. A route that declares nothing is closed to every caller.

use super::cookie::{CookieSession, PROOF_PARAMETER, cookie_session};
use super::tickets::spend_ticket;
use crate::http::auth::{Caller, authorize};
use crate::http::limits::OnConnection;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::state::Http;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use planwright_core::digest::Digest;
use planwright_core::policy::Permission;
use planwright_core::principal::Assurance;
use planwright_core::time::Timestamp;
use planwright_engine::access;
use planwright_engine::passes::{SESSION_PREFIX, recognise_session};
use planwright_engine::port::{Pass, StoreError, Token};
use zeroize::Zeroizing;

/// What may stand in the address of an event stream instead of a header.
const TICKET: &str = "ticket=";
const STREAM_PARAMETERS: [&str; 2] = [TICKET, PROOF_PARAMETER];

/// The callers that may use a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteAccess {
    /// Open without a token.
    Public,
    /// Open to callers that may do all of this.
    May(Vec<Permission>),
}

impl RouteAccess {
    /// The words of `x-planwright-action`; unknown ones open nothing.
    pub fn parse(words: &str) -> Option<Self> {
        if words == "public" {
            return Some(Self::Public);
        }
        let actions: Option<Vec<Permission>> = words.split(' ').map(parse_action).collect();
        actions.filter(|actions| !actions.is_empty()).map(Self::May)
    }

    /// Returns whether only people who decide something use the route.
    pub(crate) fn is_for_decisions(&self) -> bool {
        match self {
            Self::Public => false,
            Self::May(actions) => actions.iter().any(|action| {
                matches!(
                    action,
                    Permission::Approve | Permission::Cancel | Permission::Resolve
                )
            }),
        }
    }
}

fn parse_action(word: &str) -> Option<Permission> {
    Some(match word {
        "read" => Permission::Read,
        "propose" => Permission::Propose,
        "delete" => Permission::Delete,
        "run" => Permission::Run,
        "cancel" => Permission::Cancel,
        "resolve" => Permission::Resolve,
        "approve" => Permission::Approve,
        "comment" => Permission::Comment,
        "administer" => Permission::Administer,
        _ => return None,
    })
}

/// Refuses callers that may not use the route, and hands the others to it as [`Caller`].
pub(crate) async fn authenticate_request(
    State(http): State<Http>,
    mut request: Request,
    next: Next,
) -> Response {
    let check = match access_check(&http, &request) {
        Ok(check) => check,
        Err(problem) => return problem.into_response(),
    };
    let shown = ShownOn {
        connection: request.extensions().get::<OnConnection>().cloned(),
        decides: is_always_admitted(&http, &request),
    };
    match check_access(&http, check, &shown).await {
        Ok(Some(caller)) => {
            if let Some(connection) = &shown.connection {
                connection.note_known();
            }
            request.extensions_mut().insert(caller);
            forget_parameters(&mut request);
            next.run(request).await
        }
        Ok(None) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Returns the access that the route of this request declares.
fn access_of<'a>(http: &'a Http, request: &Request) -> Option<&'a RouteAccess> {
    let path = request.extensions().get::<MatchedPath>()?;
    let method = if request.method() == Method::HEAD {
        &Method::GET
    } else {
        request.method()
    };
    http.openapi
        .get()?
        .access
        .get(&(method.clone(), path.as_str().to_owned()))
}

/// Returns whether the request is a decision of a person, which is let in however busy the service
/// is.
pub(crate) fn is_always_admitted(http: &Http, request: &Request) -> bool {
    let (Some(document), Some(path)) = (
        http.openapi.get(),
        request.extensions().get::<MatchedPath>(),
    ) else {
        return false;
    };
    let route = (request.method().clone(), path.as_str().to_owned());
    document.decisions.contains(&route)
}

/// The actions that a route requires, and the credential that the request brings.
struct AccessCheck {
    actions: Vec<Permission>,
    credential: Credential,
}

enum Credential {
    Token(Zeroizing<String>),
    Session(CookieSession),
    /// A ticket for this path.
    Ticket(String, String),
}

/// Reads the credential of a request; `None` where the route needs none.
fn access_check(http: &Http, request: &Request) -> Result<Option<AccessCheck>, Problem> {
    let actions = match access_of(http, request)
        .ok_or_else(|| refuse_closed_route(http, request))?
    {
        _ if http.settings.metrics_public && request.uri().path() == "/metrics" => return Ok(None),
        RouteAccess::Public => return Ok(None),
        RouteAccess::May(actions) => actions.clone(),
    };
    let path = request.uri().path();
    let bearer = request.headers().contains_key(AUTHORIZATION);
    let credential = if let Some(ticket) = stream_parameter(request, TICKET) {
        Credential::Ticket(ticket.to_owned(), path.to_owned())
    } else if let Some(session) = (!bearer)
        .then(|| cookie_session(&http.settings, request))
        .transpose()?
        .flatten()
    {
        Credential::Session(session)
    } else {
        Credential::Token(Zeroizing::new(bearer_token(request.headers())?.to_owned()))
    };
    Ok(Some(AccessCheck {
        actions,
        credential,
    }))
}

/// Refuses a method that the route does not know, or a route that declares no access.
fn refuse_closed_route(http: &Http, request: &Request) -> Problem {
    let path = request
        .extensions()
        .get::<MatchedPath>()
        .map(MatchedPath::as_str);
    let access = http.openapi.get().map(|document| &document.access);
    let mut methods: Vec<&str> = access
        .into_iter()
        .flatten()
        .filter(|((_, known), _)| Some(known.as_str()) == path)
        .map(|((method, _), _)| method.as_str())
        .collect();
    if methods.is_empty() || methods.contains(&request.method().as_str()) {
        return Problem::forbidden("this route is closed to every caller");
    }
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.sort_unstable();
    Problem::not_allowed(&methods.join(", "))
}

/// What a request for an event stream that brings no token says in its address instead of a header.
pub(super) fn stream_parameter<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let streams = request.method() == Method::GET && request.uri().path().ends_with("/events");
    if !streams || request.headers().contains_key(AUTHORIZATION) {
        return None;
    }
    request
        .uri()
        .query()?
        .split('&')
        .find_map(|pair| pair.strip_prefix(name))
}

/// Removes a used ticket, or the proof of a session, from the address: neither the route nor a log may
/// see it.
fn forget_parameters(request: &mut Request) {
    let named = |name: &&str| stream_parameter(request, name).is_some();
    if !STREAM_PARAMETERS.iter().any(named) {
        return;
    }
    let uri = request.uri();
    let rest: Vec<&str> = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !STREAM_PARAMETERS.iter().any(|name| pair.starts_with(name)))
        .collect();
    let rest = match rest.as_slice() {
        [] => uri.path().to_owned(),
        rest => format!("{}?{}", uri.path(), rest.join("&")),
    };
    if let Ok(rest) = rest.parse() {
        *request.uri_mut() = rest;
    }
}

/// Where a credential was shown, and whether for a decision.
struct ShownOn {
    connection: Option<OnConnection>,
    decides: bool,
}

async fn check_access(
    http: &Http,
    check: Option<AccessCheck>,
    shown: &ShownOn,
) -> Result<Option<Caller>, Problem> {
    let Some(AccessCheck {
        actions,
        credential,
    }) = check
    else {
        return Ok(None);
    };
    let caller = match credential {
        Credential::Token(token) => find_caller(http, (&token, None), shown).await?,
        Credential::Session(CookieSession { text, proof }) => {
            find_caller(http, (&text, Some(&proof)), shown).await?
        }
        Credential::Ticket(ticket, path) => {
            let now = http.service.engine.now();
            let notes = &*http.service.notes;
            let spent = spend_ticket(notes, &ticket, &path, now).await?;
            spent.ok_or_else(|| {
                unauthorized("the ticket was used, has expired, or is for another path")
            })?
        }
    };
    for action in actions {
        authorize(&caller, action, http.service.engine.policy())?;
    }
    Ok(Some(caller))
}

/// Finds the owner of a token or a session. A text that never was one has a turn to wait for, which
/// those that were do not share.
async fn find_caller(
    http: &Http,
    credential: (&str, Option<&str>),
    shown: &ShownOn,
) -> Result<Caller, Problem> {
    let now = http.service.engine.now();
    let hash = Digest::of_bytes(credential.0.as_bytes());
    let turn = http.strangers.wait_for_lookup(&hash, shown.decides).await?;
    // While the token is looked up its connection does not give way to strangers: a flood of them
    // would cut off the very callers that have rights.
    if let Some(connection) = &shown.connection {
        connection.note_known();
    }
    let found = recognise(http, credential, now).await;
    drop(turn);
    if let Some(connection) = &shown.connection
        && !matches!(found, Ok(Some(_)))
    {
        connection.note_stranger();
    }
    let found = found?;
    http.strangers.remember(hash, found.is_some());
    found.ok_or_else(|| {
        unauthorized(if credential.0.starts_with(SESSION_PREFIX) {
            "the session is over"
        } else {
            "the token is unknown, expired or revoked"
        })
    })
}

/// Recognises a token, or a session with what came with it.
async fn recognise(
    http: &Http,
    (text, proof): (&str, Option<&str>),
    now: Timestamp,
) -> Result<Option<Caller>, StoreError> {
    let tokens = &*http.service.tokens;
    if proof.is_some() || text.starts_with(SESSION_PREFIX) {
        let passes = &*http.service.passes;
        let session = Digest::of_bytes(text.as_bytes());
        let (pass, confirmed) = tokio::join!(
            recognise_session((passes, tokens), text, proof, now),
            http.confirmations().until(&session, now),
        );
        let is_confirmed = confirmed?.is_some();
        return Ok(pass?.map(|pass| caller_of_session(pass, is_confirmed)));
    }
    let token = access::recognise(tokens, text, now).await?;
    Ok(token.map(|token| {
        let Token {
            principal,
            role,
            hash,
            ..
        } = token;
        Caller {
            principal,
            role,
            assurance: Assurance::Token,
            credential: hash,
        }
    }))
}

fn caller_of_session(pass: Pass, is_confirmed: bool) -> Caller {
    Caller {
        principal: pass.principal,
        role: pass.role,
        assurance: if is_confirmed {
            Assurance::Passkey
        } else {
            pass.assurance
        },
        credential: pass.hash,
    }
}

fn bearer_token(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else {
        return Err(unauthorized(
            "a token is needed: Authorization: Bearer TOKEN",
        ));
    };
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    token
        .filter(|token| !token.is_empty())
        .ok_or_else(|| unauthorized("the header `Authorization` is not `Bearer TOKEN`"))
}

pub(super) fn unauthorized(detail: &str) -> Problem {
    Problem::of(ProblemCode::Unauthorized, detail)
        .hint("To create one: planwright token create --role ROLE --kind person --name NAME")
}
