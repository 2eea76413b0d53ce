//! `/mcp` and `/mcp/gateway`: this service for clients of the Model Context Protocol.
//!
//! The protocol describes what is sent here, so the OpenAPI document does not. The token decides who
//! the caller is, as on every other route.

use crate::http::auth::{Caller, RouteAccess, authorize};
use crate::http::problem::{HttpResult, OwnForm, Problem, ProblemCode};
use crate::http::state::Http;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use bytes::Bytes;
use http::Method;
use http::header::CONTENT_TYPE;
use http_body_util::combinators::BoxBody;
use planwright_core::policy::Permission;
use planwright_engine::port::BoxFuture;
use std::convert::Infallible;
use std::fmt;

/// The server at one of the two addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpAddress {
    /// Plans as tools.
    Plans,
    /// The same, with the tools of the configured servers.
    Gateway,
}

/// What a client is answered, perhaps as a stream of events.
pub type McpAnswer = http::Response<BoxBody<Bytes, Infallible>>;

/// Answers clients of the Model Context Protocol.
pub trait McpDoor: Send + Sync + fmt::Debug {
    /// The largest message that is read.
    fn max_bytes(&self) -> usize;

    /// Answers a request of a caller that may do no more than `allowed`.
    fn handle(
        &self,
        address: McpAddress,
        caller: Caller,
        allowed: Vec<Permission>,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'static, Result<McpAnswer, Problem>>;
}

const METHODS: [Method; 3] = [Method::POST, Method::GET, Method::DELETE];
const PLANS: &str = "/mcp";
const GATEWAY: &str = "/mcp/gateway";

pub(in crate::http) fn router() -> Router<Http> {
    Router::new()
        .route(PLANS, any(answer_plans))
        .route(GATEWAY, any(answer_gateway))
}

/// Who may use the routes: each tool checks what it is for.
pub(in crate::http) fn access() -> impl Iterator<Item = ((Method, String), RouteAccess)> {
    METHODS.into_iter().flat_map(|method| {
        [PLANS, GATEWAY].map(|path| {
            let access = RouteAccess::May(vec![Permission::Read]);
            ((method.clone(), path.to_owned()), access)
        })
    })
}

async fn answer_plans(
    State(http): State<Http>,
    caller: Caller,
    request: Request,
) -> HttpResult<Response> {
    answer(&http, McpAddress::Plans, caller, request).await
}

async fn answer_gateway(
    State(http): State<Http>,
    caller: Caller,
    request: Request,
) -> HttpResult<Response> {
    answer(&http, McpAddress::Gateway, caller, request).await
}

async fn answer(
    http: &Http,
    address: McpAddress,
    caller: Caller,
    request: Request,
) -> HttpResult<Response> {
    let Some(door) = http.settings.mcp.clone() else {
        return Err(Problem::not_found("this service has no door for MCP"));
    };
    let (parts, body) = request.into_parts();
    let read = to_bytes(body, door.max_bytes()).await;
    let body = read.map_err(|_| {
        let limit = format!("a message may have {} bytes", door.max_bytes());
        Problem::of(ProblemCode::BodyTooLarge, limit)
    })?;
    let policy = http.service.engine.policy();
    let allowed = Permission::ALL
        .into_iter()
        .filter(|action| authorize(&caller, *action, policy).is_ok())
        .collect();
    let request = http::Request::from_parts(parts, body);
    let answer = door.handle(address, caller, allowed, request).await?;
    let mut answer = answer.map(Body::new);
    // An error of the protocol stays one: clients read its code, and no problem document.
    let is_message = answer
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if is_message {
        answer.extensions_mut().insert(OwnForm);
    }
    Ok(answer)
}
