//! The HTTP service: routes, authentication, limits, event streams and metrics.
//!
//! Nothing is decided here: the engine decides, a route translates. The documents that are answered
//! are those of `planwright-api`; the ones that have to be loaded first are in [`documents`].

pub mod documents;
pub mod events;
pub mod http;
pub mod observe;
mod service;

pub use service::Service;
