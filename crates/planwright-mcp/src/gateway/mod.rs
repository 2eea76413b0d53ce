//! The gateway: the tools of the configured servers behind Planwright, for a client that would else
//! call them directly.
//!
//! Each call is one of a session (see [`planwright_engine::Sessions`]): policy judges it, a person is
//! asked where policy says so, and the journal has it. A guarded tool is called only as a step of an
//! approved plan, which the client proposes with the plan tools that are offered beside the others.

mod drive;
mod followed;
mod link;
mod names;
mod news;
mod offers;
mod pending;
mod server;
mod sessions;
mod templates;
mod watches;

pub use names::NameStyle;
pub(crate) use names::with_prefix;
pub use server::{GatewayServer, GatewaySettings};
