//! What the server does about tasks of the earlier era.

use super::calls::{CallState, CallTask};
use super::names::TaskMethod;
use super::status::TaskView;
use crate::call::ToolCall;
use crate::caller::Caller;
use crate::question::{Channel, ask_client};
use crate::server::{Host, PlanServer};
use crate::task::{BETWEEN_LOOKS, SHORT, check, watch_begin};
use crate::tool::PlanCall;
use crate::unknown_request::{no_method, refuse_unknown};
use planwright_core::id::RunId;
use planwright_core::journal::StreamName;
use planwright_core::policy::Permission;
use planwright_core::principal::Principal;
use planwright_core::run::Run;
use planwright_core::status::{CachedStatus, RunStatus};
use planwright_engine::RunCommand;
use planwright_engine::port::StreamInfo;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomNotification, CustomRequest,
    CustomResult, ElicitRequestParams, ErrorCode, ProtocolVersion, RequestMetaObject,
    ServerNotification, ServerResult, TaskStatus,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What belongs to a task says so.
const RELATED: &str = "io.modelcontextprotocol/related-task";
/// Plans whose runs are looked at for one page of a list.
const PAGE: usize = 25;
/// Runs of one plan in a list.
const MAX_RUNS: usize = 8;
/// The time that a cancelled run gets to end before the client is answered.
const STOPPING: Duration = Duration::from_secs(6);

/// What a task is.
enum Target {
    Run(RunId),
    Call(Arc<CallTask>),
}

/// The call of a request that wants it as a task.
pub(crate) fn wanted_call(request: &CustomRequest) -> Option<CallToolRequestParams> {
    let method = TaskMethod::from_renamed(&request.method)?;
    let params = request
        .params
        .clone()
        .filter(|_| method == TaskMethod::Call)?;
    serde_json::from_value(params).ok()
}

/// Returns whether the client opened its connection with the version that has these tasks.
pub(crate) fn knows_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version() == Some(ProtocolVersion::V_2025_11_25)
}

/// The answer to a call of a tool that cannot be a task.
pub(crate) fn no_task(tool: &str) -> ErrorData {
    ErrorData::new(
        ErrorCode::METHOD_NOT_FOUND,
        format!("{tool} cannot be called as a task: call it without `task`"),
        None,
    )
}

/// A call that was made as if no task had been wanted, as clients of earlier versions expect.
pub(crate) fn plain(response: CallToolResponse) -> Result<CustomResult, ErrorData> {
    let mut result = ServerResult::from(response);
    result.strip_result_type_for_legacy_peer();
    let written = serde_json::to_value(result);
    Ok(CustomResult(written.map_err(|error| unwritable(&error))?))
}

fn unwritable(error: &serde_json::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn unknown_task(id: &str) -> ErrorData {
    ErrorData::invalid_params(
        format!("there is no task {id}: tasks/list names yours"),
        None,
    )
}

impl PlanServer {
    /// Answers a request about a task.
    pub(crate) async fn answer_about_task(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = TaskMethod::from_renamed(&request.method);
        let method = method.ok_or_else(|| refuse_unknown(&request))?;
        let is_known = knows_tasks(&context);
        let caller = Caller::of(self.host(), &context);
        let params = request.params.clone().unwrap_or_default();
        let missing = || ErrorData::invalid_params("`taskId` is missing", None);
        let id = || params["taskId"].as_str().ok_or_else(missing);
        let answer = match method {
            TaskMethod::Call => {
                let unreadable = || ErrorData::invalid_params("this is no call of a tool", None);
                let call = wanted_call(&request).ok_or_else(unreadable)?;
                if !is_known {
                    return plain(self.call_tool(call, context).await?);
                }
                let task = self.call_wanted_as_task(call, &context).await?;
                json!({ "task": task.to_value() })
            }
            _ if !is_known => return Err(no_method(method.as_str())),
            TaskMethod::Get => self.view(id()?, &caller).await?.to_value(),
            TaskMethod::Result => self.task_result(id()?, &caller, &context).await?,
            TaskMethod::Cancel => self.cancel_wanted_task(id()?, &caller).await?.to_value(),
            TaskMethod::List => self.list_tasks(params["cursor"].as_str(), &caller).await?,
        };
        Ok(CustomResult(answer))
    }

    /// Makes a call as a task: that of its run, if one begins soon.
    async fn call_wanted_as_task(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<TaskView, ErrorData> {
        let tool = PlanCall::from_name(&request.name);
        let unknown = || ErrorData::invalid_params(format!("unknown tool: {}", request.name), None);
        let tool = tool.ok_or_else(unknown)?;
        if !tool.runs_plans() {
            return Err(no_task(tool.as_str()));
        }
        let caller = Caller::of(self.host(), context);
        check(&caller, tool.permission())?;
        let call = self.prepare(tool, caller.clone(), request, context)?;
        let task = self.begin_call(call, &caller);
        tokio::select! {
            biased;
            // The client gave up before it knew of a task.
            () = context.ct.cancelled() => task.cancelled.cancel(),
            _ = task.wait_until_settled() => {}
            () = tokio::time::sleep(SHORT) => {}
        }
        let view = match task.now() {
            CallState::Running(run) => self.host().view_run(run.as_str(), &run, &caller).await?,
            CallState::Calling | CallState::Ended(..) => {
                let too_many = || ErrorData::internal_error("too many calls are under way", None);
                let (id, kept) = self.call_tasks().keep(task).ok_or_else(too_many)?;
                self.view_call(&id, &kept, &caller).await?
            }
        };
        self.follow_task(&view, caller, context.peer.clone());
        Ok(view)
    }

    /// Makes a call in the background.
    fn begin_call(&self, mut call: ToolCall, caller: &Caller) -> CallTask {
        let (told, state) = watch::channel(CallState::Calling);
        // The call goes on when the request has been answered with its task.
        let cancelled = CancellationToken::new();
        call.cancelled = cancelled.clone();
        // What the run asks is asked by its task.
        call.person.leave_runs_alone();
        let begun = watch_begin(&mut call);
        let host = Arc::clone(self.host());
        let created = host.engine.now();
        tokio::spawn(async move {
            let calling = host.call(&call);
            let mut calling = std::pin::pin!(calling);
            let result = tokio::select! {
                biased;
                Ok(run) = begun => {
                    told.send_replace(CallState::Running(run));
                    // Its result is that of the run, which the journal knows.
                    drop(calling.await);
                    return;
                }
                result = &mut calling => result,
            };
            told.send_replace(match run_in(&result) {
                Some(run) => CallState::Running(run),
                None => CallState::Ended(Box::new(result), host.engine.now()),
            });
        });
        CallTask {
            owner: caller.key.clone(),
            created,
            cancelled,
            state,
        }
    }

    fn find_task(&self, id: &str, caller: &Caller) -> Result<Target, ErrorData> {
        if let Some(call) = self.call_tasks().get(id, &caller.key) {
            return Ok(Target::Call(call));
        }
        id.parse().map(Target::Run).map_err(|_| unknown_task(id))
    }

    async fn view(&self, id: &str, caller: &Caller) -> Result<TaskView, ErrorData> {
        check(caller, Permission::Read)?;
        match self.find_task(id, caller)? {
            Target::Run(run) => self.host().view_run(id, &run, caller).await,
            Target::Call(call) => self.view_call(id, &call, caller).await,
        }
    }

    async fn view_call(
        &self,
        id: &str,
        call: &CallTask,
        caller: &Caller,
    ) -> Result<TaskView, ErrorData> {
        let view = |status, message: &str, updated| TaskView {
            id: id.to_owned(),
            status,
            message: message.to_owned(),
            created: call.created,
            updated,
        };
        Ok(match call.now() {
            CallState::Running(run) => self.host().view_run(id, &run, caller).await?,
            CallState::Calling if call.cancelled.is_cancelled() => view(
                TaskStatus::Cancelled,
                "the call was cancelled",
                call.created,
            ),
            CallState::Calling => view(TaskStatus::Working, "no run has begun yet", call.created),
            CallState::Ended(_, at) if call.cancelled.is_cancelled() => {
                view(TaskStatus::Cancelled, "the call was cancelled", at)
            }
            CallState::Ended(result, at) if result.is_error == Some(true) => view(
                TaskStatus::Failed,
                "nothing was run: the result says why",
                at,
            ),
            CallState::Ended(_, at) => view(TaskStatus::Completed, "the result is there", at),
        })
    }

    /// Waits for the result of a task. What its run asks meanwhile is asked in the client.
    async fn task_result(
        &self,
        id: &str,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        check(caller, Permission::Read)?;
        let request = CallToolRequestParams::new(TaskMethod::Result.as_str());
        let peer = match Self::channel(&request, context) {
            Channel::Request(peer) => Some(peer),
            Channel::Result { .. } | Channel::None => None,
        };
        let result = tokio::select! {
            biased;
            () = context.ct.cancelled() => {
                return Err(ErrorData::invalid_request("the client does not wait any more", None));
            }
            result = self.wait_for_result(id, caller, peer) => result?,
        };
        let CustomResult(mut result) = plain(result.into())?;
        result["_meta"][RELATED] = json!({ "taskId": id });
        Ok(result)
    }

    async fn wait_for_result(
        &self,
        id: &str,
        caller: &Caller,
        peer: Option<Peer<RoleServer>>,
    ) -> Result<CallToolResult, ErrorData> {
        let run = match self.find_task(id, caller)? {
            Target::Run(run) => run,
            Target::Call(call) => match call.wait_until_settled().await {
                CallState::Running(run) => run,
                CallState::Ended(result, _) => return Ok(*result),
                CallState::Calling => return Err(broken()),
            },
        };
        let host = self.host();
        let mut asked = BTreeSet::new();
        let mut changes = host.engine.journals().changes();
        loop {
            changes.borrow_and_update();
            let status = host.run_info(&run).await?.status.status.run_status();
            if status.is_some_and(RunStatus::is_terminal) {
                let run = host.load_task(run.as_str()).await?;
                return Ok(host.result_of_run(&run, &caller.principal).await);
            }
            if status == Some(RunStatus::Waiting)
                && let (Some(peer), Some(person)) = (&peer, &caller.person)
                && let loaded = host.load_task(run.as_str()).await?
                && ask_for_run(host, (id, &loaded), (caller, person), peer, &mut asked).await
            {
                continue;
            }
            changes.changed().await.map_err(|_| broken())?;
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    async fn cancel_wanted_task(&self, id: &str, caller: &Caller) -> Result<TaskView, ErrorData> {
        check(caller, Permission::Cancel)?;
        let mut view = self.view(id, caller).await?;
        if view.status.is_terminal() {
            let words = format!("the task is over: {}", view.message);
            return Err(ErrorData::invalid_params(words, None));
        }
        let run = match self.find_task(id, caller)? {
            Target::Run(run) => Some(run),
            Target::Call(call) => {
                // A run that begins at this moment is cancelled by the call.
                call.cancelled.cancel();
                match call.now() {
                    CallState::Running(run) => Some(run),
                    CallState::Calling | CallState::Ended(..) => None,
                }
            }
        };
        if let Some(run) = run {
            self.host().cancel_run(&run, caller).await?;
            view = self.view(id, caller).await?;
        }
        if !view.status.is_terminal() {
            // What is in flight is stopped, and nothing else starts.
            view.status = TaskStatus::Cancelled;
            "it is being cancelled".clone_into(&mut view.message);
        }
        Ok(view)
    }

    /// The tasks of a caller, those of the newest plans first.
    async fn list_tasks(&self, cursor: Option<&str>, caller: &Caller) -> Result<Value, ErrorData> {
        check(caller, Permission::Read)?;
        let mut tasks = Vec::new();
        if cursor.is_none() {
            for (id, call) in self.call_tasks().of(&caller.key) {
                tasks.push(self.view_call(&id, &call, caller).await?.to_value());
            }
        }
        let (of_runs, next) = self.host().list_run_tasks(cursor, caller).await?;
        tasks.extend(of_runs.iter().map(TaskView::to_value));
        let mut listed = json!({ "tasks": tasks });
        if let Some(next) = next {
            listed["nextCursor"] = json!(next);
        }
        Ok(listed)
    }

    /// Tells the client whenever its task gets another status, while there is room for that.
    fn follow_task(&self, view: &TaskView, caller: Caller, peer: Peer<RoleServer>) {
        let Some(room) = self.call_tasks().follow() else {
            return;
        };
        let server = self.clone();
        let id = view.id.clone();
        let mut told = view.status;
        tokio::spawn(async move {
            let _room = room;
            if let Ok(Target::Call(call)) = server.find_task(&id, &caller) {
                call.wait_until_settled().await;
            }
            let mut changes = server.host().engine.journals().changes();
            while !told.is_terminal() && !peer.is_transport_closed() {
                changes.borrow_and_update();
                let Ok(view) = server.view(&id, &caller).await else {
                    return;
                };
                if view.status != told {
                    told = view.status;
                    let method = "notifications/tasks/status";
                    let notice = CustomNotification::new(method, Some(view.to_value()));
                    let notice = ServerNotification::CustomNotification(notice);
                    if peer.send_notification(notice).await.is_err() {
                        return;
                    }
                    continue;
                }
                if changes.changed().await.is_err() {
                    return;
                }
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
        });
    }
}

/// Asks the person behind a client what a run waits with. Returns whether that was decided.
async fn ask_for_run(
    host: &Arc<Host>,
    (task, run): (&str, &Run),
    (caller, person): (&Caller, &Principal),
    peer: &Peer<RoleServer>,
    asked: &mut BTreeSet<String>,
) -> bool {
    if check(caller, Permission::Run).is_err() {
        return false;
    }
    let agent = &caller.principal;
    let question = crate::run_question::find_question(&host.engine, run, agent).await;
    // What the person left open is not asked again by the same request.
    let Some(question) = question.filter(|question| asked.insert(question.key())) else {
        return false;
    };
    let form = related(question.form.clone(), task);
    let Some(answer) = ask_client(peer, form).await else {
        return false;
    };
    let decided = host.decide_for_task(run, &question, &answer, (agent, person));
    if let Err(error) = decided.await {
        tracing::warn!(run = %run.id(), %error, "an answer came too late");
    }
    true
}

/// A question that says which task it belongs to.
fn related(mut form: ElicitRequestParams, task: &str) -> ElicitRequestParams {
    if let ElicitRequestParams::FormElicitationParams { meta, .. } = &mut form {
        let mut related = RequestMetaObject::new();
        related.insert(RELATED.to_owned(), json!({ "taskId": task }));
        *meta = Some(related);
    }
    form
}

fn broken() -> ErrorData {
    ErrorData::internal_error("the call broke off", None)
}

/// The run of a call that ended.
fn run_in(result: &CallToolResult) -> Option<RunId> {
    let value = result.structured_content.as_ref()?;
    value["runId"].as_str()?.parse().ok()
}

impl Host {
    async fn run_info(&self, run: &RunId) -> Result<StreamInfo, ErrorData> {
        let stream = StreamName::Run(run.clone());
        let info = self.engine.journals().info(&stream).await;
        match info {
            Ok(Some(info)) => Ok(info),
            Ok(None) => Err(unknown_task(run.as_str())),
            Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
        }
    }

    async fn view_run(
        &self,
        id: &str,
        run: &RunId,
        caller: &Caller,
    ) -> Result<TaskView, ErrorData> {
        let info = self.run_info(run).await?;
        TaskView::of_run(id, &info, caller).ok_or_else(|| unknown_task(id))
    }

    /// Cancels a run, and gives it a moment to end.
    async fn cancel_run(&self, run: &RunId, caller: &Caller) -> Result<(), ErrorData> {
        let by = caller.principal.clone();
        let command = RunCommand::Cancel { by };
        let cancelled = self.engine.runs().command(run, command).await;
        cancelled.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let mut changes = self.engine.journals().changes();
        let ended = async {
            loop {
                changes.borrow_and_update();
                let status = self.run_info(run).await?.status.status.run_status();
                if status.is_none_or(RunStatus::is_terminal) {
                    return Ok(());
                }
                changes.changed().await.map_err(|_| broken())?;
            }
        };
        tokio::time::timeout(STOPPING, ended)
            .await
            .unwrap_or(Ok(()))
    }

    /// The runs that a caller began, of one page of plans, and where the next page begins.
    async fn list_run_tasks(
        &self,
        cursor: Option<&str>,
        caller: &Caller,
    ) -> Result<(Vec<TaskView>, Option<String>), ErrorData> {
        let unreadable = |error: &dyn ToString| ErrorData::internal_error(error.to_string(), None);
        let journals = self.engine.journals();
        let invalid = || {
            ErrorData::invalid_params(
                "this is no cursor that tasks/list gave: call it without one",
                None,
            )
        };
        let after = match cursor {
            None => None,
            Some(plan) => {
                let plan = plan.parse().map_err(|_| invalid())?;
                let info = journals.info(&StreamName::Plan(plan)).await;
                Some(
                    info.map_err(|error| unreadable(&error))?
                        .ok_or_else(invalid)?,
                )
            }
        };
        let after = after
            .as_ref()
            .map(|info| (info.created_at, &info.status.plan));
        let plans = journals.plans_by_age(after, PAGE).await;
        let plans = plans.map_err(|error| unreadable(&error))?;
        let next = plans.last().filter(|_| plans.len() == PAGE);
        let next = next.map(|info| info.status.plan.to_string());
        // Plan tools begin runs for the agent behind a token, whoever owns it.
        let agent = Principal::agent(caller.principal.name.clone());
        let mut tasks = Vec::new();
        for info in &plans {
            if info.status.status == CachedStatus::Deleted {
                continue;
            }
            // One damaged plan does not hide the others.
            let Ok((review, _)) = self.engine.plans().load_review(&info.status.plan).await else {
                continue;
            };
            if !planwright_engine::chat::is_listed(&review.current().document, None, false) {
                continue;
            }
            for opened in review.runs().iter().rev().take(MAX_RUNS) {
                let run = &opened.run;
                if journals.starter_of_run(run).await.ok().as_ref() == Some(&agent) {
                    tasks.push(self.view_run(run.as_str(), run, caller).await?);
                }
            }
        }
        Ok((tasks, next))
    }
}
