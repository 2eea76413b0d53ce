//! The server that a client of the gateway talks to: the plan tools, and the tools of the servers.

#![expect(
    deprecated,
    reason = "clients of the earlier era set levels and watch resources one by one"
)]

use super::drive::{AttendedCall, ClientRequest, problem, refused};
use super::followed::FollowedRuns;
use super::link::{ClientLink, LogWish, capabilities_of, severity};
use super::names::{LatestTools, NameStyle, OfferedTools};
use super::news::{MAX_WATCHED, Ticker};
use super::offers::{Asking, Offers, refusal};
use super::pending::{PendingCalls, is_ours};
use super::sessions::Sessions;
use super::watches::{Watch, Watches};
use crate::caller::Caller;
use crate::earlier_tasks::{knows_tasks, no_task, plain, wanted_call};
use crate::progress::progress_sink;
use crate::question::Channel;
use crate::server::{Host, PlanServer};
use crate::subscription::stream_of;
use crate::tool::PlanCall;
use planwright_core::plan::Budget;
use planwright_core::policy::{Mode, Permission};
use planwright_core::principal::Principal;
use planwright_core::tool::ToolName;
use planwright_engine::port::{CallClient, ClientInput, ServerQuestion, Servers};
use planwright_engine::{OpenSessionError, Session, SessionTerms, WantedByClient, with_causes};
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

const INSTRUCTIONS: &str = "The tools of your servers are behind Planwright, as server__tool or by \
    their own names. Calls that only read are made at once; others may ask a person first. A guarded tool is called only as \
    a step of an approved plan: propose the calls with plan_propose, have it approved with \
    plan_approve, and run it with plan_execute, or make its calls yourself in their order with exactly \
    the arguments that were approved.";

/// How the gateway treats its clients.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// What becomes of a call that a person would have to agree to.
    pub mode: Mode,
    /// The person whose configuration this is.
    pub owner: Principal,
    /// What the session of a client may spend.
    pub budget: Budget,
    /// The servers whose tools are offered.
    pub servers: BTreeSet<String>,
    /// How their tools and prompts are named.
    pub names: NameStyle,
    /// Whether clients read addresses that they make from templates of the servers.
    pub templates: bool,
}

impl GatewaySettings {
    pub(super) fn warns(&self) -> bool {
        self.mode == Mode::Warn
    }
}

/// Plans and the tools of the servers, for one or more clients.
#[derive(Debug, Clone)]
pub struct GatewayServer {
    pub(super) plans: PlanServer,
    pub(super) host: Arc<Host>,
    pub(super) settings: Arc<GatewaySettings>,
    sessions: Arc<Sessions>,
    pub(super) pending: Arc<PendingCalls>,
    pub(super) followed: Arc<FollowedRuns>,
    pub(super) offers: Offers,
    latest: Arc<LatestTools>,
    pub(super) watches: Arc<Watches>,
    /// The least severe level that any client wants to hear of.
    lowest: Arc<Mutex<Option<LoggingLevel>>>,
    pub(super) client: Arc<ClientState>,
}

/// What one client of the earlier era set up.
#[derive(Debug, Default)]
pub(super) struct ClientState {
    level: Mutex<Option<LoggingLevel>>,
    watched: Mutex<BTreeMap<String, Watch>>,
}

impl ClientState {
    pub(super) fn watches(&self, server: &str, uri: &str) -> bool {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched
            .get(uri)
            .is_some_and(|watch| watch.is_of(server, uri))
    }
}

impl GatewayServer {
    pub fn new(host: Host, settings: GatewaySettings, servers: Arc<dyn Servers>) -> Self {
        let plans = PlanServer::new(host).without_pages();
        let offers = Offers {
            servers: Arc::clone(&servers),
            names: settings.servers.clone(),
            style: settings.names,
            templates: settings.templates,
        };
        Self {
            host: Arc::clone(plans.host()),
            plans,
            settings: Arc::new(settings),
            sessions: Arc::default(),
            pending: Arc::default(),
            followed: Arc::default(),
            offers,
            latest: Arc::default(),
            watches: Arc::new(Watches::new(servers)),
            lowest: Arc::default(),
            client: Arc::default(),
        }
    }

    /// Starts, in the background, what agents requested of earlier processes and people approved since.
    pub fn take_up_requests(&self) {
        self.plans.take_up_requests();
    }

    /// The same gateway for another client.
    #[must_use]
    pub fn for_client(&self) -> Self {
        Self {
            client: Arc::default(),
            ..self.clone()
        }
    }

    /// Ends the sessions of all clients, and waits until that is journaled.
    pub async fn close(&self) {
        // A call that waits for its client would keep its session open.
        self.pending.clear();
        self.followed.close().await;
        self.sessions.close().await;
    }

    /// The tools of the servers that are offered, as they are now.
    fn offered(&self) -> Arc<OfferedTools> {
        self.latest.of(self.host.engine.catalog(), |all| {
            let of_servers = all
                .iter()
                .filter(|tool| self.settings.servers.contains(&tool.name.server))
                // Clients read resources as resources.
                .filter(|tool| !tool.made_here);
            OfferedTools::new(&of_servers.cloned().collect(), self.settings.names)
        })
    }

    /// The session of this caller, begun with its first call.
    async fn session(&self, caller: &Caller) -> Result<Arc<Session>, OpenSessionError> {
        let agent = &caller.principal;
        let terms = || SessionTerms {
            client: agent.name.clone(),
            agent: agent.clone(),
            mode: self.settings.mode,
            owner: self.settings.owner.clone(),
            budget: self.settings.budget.clone(),
            servers: self.settings.servers.clone(),
        };
        self.sessions
            .get(&caller.key, &self.host.engine, terms)
            .await
    }

    /// Lets go of a plan that its client carried out itself and now wants to go on by itself.
    async fn release_plan(
        &self,
        tool: PlanCall,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) {
        let plan = request
            .arguments
            .as_ref()
            .and_then(|args| args.get("planId"));
        let plan = plan
            .and_then(Value::as_str)
            .and_then(|plan| plan.parse().ok());
        if let (true, Some(plan)) = (tool.runs_plans(), plan) {
            let caller = Caller::of(&self.host, context);
            self.followed.release(&caller.key, &plan).await;
        }
    }

    async fn call_offered(
        &self,
        tool: ToolName,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = Caller::of(&self.host, context);
        if let Err(refused) = caller.check(Permission::Run) {
            return Ok(refused.into_result().into());
        }
        let channel = match &caller.person {
            Some(_) => PlanServer::channel(&request, context),
            None => Channel::None,
        };
        let is_modern = is_modern(context);
        let request = ClientRequest {
            tool,
            capabilities: self.asking(&caller, context).capabilities,
            log: self.log_wish(context),
            peer: context.peer.clone(),
            progress: context.meta.get_progress_token(),
            is_modern,
            responses: request.input_responses.filter(|_| is_modern),
            state: request.request_state.filter(|_| is_modern),
            args: request.arguments.unwrap_or_default(),
            caller,
            channel,
            cancelled: context.ct.clone(),
        };
        let progress = progress_sink(context);
        if let Some(state) = request.state.as_deref().filter(|state| is_ours(state)) {
            let unknown = || {
                let words = "the requestState belongs to no call that waits for an answer: make the \
                    call again without it";
                ErrorData::invalid_params(words, None)
            };
            let pending = self.pending.take(state, &request).ok_or_else(unknown)?;
            return Box::pin(self.take_up(pending, &request, &progress)).await;
        }
        // What a server is told again is no step of a plan.
        if request.state.is_none()
            && request.responses.is_none()
            && let Some(answer) = self.call_as_step(&request, &progress).await
        {
            return answer;
        }
        // A server that asked the client for something gets its answer with a call of its own.
        let input = ClientInput {
            capabilities: None,
            responses: request
                .responses
                .clone()
                .unwrap_or_default()
                .into_iter()
                .collect(),
            state: request.state.clone(),
        };
        match self.begin(&request, input).await {
            Ok(call) => self.drive(call, &request).await,
            Err(refused) => Ok((*refused).into()),
        }
    }

    /// Has a call judged, and begins it.
    pub(super) async fn begin(
        &self,
        request: &ClientRequest,
        input: ClientInput,
    ) -> Result<AttendedCall, Box<CallToolResult>> {
        let session = self.session(&request.caller).await.map_err(|error| {
            let next = "tell the user: nothing is called without a journal";
            Box::new(problem("no_session", &with_causes(&error), next))
        })?;
        let redaction = self.host.engine.redaction().clone();
        let capabilities = request.capabilities.clone();
        let (link, heard) = ClientLink::new(capabilities, input, request.log, redaction);
        let wanted = WantedByClient {
            tool: request.tool.to_string(),
            args: Value::Object(request.args.clone()),
            attended: !matches!(request.channel, Channel::None),
            progress: link.progress(),
            client: Some(Arc::new(link) as Arc<dyn CallClient>),
        };
        let begun = session.call(wanted).await;
        let call = begun.map_err(|error| Box::new(refused(&error)))?;
        Ok(AttendedCall::new(call, heard))
    }

    /// The client of a request, as far as servers may ask it for something.
    fn asking(&self, caller: &Caller, context: &RequestContext<RoleServer>) -> Asking {
        Asking {
            peer: context.peer.clone(),
            capabilities: capabilities_of(context.client_capabilities(), caller.person.is_some()),
            is_modern: is_modern(context),
        }
    }

    /// Which messages of a server's log the client wants: a modern one says so with each request.
    fn log_wish(&self, context: &RequestContext<RoleServer>) -> LogWish {
        if is_modern(context) {
            return context
                .meta
                .log_level()
                .map_or(LogWish::Nothing, LogWish::From);
        }
        let level = self.client.level.lock();
        let level = *level.unwrap_or_else(PoisonError::into_inner);
        level.map_or(LogWish::Usual, LogWish::From)
    }

    /// Notes the level that a client wants. Returns whether servers have to be told.
    fn note_level(&self, level: LoggingLevel) -> bool {
        let mut own = self
            .client
            .level
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *own = Some(level);
        drop(own);
        let mut lowest = self.lowest.lock().unwrap_or_else(PoisonError::into_inner);
        // What one client does not want to hear another may.
        let is_new = lowest.is_none_or(|lowest| severity(level) < severity(lowest));
        if is_new {
            *lowest = Some(level);
        }
        is_new
    }
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// What a request waits for is boxed, as in the server of the plans.
impl ServerHandler for GatewayServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.plans.get_info().with_instructions(INSTRUCTIONS);
        info.capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let plans = PlanCall::ALL.into_iter().map(PlanCall::definition);
        let tools = plans.chain(self.offered().list()).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(tool) = PlanCall::from_name(&request.name) {
            self.release_plan(tool, &request, &context).await;
            return Box::pin(self.plans.call_tool(request, context)).await;
        }
        let unknown = || ErrorData::invalid_params(format!("unknown tool: {}", request.name), None);
        let tool = self.offered().find(&request.name).ok_or_else(unknown)?;
        Box::pin(self.call_offered(tool, request, &context)).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let Some(call) = wanted_call(&request) else {
            return Box::pin(self.plans.answer_about_task(request, context)).await;
        };
        match PlanCall::from_name(&call.name) {
            Some(tool) => {
                self.release_plan(tool, &call, &context).await;
                Box::pin(self.plans.answer_about_task(request, context)).await
            }
            None if knows_tasks(&context) => Err(no_task(&call.name)),
            None => plain(Box::pin(self.call_tool(call, context)).await?),
        }
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        if let Some(ours) = PlanCall::from_name(name) {
            return Some(ours.definition());
        }
        self.offered().definition(name)
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = self.plans.list_resources(page, context).await?;
        listed.resources.extend(self.offers.resources().await);
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = self.plans.list_resource_templates(page, context).await?;
        let offered = self.offers.resource_templates().await;
        listed.resource_templates.extend(offered);
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.plans.reader(&context)?;
        let asking = self.asking(&Caller::of(&self.host, &context), &context);
        let read = Box::pin(self.offers.read(request.clone(), &asking));
        match read.await? {
            Some(read) => Ok(read),
            None => self.plans.read_resource(request, context).await,
        }
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut listed = self.plans.list_prompts(page, context).await?;
        listed.prompts.extend(self.offers.prompts().await);
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.plans.reader(&context)?;
        let asking = self.asking(&Caller::of(&self.host, &context), &context);
        let given = Box::pin(self.offers.prompt(request.clone(), &asking));
        match given.await? {
            Some(given) => Ok(given),
            None => self.plans.get_prompt(request, context).await,
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.plans.reader(&context)?;
        self.offers.complete(&request).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.plans.reader(&context)?;
        if !self.note_level(request.level) {
            return Ok(());
        }
        let level = json!(request.level).as_str().unwrap_or_default().to_owned();
        for server in &self.settings.servers {
            let question = ServerQuestion::LogLevel(level.clone());
            if let Err(error) = self.offers.servers.ask(server, question).await {
                tracing::debug!(server, %error, "a server was not told what to log");
            }
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if stream_of(&request.uri).is_some() {
            return self.plans.subscribe(request, context).await;
        }
        self.plans.reader(&context)?;
        let missing = || {
            let words = format!("there is no resource {}", request.uri);
            ErrorData::resource_not_found(words, None)
        };
        let server = self.offers.owner(&request.uri).await.ok_or_else(missing)?;
        let watch = self.watches.watch(&server, &request.uri).await;
        let watch = watch.map_err(refusal)?;
        let watched = &self.client.watched;
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.len() >= MAX_WATCHED && !watched.contains_key(&request.uri) {
            let words = format!("{MAX_WATCHED} resources are watched: unsubscribe from one");
            return Err(ErrorData::invalid_request(words, None));
        }
        watched.insert(request.uri, watch);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if stream_of(&request.uri).is_some() {
            return self.plans.unsubscribe(request, context).await;
        }
        self.plans.reader(&context)?;
        let watched = &self.client.watched;
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        let unwatched = watched.remove(&request.uri);
        // What it asks its server is no matter of this list.
        drop(watched);
        drop(unwatched);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.truncate(MAX_WATCHED);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.plans.reader(context.request_context())?;
        Box::pin(self.tell_subscriber(&context)).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.plans.get_task(request, context).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.plans.update_task(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.plans.cancel_task(request, context).await
    }

    /// Tells the client whenever a server has something else.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let ticker = Ticker::new(self);
        let telling = self.clone().tell_changes(ticker, context.peer);
        tokio::spawn(telling);
    }
}
