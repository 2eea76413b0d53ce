//! The outside: one folder per outside system, and the only place where its types appear.

pub mod broker;
pub mod demo;
pub mod executor;
pub mod files;
pub mod local;
pub mod mcp;
pub mod model;
pub mod objects;
pub mod oidc;
mod outbound;
pub mod postgres;
pub mod process;
mod scarcity;
mod sealing;
pub mod secrets;
pub mod signing;
pub mod sqlite;
pub mod store_copy;
mod tls;
pub mod toolbox;
pub mod vault;
pub mod webauthn;
pub mod webhook;

pub use tls::install_provider as install_crypto;
