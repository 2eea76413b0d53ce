//! Commands for the clients that agents work in: their hooks, and their configuration.

pub(crate) mod hook;
pub(crate) mod setup;
