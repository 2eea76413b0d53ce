//! The HTTP service: authentication, limits, routes and problems.
//!
//! A request passes, from the outside in: trace id, headers of every answer, host and origin,
//! requests in flight, authentication, the rate of each principal, the idempotency key, its route.
//! Nothing is decided in a route: the engine decides, a route translates.

mod auth;
mod base_path;
pub(crate) mod body;
mod cors;
mod etag;
mod gzip;
mod headers;
mod idempotency;
mod limits;
mod linked_page;
mod openapi;
mod operator;
mod page;
mod patch;
pub(crate) mod planning_jobs;
mod planning_notes;
mod problem;
mod query;
mod ranges;
pub(crate) mod router;
mod routes;
mod same_answer;
mod serve;
mod settings;
mod state;
mod web;

pub use auth::{AllowedHost, Caller, ParseHostError, RouteAccess, SignIn, SingleSignOn, secret};
pub use base_path::{BasePath, ParseBasePathError};
pub use openapi::document;
pub use operator::{
    OperatorSecret, OperatorServer, OperatorServerState, OperatorSettings, OperatorView,
    OperatorWebhook,
};
pub use problem::{HttpResult, Problem, ProblemCode};
pub use router::app;
pub use routes::mcp::{McpAddress, McpAnswer, McpDoor};
pub use serve::{ServeError, Tls, listen, serve};
pub use settings::Settings;
pub use state::Http;
pub use web::page_is_built;
