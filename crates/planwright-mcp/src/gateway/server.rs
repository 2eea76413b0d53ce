//! The server that a client of the gateway talks to: the plan tools, and the tools of the servers.

use super::drive::{ClientRequest, problem, refused};
use super::followed::FollowedRuns;
use super::names::{find_offered, tool_list};
use super::offers::Offers;
use super::pending::PendingCalls;
use super::sessions::Sessions;
use crate::caller::Caller;
use crate::progress::progress_sink;
use crate::question::Channel;
use crate::server::{Host, PlanServer};
use crate::tool::PlanCall;
use planwright_core::plan::Budget;
use planwright_core::policy::{Mode, Permission};
use planwright_core::principal::Principal;
use planwright_core::tool::{Catalog, ToolName};
use planwright_engine::port::Servers;
use planwright_engine::{OpenSessionError, Session, SessionTerms, WantedByClient, with_causes};
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    GetPromptRequestParams, GetPromptResponse, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

const INSTRUCTIONS: &str = "The tools of your servers are behind Planwright, as server__tool. Calls \
    that only read are made at once; others may ask a person first. A guarded tool is called only as \
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
}

impl GatewaySettings {
    pub(super) fn warns(&self) -> bool {
        self.mode == Mode::Warn
    }
}

/// Plans and the tools of the servers, for one or more clients.
#[derive(Debug, Clone)]
pub struct GatewayServer {
    plans: PlanServer,
    pub(super) host: Arc<Host>,
    pub(super) settings: Arc<GatewaySettings>,
    sessions: Arc<Sessions>,
    pub(super) pending: Arc<PendingCalls>,
    pub(super) followed: Arc<FollowedRuns>,
    offers: Offers,
}

impl GatewayServer {
    pub fn new(host: Host, settings: GatewaySettings, servers: Arc<dyn Servers>) -> Self {
        let plans = PlanServer::new(host);
        let offers = Offers {
            servers,
            names: settings.servers.clone(),
        };
        Self {
            host: Arc::clone(plans.host()),
            plans,
            settings: Arc::new(settings),
            sessions: Arc::default(),
            pending: Arc::default(),
            followed: Arc::default(),
            offers,
        }
    }

    /// Ends the sessions of all clients, and waits until that is journaled.
    pub async fn close(&self) {
        self.followed.close().await;
        self.sessions.close().await;
    }

    /// The tools of the servers that are offered, as they are now.
    fn offered(&self) -> Catalog {
        let all = self.host.engine.catalog();
        let of_servers = all
            .iter()
            .filter(|tool| self.settings.servers.contains(&tool.name.server));
        of_servers.cloned().collect()
    }

    /// The session of this caller, begun with its first call.
    async fn session(&self, caller: &Caller) -> Result<Arc<Session>, OpenSessionError> {
        let agent = &caller.principal;
        let terms = SessionTerms {
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
    ) -> CallToolResponse {
        let caller = Caller::of(&self.host, context);
        if let Err(refused) = caller.check(Permission::Run) {
            return refused.into_result().into();
        }
        let channel = match &caller.person {
            Some(_) => PlanServer::channel(&request, context),
            None => Channel::None,
        };
        let request = ClientRequest {
            tool,
            args: request.arguments.unwrap_or_default(),
            agent: caller.principal.clone(),
            person: caller.person.clone(),
            key: caller.key.clone(),
            channel,
            cancelled: context.ct.clone(),
        };
        if let Channel::Result {
            state: Some(state), ..
        } = &request.channel
        {
            let pending = self.pending.take(state, &request);
            return match pending {
                Some(pending) => self.take_up(pending, &request).await,
                None => problem(
                    "denied",
                    "this answer belongs to no call that waits for one",
                    "make the call again without requestState",
                )
                .into(),
            };
        }
        let progress = progress_sink(context);
        if let Some(answer) = self.call_as_step(&request, &progress).await {
            return answer.into();
        }
        let session = match self.session(&caller).await {
            Ok(session) => session,
            Err(error) => {
                return problem(
                    "no_session",
                    &with_causes(&error),
                    "tell the user: nothing is called without a journal",
                )
                .into();
            }
        };
        let wanted = WantedByClient {
            tool: request.tool.to_string(),
            args: Value::Object(request.args.clone()),
            attended: !matches!(request.channel, Channel::None),
            progress,
        };
        match session.call(wanted).await {
            Ok(call) => self.drive(call, &request).await,
            Err(error) => refused(&error).into(),
        }
    }
}

impl ServerHandler for GatewayServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.plans.get_info().with_instructions(INSTRUCTIONS);
        info.capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .build();
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let plans = PlanCall::ALL.into_iter().map(PlanCall::definition);
        let offered = tool_list(&self.offered());
        let tools = plans.chain(offered).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(tool) = PlanCall::from_name(&request.name) {
            self.release_plan(tool, &request, &context).await;
            return self.plans.call_tool(request, context).await;
        }
        let catalog = self.offered();
        let unknown = || ErrorData::invalid_params(format!("unknown tool: {}", request.name), None);
        let tool = find_offered(&catalog, &request.name).ok_or_else(unknown)?;
        Ok(Box::pin(self.call_offered(tool, request, &context)).await)
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
        self.plans.list_resource_templates(page, context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.plans.reader(&context)?;
        match self.offers.read(&request.uri).await? {
            Some(read) => Ok(read.into()),
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
        match self.offers.prompt(request.clone()).await? {
            Some(given) => Ok(given.into()),
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

    /// Tells the client whenever a server has other tools.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut changes = self.offers.servers.changes();
        tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                if context.peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }
}
