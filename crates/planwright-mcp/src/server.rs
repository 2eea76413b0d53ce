//! The server: what a client is told, and how its requests reach the tools.

use crate::answer::Problem;
use crate::app::{page_resource, read_page, shows_pages, tools_with_page};
use crate::awaited::AwaitedPlans;
use crate::call::ToolCall;
use crate::caller::Caller;
use crate::earlier_tasks::{CallTasks, TaskTransport, task_of};
use crate::pipe::ClientPipes;
use crate::progress::{StepCount, progress_sink};
use crate::prompt;
use crate::question::{AskedPerson, Channel, OpenQuestions, ReviewAddress};
use crate::subscription::{Subscriptions, stream_of};
use crate::tool::PlanCall;
use planwright_core::policy::Permission;
use planwright_core::principal::Principal;
use planwright_engine::port::PlanFiles;
use planwright_engine::{Engine, PlanMaker, PlanTool};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult,
    ElicitationCapability, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServiceExt as _};
use std::fmt;
use std::sync::Arc;

const INSTRUCTIONS: &str = "Planwright runs plans that people have agreed to. Propose several tool \
    calls as one plan with plan_propose instead of making them one by one when they change something; \
    findings tell you what to repair. plan_approve asks a person: you cannot approve. plan_execute \
    runs what was approved, journals every step, and can be resumed after a crash.";

/// The most resources that one stream of a client listens to.
const MAX_LISTENED: usize = 64;

/// What the server needs of the process it is in.
pub struct Host {
    pub engine: Engine,
    /// Writes plans for goals.
    pub maker: Arc<dyn PlanMaker>,
    pub files: Arc<dyn PlanFiles>,
    /// The person behind the client, who is asked. `None` where an agent started this process: it
    /// could be its own client, and answer itself.
    pub person: Option<Principal>,
    /// Where the page of the service is, if there is one.
    pub page: Option<String>,
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
    awaited: Arc<AwaitedPlans>,
    subscriptions: Arc<Subscriptions>,
    call_tasks: Arc<CallTasks>,
    /// What pages of the client show. `None` where other servers answer through this one: a page
    /// of theirs could press our buttons.
    shown: Option<Arc<OpenQuestions>>,
}

/// The reason a connection ended other than by its client.
#[derive(Debug, thiserror::Error)]
pub enum ServeMcpError {
    /// The client did not say who it is, or speaks another protocol.
    #[error("the client could not be answered")]
    Opening(#[source] Box<rmcp::service::ServerInitializeError>),
    /// The task of the connection broke.
    #[error("the connection broke off")]
    Broken(#[from] tokio::task::JoinError),
}

/// Serves the client on standard input and output until it goes.
pub async fn serve_stdio(server: impl ServerHandler) -> Result<(), ServeMcpError> {
    // On pipes, nothing is handed to another thread to be read or written.
    let (input, output) = rmcp::transport::stdio_pipes();
    let pipes = ClientPipes::new(input, output);
    // Its futures are boxed at once: the library moves them about before it polls them.
    let opened = server.into_dyn().serve(TaskTransport::new(pipes)).await;
    let running = opened.map_err(|error| ServeMcpError::Opening(Box::new(error)))?;
    running.waiting().await?;
    Ok(())
}

impl PlanServer {
    pub fn new(host: Host) -> Self {
        Self {
            host: Arc::new(host),
            open: Arc::default(),
            awaited: Arc::default(),
            subscriptions: Arc::default(),
            call_tasks: Arc::default(),
            shown: Some(Arc::default()),
        }
    }

    /// Starts, in the background, what agents requested of earlier processes and people approved since.
    pub fn take_up_requests(&self) {
        let awaited = Arc::clone(&self.awaited);
        let host = Arc::clone(&self.host);
        tokio::spawn(async move { awaited.take_up(&host).await });
    }

    /// Shows no page.
    pub(crate) fn without_pages(self) -> Self {
        Self {
            shown: None,
            ..self
        }
    }

    /// Returns whether the review is shown as a page to the person behind a request.
    fn has_page(&self, caller: &Caller, context: &RequestContext<RoleServer>) -> bool {
        self.shown.is_some() && caller.person.is_some() && shows_pages(context)
    }

    /// The tools that the client of a request is offered.
    pub(crate) fn tools_for(&self, context: &RequestContext<RoleServer>) -> Vec<Tool> {
        if self.has_page(&Caller::of(&self.host, context), context) {
            return tools_with_page();
        }
        PlanCall::ALL.map(PlanCall::definition).to_vec()
    }

    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.host
    }

    pub(crate) fn call_tasks(&self) -> &CallTasks {
        &self.call_tasks
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
        Self::channel_if(request, context, |modes| {
            // One that names no mode has forms.
            modes.form.is_some() || modes.url.is_none()
        })
    }

    /// The way to ask a client that can ask in this way.
    fn channel_if(
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        has_mode: impl Fn(&ElicitationCapability) -> bool,
    ) -> Channel {
        let modes = context.client_capabilities();
        let modes = modes.and_then(|capabilities| capabilities.elicitation);
        if !modes.is_some_and(|modes| has_mode(&modes)) {
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

impl PlanServer {
    /// Where the person reviews plans, if their client opens addresses.
    fn review_address(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<ReviewAddress> {
        let service = self.host.page.clone()?;
        let channel = Self::channel_if(request, context, |modes| modes.url.is_some());
        Some(ReviewAddress { service, channel })
    }

    /// All that a call needs.
    pub(crate) fn prepare(
        &self,
        tool: PlanCall,
        caller: Caller,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<ToolCall, ErrorData> {
        let has_page = self.has_page(&caller, context);
        let agent = caller.principal;
        let (person, channel, address) = match caller.person {
            Some(person) => {
                let channel = Self::channel(&request, context);
                (person, channel, self.review_address(&request, context))
            }
            // It is not asked, and so never recorded.
            None => (agent.clone(), Channel::None, None),
        };
        let person = AskedPerson::new(
            self.host.engine.clone(),
            agent.clone(),
            person,
            (channel, address),
            (
                Arc::clone(&self.open),
                self.shown.clone().unwrap_or_default(),
            ),
        );
        let random =
            getrandom::u64().map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let mut args = request.arguments.unwrap_or_default();
        PlanTool::rename_arguments(&mut args);
        Ok(ToolCall {
            tool,
            args,
            agent,
            person: Arc::new(person),
            cancelled: context.ct.clone(),
            key: format!("mcp {random:016x}"),
            awaited: Arc::clone(&self.awaited),
            has_page,
            observers: vec![Arc::new(StepCount::new(progress_sink(context)))],
        })
    }
}

/// What a request waits for is boxed, unless it is small: the library moves the future of a request about
/// before it polls it, with room for that of every kind of request.
impl ServerHandler for PlanServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_tasks()
            .build();
        let about = Implementation::new("planwright", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(about)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools_for(&context)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("unknown tool: {}", request.name), None);
        let tool = PlanCall::from_name(&request.name).ok_or_else(unknown)?;
        let caller = Caller::of(&self.host, &context);
        // Where no page is shown there is nothing that could call it.
        if tool == PlanCall::Decide && !self.has_page(&caller, &context) {
            return Err(unknown());
        }
        if let Err(problem) = caller.check(tool.permission()) {
            return Ok(problem.into_result().into());
        }
        let can_wait = context.client_capabilities();
        let call = self.prepare(tool, caller, request, &context)?;
        if tool.runs_plans() && can_wait.is_some_and(|client| client.supports_tasks()) {
            return self.call_as_task(call).await;
        }
        let result = Box::pin(self.host.call(&call)).await;
        Ok(match call.person.take_question() {
            Some(question) => question.into(),
            None => result.into(),
        })
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Box::pin(self.answer_about_task(request, context)).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.reader(&context)?;
        let listed = Box::pin(self.host.list_plans_as_resources()).await;
        let mut listed =
            listed.map_err(|problem| ErrorData::internal_error(problem.error, None))?;
        if self.has_page(&Caller::of(&self.host, &context), &context) {
            listed.resources.push(page_resource());
        }
        Ok(listed)
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
        if let Some(page) = self.shown.as_ref().and_then(|_| read_page(&request.uri)) {
            return Ok(page.into());
        }
        let read = Box::pin(self.host.read_resource_at(&request.uri, &viewer));
        match read.await {
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

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.reader(&context)?;
        let missing =
            || ErrorData::resource_not_found(format!("there is no resource {}", request.uri), None);
        let watched = self
            .host
            .watch_resource(&request.uri)
            .await
            .ok_or_else(missing)?;
        let too_many = || ErrorData::invalid_request("too many subscriptions are open", None);
        let session = session_of(&context);
        let cancelled = self
            .subscriptions
            .insert(session, request.uri)
            .ok_or_else(too_many)?;
        let host = Arc::clone(&self.host);
        let peer = context.peer.clone();
        tokio::spawn(async move {
            let tell = |uri: String| {
                let peer = peer.clone();
                async move {
                    let told = ResourceUpdatedNotificationParam::new(uri);
                    peer.notify_resource_updated(told).await.is_ok()
                }
            };
            tokio::select! {
                () = cancelled.cancelled() => {}
                () = host.tell_changes(vec![watched], tell) => cancelled.cancel(),
            }
        });
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.remove(session_of(&context), request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        let uris = requested.resource_subscriptions.iter().flatten();
        let is_ours = |uri: &&String| stream_of(uri).is_some() || task_of(uri).is_some();
        let ours = uris.filter(is_ours).cloned();
        accepted.resource_subscriptions = Some(ours.take(MAX_LISTENED).collect());
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.reader(context.request_context())?;
        let mut watched = Vec::new();
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            watched.extend(self.host.watch_resource(uri).await);
        }
        let tell = |uri: String| {
            let sink = context.sink().clone();
            async move { sink.notify_resource_updated(uri).await.is_ok() }
        };
        tokio::select! {
            () = context.cancelled() => {}
            () = Box::pin(self.host.tell_changes(watched, tell)) => {}
            () = Box::pin(self.tell_tasks(&context)) => {}
        }
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let caller = Caller::of(&self.host, &context);
        let task = Box::pin(self.host.read_task(&request.task_id, &caller));
        Ok(GetTaskResult::new(task.await?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = Caller::of(&self.host, &context);
        let answers = &request.input_responses;
        Box::pin(self.host.answer_task(&request.task_id, answers, &caller)).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = Caller::of(&self.host, &context);
        Box::pin(self.host.cancel_task(&request.task_id, &caller)).await
    }
}

/// Tells the sessions of clients of the earlier era apart.
fn session_of(context: &RequestContext<RoleServer>) -> String {
    let parts = context.extensions.get::<http::request::Parts>();
    let session = parts.and_then(|parts| parts.headers.get("mcp-session-id"));
    let session = session.and_then(|session| session.to_str().ok());
    session.unwrap_or_default().to_owned()
}
