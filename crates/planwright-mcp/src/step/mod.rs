//! The tools of one step as an MCP server, for the coding agent that works on the step: the tools in
//! the step's scope and nothing else. Whether a call is made is decided by the run of the step.

mod server;

pub use server::{StepServer, StepTools};
