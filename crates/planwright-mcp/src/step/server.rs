//! What the agent is told, and how its calls reach the gateway of the step.

use crate::answer::Problem;
use crate::gateway::with_prefix;
use crate::unknown_request::refuse_unknown;
use planwright_core::run::{StepError, StepErrorCode};
use planwright_engine::port::{BoxFuture, GatewayTool};
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

const INSTRUCTIONS: &str = "These are the tools of one step of a plan, and the only ones for the \
    work on it. Each call is judged and journaled; one that needs a person waits for the answer. A \
    refusal says why: do not try the same call again.";

/// The gateway of the step, wherever it is.
pub trait StepTools: Send + Sync + fmt::Debug {
    /// The tools in scope that are there now.
    fn list(&self) -> BoxFuture<'static, Result<Vec<GatewayTool>, StepError>>;

    /// Makes a call, if the run of the step agrees to it.
    fn call(&self, tool: String, args: Value) -> BoxFuture<'static, Result<Value, StepError>>;
}

/// The tools of one step as a server.
#[derive(Debug, Clone)]
pub struct StepServer {
    tools: Arc<dyn StepTools>,
}

impl StepServer {
    pub fn new(tools: Arc<dyn StepTools>) -> Self {
        Self { tools }
    }

    /// The tools by the names under which they are offered. A name that could mean two of them means
    /// none, and is not offered.
    async fn offered(&self) -> Result<BTreeMap<String, GatewayTool>, ErrorData> {
        let listed = self.tools.list().await;
        let listed = listed.map_err(|error| ErrorData::internal_error(error.message, None))?;
        let mut offered = BTreeMap::<String, Option<GatewayTool>>::new();
        for tool in listed {
            let Some((server, name)) = tool.name.split_once('.') else {
                continue;
            };
            offered
                .entry(with_prefix(server, name))
                .and_modify(|taken| *taken = None)
                .or_insert(Some(tool));
        }
        let single = offered.into_iter();
        Ok(single
            .filter_map(|(name, tool)| Some((name, tool?)))
            .collect())
    }
}

impl ServerHandler for StepServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let about = Implementation::new("planwright", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(about)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offered = self.offered().await?.into_iter();
        let tools = offered.map(|(name, tool)| define(name, tool));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(refuse_unknown(&request))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut offered = self.offered().await?;
        // A name that is not offered goes to the run as it is: it refuses it, and says so in its
        // journal.
        let name = match offered.remove(request.name.as_ref()) {
            Some(tool) => tool.name,
            None => request.name.to_string(),
        };
        let args = Value::Object(request.arguments.unwrap_or_default());
        let made = tokio::select! {
            biased;
            // The call itself goes on: it may have had its effect already.
            () = context.ct.cancelled() => {
                let why = "the client gave the call up; it may still be made";
                return Ok(Problem::new(why).code(StepErrorCode::Cancelled.as_str()).into_result().into());
            }
            made = self.tools.call(name, args) => made,
        };
        let result = match made {
            Ok(value) => result_of(value),
            Err(error) => Problem::new(error.message)
                .code(error.code.as_str())
                .into_result(),
        };
        Ok(result.into())
    }
}

fn define(name: String, tool: GatewayTool) -> Tool {
    let schema = |value: Value| -> Arc<JsonObject> {
        match value {
            Value::Object(fields) => Arc::new(fields),
            _ => Arc::default(),
        }
    };
    let hints = tool.annotations;
    let mut annotations = ToolAnnotations::new();
    annotations.title.clone_from(&tool.title);
    annotations.read_only_hint = hints.read_only_hint;
    annotations.destructive_hint = hints.destructive_hint;
    annotations.idempotent_hint = hints.idempotent_hint;
    annotations.open_world_hint = hints.open_world_hint;
    let mut offered =
        Tool::new(name, tool.description, schema(tool.schema)).with_annotations(annotations);
    offered.title = tool.title;
    // Clients of the earlier era know no other results than objects.
    let of_objects = |schema: &Value| schema["type"] == "object";
    offered.output_schema = tool.output_schema.filter(of_objects).map(schema);
    offered
}

/// The value of a call, as a server would have answered.
fn result_of(value: Value) -> CallToolResult {
    match value {
        Value::String(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Value::Object(_) => CallToolResult::structured(value),
        other => CallToolResult::success(vec![ContentBlock::text(other.to_string())]),
    }
}
