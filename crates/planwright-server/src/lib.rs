//! What other programs see: the documents behind `--json` and, over HTTP, the same ones.
//!
//! Nothing is decided here. Each document is a fold of what the engine knows, in the exact shape
//! that is promised.

pub mod events;
pub mod http;
pub mod observe;
mod service;
pub mod wire;

pub use service::Service;
