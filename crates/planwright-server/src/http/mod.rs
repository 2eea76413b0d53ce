//! The HTTP service: authentication, limits, routes and problems.
//!
//! A request passes, from the outside in: trace id, headers of every answer, host and origin,
//! requests in flight, authentication, the rate of each principal, the idempotency key, its route.
//! Nothing is decided in a route: the engine decides, a route translates.

mod auth;
pub(crate) mod body;
mod etag;
mod headers;
mod idempotency;
mod limits;
mod linked_page;
mod openapi;
mod page;
mod patch;
mod problem;
pub(crate) mod router;
mod routes;
mod serve;
mod settings;
mod state;
mod web;

pub use auth::{AllowedHost, Caller, ParseHostError, RouteAccess, SignIn, Tickets, secret};
pub use openapi::document;
pub use problem::{HttpResult, Problem};
pub use router::app;
pub use routes::mcp::{McpAddress, McpAnswer, McpDoor};
pub use serve::{ServeError, Tls, listen, serve};
pub use settings::Settings;
pub use state::Http;
pub use web::page_is_built;
