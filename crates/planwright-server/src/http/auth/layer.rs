//! Authentication: a token on every route, and only what the token's owner may do.
//!
//! What a route is for is declared once, as `x-planwright-action` in the OpenAPI document, and
//! enforced from there. A route that declares nothing is closed to every caller.

use crate::http::auth::{Caller, authorize};
use crate::http::limits::OnConnection;
use crate::http::problem::Problem;
use crate::http::state::Http;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, StatusCode};
use planwright_core::digest::Digest;
use planwright_core::policy::Permission;
use planwright_core::principal::Assurance;
use planwright_engine::access;
use planwright_engine::port::Token;
use zeroize::Zeroizing;

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
            forget_ticket(&mut request);
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
    let credential = match ticket_of(request) {
        Some(ticket) => Credential::Ticket(ticket.to_owned(), path.to_owned()),
        None => Credential::Token(Zeroizing::new(bearer_token(request.headers())?.to_owned())),
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

/// The ticket of a request for an event stream that brings no token.
fn ticket_of(request: &Request) -> Option<&str> {
    let streams = request.method() == Method::GET && request.uri().path().ends_with("/events");
    if !streams || request.headers().contains_key(AUTHORIZATION) {
        return None;
    }
    request
        .uri()
        .query()?
        .split('&')
        .find_map(|pair| pair.strip_prefix("ticket="))
}

/// Removes a used ticket from the address: neither the route nor a log may see it.
fn forget_ticket(request: &mut Request) {
    if ticket_of(request).is_none() {
        return;
    }
    let uri = request.uri();
    let rest: Vec<&str> = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.starts_with("ticket="))
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
        Credential::Token(token) => find_caller(http, &token, shown).await?,
        Credential::Ticket(ticket, path) => {
            let now = http.service.engine.now();
            let spent = http.tickets.spend(&ticket, &path, now);
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
async fn find_caller(http: &Http, token: &str, shown: &ShownOn) -> Result<Caller, Problem> {
    let now = http.service.engine.now();
    if let Some(caller) = http.sign_in.session(token, now) {
        return Ok(caller);
    }
    let hash = Digest::of_bytes(token.as_bytes());
    let turn = http.strangers.wait_for_lookup(&hash, shown.decides).await?;
    // While the token is looked up its connection does not give way to strangers: a flood of them
    // would cut off the very callers that have rights.
    if let Some(connection) = &shown.connection {
        connection.note_known();
    }
    let found = access::recognise(&*http.service.tokens, token, now).await;
    drop(turn);
    if let Some(connection) = &shown.connection
        && !matches!(found, Ok(Some(_)))
    {
        connection.note_stranger();
    }
    let found = found?;
    http.strangers.remember(hash, found.is_some());
    let token = found.ok_or_else(|| unauthorized("the token is unknown, expired or revoked"))?;
    let Token {
        principal,
        role,
        hash,
        ..
    } = token;
    Ok(Caller {
        principal,
        role,
        assurance: Assurance::Token,
        credential: hash,
    })
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

fn unauthorized(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, detail)
        .hint("planwright token create --role ROLE --kind person --name NAME makes one")
}
