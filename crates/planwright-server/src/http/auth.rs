//! The door: a token on every route, and only what the token's owner may do.
//!
//! What a route is for is declared once, as `x-planwright-action` in the OpenAPI document, and
//! enforced from there. A route that declares nothing is closed to everybody.

use super::caller::{Caller, authorize};
use super::problem::Problem;
use super::state::Http;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, StatusCode};
use planwright_core::policy::Permission;
use planwright_core::principal::Assurance;
use planwright_engine::access;
use planwright_engine::port::Token;
use zeroize::Zeroizing;

/// Who may use a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Anybody, without a token.
    Public,
    /// Whoever may do all of this.
    May(Vec<Permission>),
}

impl Entry {
    /// The words of `x-planwright-action`; unknown ones open nothing.
    pub fn parse(words: &str) -> Option<Self> {
        if words == "public" {
            return Some(Self::Public);
        }
        let actions: Option<Vec<Permission>> = words.split(' ').map(action).collect();
        actions.filter(|actions| !actions.is_empty()).map(Self::May)
    }

    /// Decisions of people are let in however busy the service is.
    pub fn is_always_admitted(&self) -> bool {
        match self {
            Self::Public => false,
            Self::May(actions) => actions
                .iter()
                .any(|action| matches!(action, Permission::Approve | Permission::Cancel)),
        }
    }
}

fn action(word: &str) -> Option<Permission> {
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

/// Lets in who may, and tells the route who it is.
pub(super) async fn layer(State(http): State<Http>, mut request: Request, next: Next) -> Response {
    let door = match door(&http, &request) {
        Ok(door) => door,
        Err(problem) => return problem.into_response(),
    };
    match enter(&http, door).await {
        Ok(Some(caller)) => {
            request.extensions_mut().insert(caller);
            forget_ticket(&mut request);
            next.run(request).await
        }
        Ok(None) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Who may use the route of this request.
pub(super) fn entry_of<'a>(http: &'a Http, request: &Request) -> Option<&'a Entry> {
    let path = request.extensions().get::<MatchedPath>()?;
    let method = if request.method() == Method::HEAD {
        &Method::GET
    } else {
        request.method()
    };
    http.openapi
        .get()?
        .entries
        .get(&(method.clone(), path.as_str().to_owned()))
}

/// What has to be shown at the door of a route, and what the request shows.
struct Door {
    actions: Vec<Permission>,
    shown: Shown,
}

enum Shown {
    Token(Zeroizing<String>),
    /// A ticket for this path.
    Ticket(String, String),
}

/// Nothing has to be shown where anybody may enter.
fn door(http: &Http, request: &Request) -> Result<Option<Door>, Problem> {
    let actions = match entry_of(http, request).ok_or_else(|| closed(http, request))? {
        _ if http.settings.metrics_public && request.uri().path() == "/metrics" => return Ok(None),
        Entry::Public => return Ok(None),
        Entry::May(actions) => actions.clone(),
    };
    let path = request.uri().path();
    let shown = match ticket(request) {
        Some(ticket) => Shown::Ticket(ticket.to_owned(), path.to_owned()),
        None => Shown::Token(Zeroizing::new(bearer(request.headers())?.to_owned())),
    };
    Ok(Some(Door { actions, shown }))
}

/// A method that the route does not know, or a route that declares nothing: open to nobody.
fn closed(http: &Http, request: &Request) -> Problem {
    let path = request
        .extensions()
        .get::<MatchedPath>()
        .map(MatchedPath::as_str);
    let entries = http.openapi.get().map(|document| &document.entries);
    let mut methods: Vec<&str> = entries
        .into_iter()
        .flatten()
        .filter(|((_, known), _)| Some(known.as_str()) == path)
        .map(|((method, _), _)| method.as_str())
        .collect();
    if methods.is_empty() || methods.contains(&request.method().as_str()) {
        return Problem::forbidden("this route is open to nobody");
    }
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.sort_unstable();
    Problem::not_allowed(&methods.join(", "))
}

/// The ticket of a request for an event stream that brings no token.
fn ticket(request: &Request) -> Option<&str> {
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

/// A ticket that was used is nobody else's business: neither the route nor a log sees it.
fn forget_ticket(request: &mut Request) {
    if ticket(request).is_none() {
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

async fn enter(http: &Http, door: Option<Door>) -> Result<Option<Caller>, Problem> {
    let Some(Door { actions, shown }) = door else {
        return Ok(None);
    };
    let caller = match shown {
        Shown::Token(token) => authenticate(http, &token).await?,
        Shown::Ticket(ticket, path) => {
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

/// The owner of a token.
async fn authenticate(http: &Http, token: &str) -> Result<Caller, Problem> {
    let now = http.service.engine.now();
    if let Some(caller) = http.sign_in.session(token, now) {
        return Ok(caller);
    }
    let found = access::recognise(&*http.service.tokens, token, now).await?;
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

fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
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
