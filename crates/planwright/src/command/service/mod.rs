//! Commands of the HTTP service and of the programs that talk to it.

pub(crate) mod call;
pub(crate) mod mcp;
mod mcp_door;
mod operator_view;
pub(crate) mod queue;
pub(crate) mod serve;
mod step_tools;
mod stop_signals;
pub(crate) mod token;
pub(crate) mod webhooks;
pub(crate) mod worker;
pub(crate) mod workers;
