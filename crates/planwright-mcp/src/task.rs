//! Runs as tasks, for clients that come back for the result instead of waiting.
//!
//! The id of a task is that of its run, so that it outlives this process and says nothing that the
//! journal does not know.

use crate::answer::outcome;
use crate::call::ToolCall;
use crate::caller::Caller;
use crate::earlier_tasks::task_of;
use crate::run_question::{RunQuestion, find_question};
use crate::server::{Host, PlanServer};
use planwright_core::id::RunId;
use planwright_core::journal::StreamName;
use planwright_core::policy::Permission;
use planwright_core::principal::Principal;
use planwright_core::run::{Run, RunState};
use planwright_core::status::{CachedStatus, RunStatus};
use planwright_engine::{Observer, PlanTool, PlanToolCall, PlanTools, RunCommand};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, CreateTaskResult, DetailedTask, ElicitRequest, ElicitResult,
    InputRequest, InputRequests, InputResponses, NotificationMetaObject, ServerNotification, Task,
    TaskPayload, TaskStatus, TaskStatusNotification,
};
use rmcp::service::SubscriptionContext;
use serde_json::Map;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// A run that ends sooner is worth waiting for.
pub(crate) const SHORT: Duration = Duration::from_millis(500);
/// The number of times a client may ask how a run stands.
pub(crate) const POLL_MS: u64 = 1_000;
/// The shortest time between two looks at tasks that change.
pub(crate) const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Tells which run was begun.
struct Begun(Mutex<Option<oneshot::Sender<RunId>>>);

impl Observer for Begun {
    fn entry(&self, _: &Run, _: &planwright_core::journal::Entry<planwright_core::run::RunEvent>) {}

    fn executing(&self, run: &Run) {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waiting) = waiting {
            // The call may have ended meanwhile: its result is there then.
            drop(waiting.send(run.id().clone()));
        }
    }
}

/// Tells which run a call begins, once it has.
pub(crate) fn watch_begin(call: &mut ToolCall) -> oneshot::Receiver<RunId> {
    let (begun, started) = oneshot::channel();
    call.observers
        .push(Arc::new(Begun(Mutex::new(Some(begun)))));
    started
}

impl PlanServer {
    /// Makes a call that may take long: its result if that comes soon, else the task of its run.
    pub(crate) async fn call_as_task(
        &self,
        mut call: ToolCall,
    ) -> Result<CallToolResponse, ErrorData> {
        let started = watch_begin(&mut call);
        // What the run asks is asked by its task.
        call.person.leave_runs_alone();
        // The run goes on when the request has been answered with its task.
        let request = std::mem::take(&mut call.cancelled);
        let cancelled = call.cancelled.clone();
        let person = Arc::clone(&call.person);
        let host = Arc::clone(self.host());
        let mut calling = tokio::spawn(async move { host.call(&call).await });
        let going_on = async {
            let run = started.await;
            tokio::time::sleep(SHORT).await;
            run
        };
        let ended = tokio::select! {
            biased;
            () = request.cancelled() => {
                cancelled.cancel();
                calling.await
            }
            ended = &mut calling => ended,
            begun = going_on => match begun {
                Ok(run) => return Ok(CallToolResponse::Task(self.host().create_task(&run).await?)),
                // It ends without having begun a run.
                Err(_) => calling.await,
            },
        };
        let result = ended.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        if let Some(question) = person.take_question() {
            return Ok(question.into());
        }
        match waiting_run(&result) {
            Some(run) => Ok(CallToolResponse::Task(self.host().create_task(&run).await?)),
            None => Ok(result.into()),
        }
    }
}

impl PlanServer {
    /// Tells a modern client of every change of the tasks that it listens to, until it does not any
    /// more.
    pub(crate) async fn tell_tasks(&self, context: &SubscriptionContext) {
        let request = context.request_context();
        let caller = Caller::of(self.host(), request);
        let uris = context.accepted().resource_subscriptions.iter().flatten();
        let tasks = uris.filter_map(|uri| task_of(uri)).map(str::to_owned);
        let mut followed: Vec<FollowedTask> = tasks.map(FollowedTask::new).collect();
        let mut changes = self.host().engine.journals().changes();
        loop {
            changes.borrow_and_update();
            for task in &mut followed {
                let Some(changed) = task.look(self.host(), &caller).await else {
                    continue;
                };
                let mut notice = TaskStatusNotification::new(changed.into());
                let mut meta = NotificationMetaObject::new();
                meta.set_subscription_id(context.sink().id().clone());
                notice.params.meta = Some(meta);
                let notice = ServerNotification::TaskStatusNotification(notice);
                if request.peer.send_notification(notice).await.is_err() {
                    return;
                }
            }
            followed.retain(|task| !task.told.is_terminal());
            // The client listens to something else perhaps.
            if followed.is_empty() || changes.changed().await.is_err() {
                return std::future::pending().await;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }
}

/// A task whose changes are told.
struct FollowedTask {
    id: String,
    /// What the journal of its run said last: only where that is another one is the run read.
    seen: Option<CachedStatus>,
    told: TaskStatus,
}

impl FollowedTask {
    fn new(id: String) -> Self {
        Self {
            id,
            seen: None,
            told: TaskStatus::Working,
        }
    }

    /// The task, if it stands otherwise than its client was told.
    async fn look(&mut self, host: &Host, caller: &Caller) -> Option<DetailedTask> {
        let run: RunId = self.id.parse().ok()?;
        let info = host.engine.journals().info(&StreamName::Run(run)).await;
        let status = info.ok()??.status.status;
        if self.seen.as_ref() == Some(&status) {
            return None;
        }
        let task = host.read_task(&self.id, caller).await.ok()?;
        self.seen = Some(status);
        let status = task.status();
        let is_news = std::mem::replace(&mut self.told, status) != status;
        is_news.then_some(task)
    }
}

/// The run of a result that waits for a person.
fn waiting_run(result: &CallToolResult) -> Option<RunId> {
    let value = result.structured_content.as_ref()?;
    let waits = value["status"] == RunStatus::Waiting.as_str();
    value["runId"].as_str().filter(|_| waits)?.parse().ok()
}

impl Host {
    pub(crate) async fn load_task(&self, id: &str) -> Result<Run, ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("there is no task {id}"), None);
        let run: RunId = id.parse().map_err(|_| unknown())?;
        let plan = self.engine.journals().plan_of_run(&run).await;
        let plan = plan.map_err(|_| unknown())?;
        let loaded = self.engine.plans().load_review(&plan).await;
        let (review, _) = loaded.map_err(|_| unknown())?;
        let loaded = self.engine.runs().load_run(&run, &review).await;
        let (run, _) = loaded.map_err(|_| unknown())?;
        Ok(run)
    }

    async fn task_of(&self, run: &RunId) -> Result<Task, ErrorData> {
        let stream = StreamName::Run(run.clone());
        let info = self.engine.journals().info(&stream).await;
        let Ok(Some(info)) = info else {
            let words = format!("the run {run} cannot be read");
            return Err(ErrorData::internal_error(words, None));
        };
        let created = info.created_at.to_string();
        let updated = info.updated_at.to_string();
        let task = Task::new(run.to_string(), TaskStatus::Working, created, updated);
        Ok(task.with_poll_interval_ms(POLL_MS))
    }

    async fn create_task(&self, run: &RunId) -> Result<CreateTaskResult, ErrorData> {
        Ok(CreateTaskResult::new(self.task_of(run).await?))
    }

    /// Where a task stands, with its result or what it asks.
    pub(crate) async fn read_task(
        &self,
        id: &str,
        caller: &Caller,
    ) -> Result<DetailedTask, ErrorData> {
        check(caller, Permission::Read)?;
        let run = self.load_task(id).await?;
        let task = self.task_of(run.id()).await?;
        let task = task.with_status_message(format!("the run is {}", run.status()));
        let payload = self.payload(&run, caller).await?;
        Ok(DetailedTask::new(task, payload))
    }

    async fn payload(&self, run: &Run, caller: &Caller) -> Result<TaskPayload, ErrorData> {
        let agent = &caller.principal;
        if matches!(run.state(), RunState::Cancelled) {
            return Ok(TaskPayload::Cancelled);
        }
        if run.state().is_terminal() {
            let result = serde_json::to_value(self.result_of_run(run, agent).await);
            let result = result.ok().and_then(|result| result.as_object().cloned());
            let failed = || ErrorData::internal_error("the result cannot be written", None);
            return Ok(TaskPayload::Completed {
                result: result.ok_or_else(failed)?,
            });
        }
        if caller.person.is_none() {
            return Ok(TaskPayload::Working);
        }
        Ok(match find_question(&self.engine, run, agent).await {
            Some(question) => TaskPayload::InputRequired {
                input_requests: InputRequests::from([(
                    question.key(),
                    InputRequest::Elicitation(ElicitRequest::new(question.form)),
                )]),
            },
            None => TaskPayload::Working,
        })
    }

    /// The result of the call that began a run which is over.
    pub(crate) async fn result_of_run(&self, run: &Run, agent: &Principal) -> CallToolResult {
        let value = self.tools_of(agent).describe_run(run).await;
        outcome(value, &crate::call::next_of_run(run))
    }

    /// Takes the answers to what a task asks. Those to anything else are ignored.
    pub(crate) async fn answer_task(
        self: &Arc<Self>,
        id: &str,
        answers: &InputResponses,
        caller: &Caller,
    ) -> Result<(), ErrorData> {
        check(caller, Permission::Run)?;
        let run = self.load_task(id).await?;
        let Some(person) = &caller.person else {
            let words = "no person can be asked here: the answers count for nothing";
            return Err(ErrorData::invalid_request(words, None));
        };
        let agent = &caller.principal;
        let Some(question) = find_question(&self.engine, &run, agent).await else {
            return Ok(());
        };
        let answer = answers.get(&question.key());
        let answer =
            answer.and_then(|answer| serde_json::from_value::<ElicitResult>(answer.clone()).ok());
        let Some(answer) = answer else {
            return Ok(());
        };
        self.decide_for_task(&run, &question, &answer, (agent, person))
            .await
    }

    /// Tells a run what its person decided, and goes on with it in the background.
    pub(crate) async fn decide_for_task(
        self: &Arc<Self>,
        run: &Run,
        question: &RunQuestion,
        answer: &ElicitResult,
        (agent, person): (&Principal, &Principal),
    ) -> Result<(), ErrorData> {
        let command = question.command(answer, person);
        let told = self.engine.runs().command(&question.run, command).await;
        told.map_err(|error| ErrorData::invalid_request(error.to_string(), None))?;
        let host = Arc::clone(self);
        let agent = agent.clone();
        let plan = run.plan().id().clone();
        let run = run.id().clone();
        tokio::spawn(async move {
            let order = PlanToolCall::new(PlanTool::Execute, Map::new(), format!("task {run}"));
            Box::pin(host.tools_of(&agent).resume(&order, &run)).await;
            host.write_files(&plan).await;
        });
        Ok(())
    }

    pub(crate) async fn cancel_task(&self, id: &str, caller: &Caller) -> Result<(), ErrorData> {
        check(caller, Permission::Cancel)?;
        let run = self.load_task(id).await?;
        let by = caller.principal.clone();
        let cancelled = self
            .engine
            .runs()
            .command(run.id(), RunCommand::Cancel { by })
            .await;
        // What is over already needs no cancelling.
        cancelled.or_else(|error| match run.state().is_terminal() {
            true => Ok(()),
            false => Err(ErrorData::invalid_request(error.to_string(), None)),
        })
    }

    fn tools_of(&self, agent: &Principal) -> PlanTools {
        PlanTools::new(self.engine.clone(), Arc::clone(&self.maker), agent)
    }
}

pub(crate) fn check(caller: &Caller, action: Permission) -> Result<(), ErrorData> {
    let checked = caller.check(action);
    checked.map_err(|problem| ErrorData::invalid_request(problem.error, None))
}
