//! The server: what a client is told, and how its requests reach the tools.

use crate::answer::Problem;
use crate::call::ToolCall;
use crate::caller::Caller;
use crate::prompt;
use crate::question::{AskedPerson, Channel, OpenQuestions};
use crate::tool::PlanCall;
use planwright_core::policy::Permission;
use planwright_core::principal::Principal;
use planwright_engine::port::PlanFiles;
use planwright_engine::{Engine, PlanMaker};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServiceExt as _};
use std::fmt;
use std::sync::Arc;

const INSTRUCTIONS: &str = "Planwright runs plans that people have agreed to. Propose several tool \
    calls as one plan with plan_propose instead of making them one by one when they change something; \
    findings tell you what to repair. plan_approve asks a person: you cannot approve. plan_execute \
    runs what was approved, journals every step, and can be resumed after a crash.";

/// What the server needs of the process it is in.
pub struct Host {
    pub engine: Engine,
    /// Writes plans for goals.
    pub maker: Arc<dyn PlanMaker>,
    pub files: Arc<dyn PlanFiles>,
    /// The person behind the client, who is asked. `None` where an agent started this process: it
    /// could be its own client, and answer itself.
    pub person: Option<Principal>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

/// Plans as tools of a client.
#[derive(Debug, Clone)]
pub struct PlanServer {
    host: Arc<Host>,
    open: Arc<OpenQuestions>,
}

/// The reason a connection ended other than by its client.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client did not say who it is, or speaks another protocol.
    #[error("the client could not be answered")]
    Opening(#[source] Box<rmcp::service::ServerInitializeError>),
    /// The task of the connection broke.
    #[error("the connection broke off")]
    Broken(#[from] tokio::task::JoinError),
}

/// Serves the client on standard input and output until it goes.
pub async fn serve_stdio(server: impl ServerHandler) -> Result<(), ServeError> {
    let opened = server.serve(rmcp::transport::stdio()).await;
    let running = opened.map_err(|error| ServeError::Opening(Box::new(error)))?;
    running.waiting().await?;
    Ok(())
}

impl PlanServer {
    pub fn new(host: Host) -> Self {
        Self {
            host: Arc::new(host),
            open: Arc::default(),
        }
    }

    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// The caller of a request that reads.
    pub(crate) fn reader(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Principal, ErrorData> {
        let caller = Caller::of(&self.host, context);
        let checked = caller.check(Permission::Read);
        checked.map_err(|problem| ErrorData::invalid_request(problem.error, None))?;
        Ok(caller.principal)
    }

    pub(crate) fn channel(
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Channel {
        let can_ask = context
            .client_capabilities()
            .is_some_and(|capabilities| capabilities.elicitation.is_some());
        if !can_ask {
            return Channel::None;
        }
        let modern = context
            .protocol_version()
            .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        if modern {
            Channel::Result {
                responses: request.input_responses.clone(),
                state: request.request_state.clone(),
            }
        } else {
            Channel::Request(context.peer.clone())
        }
    }
}

impl ServerHandler for PlanServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
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
        let tools = PlanCall::ALL.into_iter().map(PlanCall::definition);
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("unknown tool: {}", request.name), None);
        let tool = PlanCall::from_name(&request.name).ok_or_else(unknown)?;
        let caller = Caller::of(&self.host, &context);
        if let Err(problem) = caller.check(tool.permission()) {
            return Ok(problem.into_result().into());
        }
        let agent = caller.principal;
        let (person, channel) = match caller.person {
            Some(person) => (person, Self::channel(&request, &context)),
            // It is not asked, and so never recorded.
            None => (agent.clone(), Channel::None),
        };
        let person = Arc::new(AskedPerson::new(
            self.host.engine.clone(),
            person,
            channel,
            Arc::clone(&self.open),
        ));
        let random =
            getrandom::u64().map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let call = ToolCall {
            tool,
            args: request.arguments.unwrap_or_default(),
            agent,
            person: Arc::clone(&person),
            cancelled: context.ct.clone(),
            key: format!("mcp {random:016x}"),
        };
        let result = Box::pin(self.host.call(&call)).await;
        Ok(match person.take_question() {
            Some(question) => question.into(),
            None => result.into(),
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.reader(&context)?;
        let listed = self.host.list_plans_as_resources().await;
        listed.map_err(|problem| ErrorData::internal_error(problem.error, None))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(Host::resource_templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let missing = |words: String| ErrorData::resource_not_found(words, None);
        let viewer = self.reader(&context)?;
        let read = self.host.read_resource_at(&request.uri, &viewer).await;
        match read {
            Ok(Some(result)) => Ok(result.into()),
            Ok(None) => Err(missing(format!("there is no resource {}", request.uri))),
            Err(Problem { error, .. }) => Err(missing(error)),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompt::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prompt = prompt::get_prompt(&request.name, request.arguments.as_ref());
        match prompt {
            Ok(prompt) => Ok(prompt.into()),
            Err(problem) => Err(ErrorData::invalid_params(problem, None)),
        }
    }
}
