//! The HTTP service: who may come in, what they may do, and how everything is answered.
//!
//! A request passes, from the outside in: trace id, headers of every answer, host and origin,
//! limits, admission, authentication, the idempotency key, its route. Nothing is decided in a
//! route: the engine decides, a route translates.

mod auth;
pub(crate) mod body;
pub(crate) mod caller;
mod connection;
mod doorkeeper;
mod etag;
mod headers;
mod hosts;
mod idempotency;
mod limits;
mod openapi;
mod page;
mod patch;
mod problem;
pub(crate) mod router;
mod routes;
mod serve;
mod settings;
mod shapes;
mod sign_in;
mod state;
mod tickets;

pub use auth::Entry;
pub use caller::Caller;
pub use hosts::{AllowedHost, ParseHostError};
pub use openapi::document;
pub use problem::{Answer, Problem};
pub use router::app;
pub use serve::{ServeError, Tls, listen, serve};
pub use settings::Settings;
pub use sign_in::{SignIn, secret};
pub use state::Http;
pub use tickets::Tickets;
