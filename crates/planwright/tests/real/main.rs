//! The real program with servers by other authors, installed by `cargo xtask peers`.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, in its helpers too"
)]

mod agent_clients;
mod agent_examples;
mod calls;
mod clients_of_strangers;
mod coding_agents;
mod conformance;
mod crash;
mod early_tasks;
mod followed;
mod gateway;
mod goals;
mod http;
mod inspector;
mod listing;
mod pi_extension;
mod questions;
mod relayed;
mod sign_in;
mod strangers;
mod tasks;
mod token_proxy;
mod trouble;
