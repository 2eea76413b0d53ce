//! Which tools the server has, and which call goes to which of them.

use super::{echo, fail, random_bytes, sleep};
use crate::toolbox::InProcessServer;
use planwright_core::tool::ToolDefinition;
use planwright_engine::port::{BoxFuture, Call, CallError, Outcome};

pub(super) const SERVER: &str = "demo";

/// The server `demo`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Demo;

impl InProcessServer for Demo {
    fn name(&self) -> &'static str {
        SERVER
    }

    fn definitions(&self) -> Vec<ToolDefinition> {
        vec![
            echo::definition(),
            fail::definition(),
            random_bytes::definition(),
            sleep::definition(),
        ]
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        match call.tool.tool.as_str() {
            echo::NAME => Box::pin(std::future::ready(echo::run(call))),
            fail::NAME => Box::pin(std::future::ready(fail::run(&call))),
            random_bytes::NAME => Box::pin(random_bytes::run(call)),
            sleep::NAME => Box::pin(sleep::run(call)),
            other => Box::pin(std::future::ready(Err(CallError::Unavailable(format!(
                "there is no tool {other}"
            ))))),
        }
    }
}
