//! Plans as tools of any agent: an MCP server over the facades of the engine.
//!
//! The caller is an agent and stays one: it proposes, reads, comments, runs what was agreed to and
//! asks for approval. Only a person approves, and the person is asked by the client on our behalf;
//! nothing that a model writes is taken for an answer.

mod answer;
mod app;
mod awaited;
mod call;
mod caller;
mod earlier_tasks;
mod gateway;
mod http;
mod pipe;
mod progress;
mod prompt;
mod question;
mod resource;
mod run_question;
mod server;
mod step;
mod subscription;
mod task;
mod tool;
mod unknown_request;

pub use gateway::{GatewayServer, GatewaySettings, NameStyle};
pub use http::{HttpAnswer, HttpCaller, HttpRefusal, HttpServer, MAX_BODY};
pub use server::{Host, PlanServer, ServeMcpError, serve_stdio};
pub use step::{StepServer, StepTools};
