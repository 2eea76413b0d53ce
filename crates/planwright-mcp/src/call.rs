//! What each tool does, over the facades of the engine.

use crate::answer::{Problem, finding_values, outcome, success};
use crate::awaited::AwaitedPlans;
use crate::question::{AskedPerson, Decision};
use crate::server::Host;
use crate::tool::PlanCall;
use planwright_api::PlanLine;
use planwright_core::id::PlanId;
use planwright_core::plan::{Bounds, Document};
use planwright_core::principal::Principal;
use planwright_core::review::{Review, RunRequest};
use planwright_core::run::{Run, RunReport, Shown};
use planwright_core::status::{CachedStatus, PlanStatus, RunStatus};
use planwright_core::trace::TraceId;
use planwright_engine::{
    Candidate, Engine, NewComment, Observer, PlanTool, PlanToolCall, PlanTools, ReviewError,
    RunCommand, with_causes,
};
use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Plans of a list, unless fewer are asked for.
const MAX_LISTED: usize = 100;

/// One call of one tool.
pub(crate) struct ToolCall {
    pub(crate) tool: PlanCall,
    pub(crate) args: Map<String, Value>,
    /// The agent that calls.
    pub(crate) agent: Principal,
    pub(crate) person: Arc<AskedPerson>,
    pub(crate) cancelled: CancellationToken,
    /// The same for every attempt at the same call.
    pub(crate) key: String,
    pub(crate) awaited: Arc<AwaitedPlans>,
    /// The client shows pages, and the person in front of it may decide.
    pub(crate) has_page: bool,
    /// Told about the run that is begun.
    pub(crate) observers: Vec<Arc<dyn Observer>>,
}

pub(crate) type Done = Result<CallToolResult, Problem>;

impl Host {
    /// Does what is asked for.
    pub(crate) async fn call(self: &Arc<Self>, call: &ToolCall) -> CallToolResult {
        if let Err(problem) = check_arguments(call) {
            return problem.into_result();
        }
        let done = match call.tool {
            PlanCall::Propose => self.propose(call).await,
            PlanCall::List => self.list(call).await,
            PlanCall::Get => self.get(call).await,
            PlanCall::Status => self.status(call).await,
            PlanCall::Comment => self.comment(call).await,
            PlanCall::Approve => self.ask_approval(call).await,
            PlanCall::Reject => self.ask_rejection(call).await,
            PlanCall::Create => self.plan_tool(call, PlanTool::Create).await,
            PlanCall::Execute => self.plan_tool(call, PlanTool::Execute).await,
            PlanCall::CreateAndExecute => self.plan_tool(call, PlanTool::CreateAndExecute).await,
            PlanCall::Resume => self.resume(call).await,
            PlanCall::Cancel => self.cancel(call).await,
            PlanCall::Decide => self.decide(call).await,
        };
        done.unwrap_or_else(|problem| problem.or_next(|| next_after(call)).into_result())
    }

    async fn propose(&self, call: &ToolCall) -> Done {
        // A client may hand over the plan itself: `{title, steps, context}`.
        let plan = match call.args.get("plan").filter(|plan| !plan.is_null()) {
            Some(plan) => plan.clone(),
            None if call.args.contains_key("steps") => Value::Object(call.args.clone()),
            None => {
                let missing = Problem::new("`plan` is missing");
                return Err(missing.next(next_with(call.tool, "plan")));
            }
        };
        let document = Document::from_json(plan, &Bounds::for_untrusted())
            .map_err(|error| Problem::of(&error).next(REPAIR))?;
        let proposed = self.engine.plans().propose(document, &call.agent).await;
        let (review, findings) = proposed.map_err(review_problem)?;
        self.write_files(review.id()).await;
        let (candidate, mut fields) = self.describe(&review, &call.agent).await?;
        fields.insert("findings".to_owned(), finding_values(&findings));
        let next = if findings
            .iter()
            .any(planwright_core::plan::Finding::is_error)
        {
            REPAIR.to_owned()
        } else {
            self.next_of_proposed(&review, &candidate)
        };
        let proposed = success(fields, &next);
        Ok(self
            .with_review(call, (&review, &candidate), proposed)
            .await)
    }

    async fn list(&self, call: &ToolCall) -> Done {
        let limit = call.args.get("limit").and_then(Value::as_u64);
        let limit = limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(MAX_LISTED)
            .clamp(1, MAX_LISTED);
        let status = match text(call, "status") {
            Some(word) => Some(
                word.parse::<PlanStatus>()
                    .map_err(|error| Problem::of(&error))?,
            ),
            None => None,
        };
        let plans = self.newest_plans(status, limit).await?;
        let fields = json!({ "plans": plans });
        Ok(success(object(fields), "plan_get reads one of them"))
    }

    /// The newest plans, without conversations and what was deleted.
    pub(crate) async fn newest_plans(
        &self,
        status: Option<PlanStatus>,
        limit: usize,
    ) -> Result<Vec<PlanLine>, Problem> {
        let engine = &self.engine;
        let found = match status {
            Some(status) => engine.inbox().plans_with_status(status).await,
            None => engine.journals().plans_by_age(None, MAX_LISTED).await,
        };
        let mut lines = Vec::new();
        for info in found.map_err(|error| Problem::of(&error))? {
            if lines.len() == limit || info.status.status == CachedStatus::Deleted {
                continue;
            }
            // One damaged plan does not hide the others.
            let Ok((review, _)) = engine.plans().load_review(&info.status.plan).await else {
                continue;
            };
            if !planwright_engine::chat::is_listed(&review.current().document, None, false) {
                continue;
            }
            let stands = engine.plans().status(&review).await;
            let stands = stands.map_err(|error| Problem::of(&error))?;
            lines.push(PlanLine::new(&review, stands.as_str()));
        }
        Ok(lines)
    }

    async fn get(&self, call: &ToolCall) -> Done {
        let review = self.load(call).await?;
        let (candidate, mut fields) = self.describe(&review, &call.agent).await?;
        fields.insert("plan".to_owned(), json!(review.current().document));
        let next = self.next_of_plan(&review, &candidate).await?;
        let read = success(fields, &next);
        Ok(self.with_review(call, (&review, &candidate), read).await)
    }

    async fn status(&self, call: &ToolCall) -> Done {
        let review = self.load(call).await?;
        let mut fields = object(json!({
            "planId": review.id(),
            "version": review.current().number,
            "status": self.stands(&review).await?,
        }));
        let Some(opened) = review.runs().last() else {
            // A plan that cannot be compiled any more is not one that can be run.
            let next = match self.candidate(&review).await {
                Ok(candidate) => self.next_of_plan(&review, &candidate).await?,
                Err(_) => REPAIR.to_owned(),
            };
            return Ok(success(fields, &next));
        };
        let loaded = self.engine.runs().load_run(&opened.run, &review).await;
        let (run, _) = loaded.map_err(|error| Problem::of(&error))?;
        fields.insert("run".to_owned(), run_value(&self.engine, &run));
        Ok(success(fields, &next_of_run(&run)))
    }

    async fn comment(&self, call: &ToolCall) -> Done {
        let review = self.load(call).await?;
        let new = NewComment {
            on: text(call, "step").map(str::to_owned),
            reply_to: None,
            text: text(call, "text").unwrap_or_default().to_owned(),
        };
        let plans = self.engine.plans();
        let said = plans.comment(review.id(), new, &call.agent).await;
        let (comment, review) = said.map_err(review_problem)?;
        self.write_files(review.id()).await;
        let fields = object(json!({ "planId": review.id(), "comment": comment }));
        Ok(success(fields, "people who review the plan see it"))
    }

    async fn ask_approval(&self, call: &ToolCall) -> Done {
        let review = self.load(call).await?;
        let candidate = self.candidate(&review).await?;
        let words = "An agent asks you to approve this plan.";
        match call.person.ask(&review, &candidate, words).await {
            Some(decision) => {
                let plan = (&review, &candidate);
                let status = self.record_decision(call, plan, &decision).await?;
                describe_decision(plan, &decision, status)
            }
            None if call.person.went_to_review() => {
                Ok(leave_to_person(review.id(), "in their browser"))
            }
            None if call.has_page && !call.person.has_question() => {
                let place = "in the review that is shown with this result";
                let left = leave_to_person(review.id(), place);
                Ok(self.with_review(call, (&review, &candidate), left).await)
            }
            None => {
                Err(Problem::new("no person could be asked here").next(self.at_hand(review.id())))
            }
        }
    }

    /// Records what a person decided about a plan, and returns where it stands then.
    pub(crate) async fn record_decision(
        &self,
        call: &ToolCall,
        (review, candidate): (&Review, &Candidate),
        decision: &Decision,
    ) -> Result<PlanStatus, Problem> {
        let by = call.person.principal();
        let plans = self.engine.plans();
        let shown = Shown::Digest(candidate.digest);
        let id = review.id();
        let recorded = match decision {
            Decision::Unclear => return Err(not_agreed(NOT_AGREED)),
            Decision::Approve { sees_late_values } => {
                let given = call.person.approval(candidate, *sees_late_values);
                plans.approve_on_terms(id, &Map::new(), &given).await
            }
            Decision::Changes(reason) => plans.request_changes(id, shown, by, reason).await,
            Decision::Reject(reason) => plans.reject(id, shown, by, reason).await,
        };
        let review = recorded.map_err(review_problem)?;
        self.write_files(id).await;
        self.stands(&review).await
    }

    async fn ask_rejection(&self, call: &ToolCall) -> Done {
        let review = self.load(call).await?;
        let candidate = self.candidate(&review).await?;
        let reason = text(call, "reason").unwrap_or_default();
        let words = format!(
            "An agent asks you to reject this plan. It says: {}",
            planwright_core::text::escape_invisible(reason)
        );
        match call.person.ask(&review, &candidate, &words).await {
            Some(Decision::Reject(said)) => {
                let said = if said.is_empty() { reason } else { &said };
                let shown = Shown::Digest(candidate.digest);
                let by = call.person.principal();
                let rejected = self
                    .engine
                    .plans()
                    .reject(review.id(), shown, by, said)
                    .await;
                rejected.map_err(review_problem)?;
                self.write_files(review.id()).await;
                let fields =
                    object(json!({ "planId": review.id(), "status": PlanStatus::Rejected }));
                Ok(success(
                    fields,
                    "plan_propose with the same id proposes another version",
                ))
            }
            Some(_) => Err(not_agreed("the person did not reject the plan")),
            None => {
                Err(Problem::new("no person could be asked here").next(self.at_hand(review.id())))
            }
        }
    }

    async fn plan_tool(self: &Arc<Self>, call: &ToolCall, tool: PlanTool) -> Done {
        let (tools, order) = self.plan_tools(call, tool);
        let value = match self.resume_answered(call, &tools, &order).await {
            Some(value) => value,
            None => Box::pin(tools.call(&order)).await,
        };
        Ok(self.describe_outcome(call, value).await)
    }

    fn plan_tools(&self, call: &ToolCall, tool: PlanTool) -> (PlanTools, PlanToolCall) {
        let tools = PlanTools::new(self.engine.clone(), Arc::clone(&self.maker), &call.agent);
        let order = PlanToolCall {
            cancelled: call.cancelled.clone(),
            ..PlanToolCall::new(tool, call.args.clone(), call.key.clone())
        };
        let tools = tools.asking(Arc::clone(&call.person) as _);
        (tools.watched_by(call.observers.clone()), order)
    }

    /// Goes on with the run that the answer in the call is for. A client that was asked by the result
    /// of its call makes the call again with the answer.
    async fn resume_answered(
        &self,
        call: &ToolCall,
        tools: &PlanTools,
        order: &PlanToolCall,
    ) -> Option<Value> {
        let (question, answer) = call.person.take_run_answer()?;
        if text(call, "planId") != Some(question.plan.as_str()) {
            return None;
        }
        call.person.tell_run(&question, &answer).await;
        Some(Box::pin(tools.resume(order, &question.top)).await)
    }

    /// The result of a run, with what to do next.
    async fn describe_outcome(self: &Arc<Self>, call: &ToolCall, value: Value) -> CallToolResult {
        if let Some(id) = value["planId"].as_str().and_then(|id| id.parse().ok()) {
            self.write_files(&id).await;
        }
        let plan = value["planId"].as_str().unwrap_or("the plan").to_owned();
        let is_pending = value["status"] == "pending_approval";
        let is_requested = is_pending && self.await_approval(call, &value).await;
        let next = match value["status"].as_str() {
            _ if is_requested => self.next_of_requested(&plan),
            Some("pending_approval") => format!(
                "plan_approve with planId {plan} asks a person; a person can also: planwright approve {plan}"
            ),
            Some("not_approved") => {
                "ask the person what should be different, and propose a changed version".to_owned()
            }
            Some(word) if word == PlanStatus::Proposed.as_str() => {
                format!("plan_execute with planId {plan} runs it")
            }
            Some(word) if word == RunStatus::Waiting.as_str() => {
                format!("a person decides: planwright show {plan}")
            }
            _ if value["success"] == true => "report the results to the user".to_owned(),
            // It was about no plan, or about none that there is.
            _ if value["planId"].is_null() => LIST.to_owned(),
            _ => format!("plan_status with planId {plan} says what failed"),
        };
        outcome(value, &next)
    }

    /// How a plan goes on that runs once it is approved.
    fn next_of_requested(&self, plan: &str) -> String {
        let place = match plan.parse().ok().and_then(|plan| self.page_of(&plan)) {
            Some(page) => format!("at {page}, or with planwright inbox"),
            None => format!("with planwright inbox, or planwright approve {plan}"),
        };
        format!(
            "a person decides {place}; then it runs by itself as long as this server or a service \
             runs, else with the next one (within a day); plan_status with planId {plan} says how it \
             stands"
        )
    }

    /// Has a plan that waits for a person run once they agreed. Not one that the client asks about
    /// itself: its answer comes with the next call.
    async fn await_approval(self: &Arc<Self>, call: &ToolCall, pending: &Value) -> bool {
        let plan = pending["planId"].as_str().and_then(|id| id.parse().ok());
        let digest = pending["digest"]
            .as_str()
            .and_then(|digest| digest.parse().ok());
        let (Some(plan), Some(digest)) = (plan, digest) else {
            return false;
        };
        if call.person.has_question() {
            return false;
        }
        let variables = call.args.get("variables").and_then(Value::as_object);
        let request = RunRequest {
            digest,
            variables: variables.cloned().unwrap_or_default(),
            by: Principal::agent(call.agent.name.clone()),
            trace: Some(TraceId::of_name(&call.key)),
        };
        call.awaited.run_once_approved(self, &plan, request).await
    }

    async fn resume(self: &Arc<Self>, call: &ToolCall) -> Done {
        let (tools, order) = self.plan_tools(call, PlanTool::Execute);
        if let Some(value) = self.resume_answered(call, &tools, &order).await {
            return Ok(self.describe_outcome(call, value).await);
        }
        let review = self.load(call).await?;
        let opened = review.runs().last();
        let opened = opened
            .ok_or_else(|| Problem::new("the plan has no run").next("plan_execute runs it"))?;
        let value = Box::pin(tools.resume(&order, &opened.run)).await;
        Ok(self.describe_outcome(call, value).await)
    }

    async fn cancel(&self, call: &ToolCall) -> Done {
        let review = self.load(call).await?;
        let opened = review.runs().last();
        let opened = opened.ok_or_else(|| Problem::new("the plan has no run"))?;
        let command = RunCommand::Cancel {
            by: call.agent.clone(),
        };
        let cancelled = self.engine.runs().command(&opened.run, command).await;
        cancelled.map_err(|error| Problem::of(&error))?;
        self.write_files(review.id()).await;
        let fields = object(json!({ "planId": review.id(), "runId": opened.run }));
        Ok(success(fields, "plan_status says when it has ended"))
    }

    /// What an agent has to know of a plan: where it stands, and what an approval covers.
    async fn describe(
        &self,
        review: &Review,
        viewer: &Principal,
    ) -> Result<(Candidate, Map<String, Value>), Problem> {
        let candidate = self.candidate(review).await?;
        let briefing = self
            .engine
            .briefings()
            .brief(review, &candidate, viewer)
            .await;
        let mut fields = object(json!({
            "id": review.id(),
            "version": review.current().number,
            "status": self.stands(review).await?,
            "digest": candidate.digest,
            "briefing": briefing,
        }));
        if let Some(page) = self.page_of(review.id()) {
            fields.insert("reviewUrl".to_owned(), json!(page));
        }
        Ok((candidate, fields))
    }

    /// The address where a person reviews a plan.
    fn page_of(&self, plan: &PlanId) -> Option<String> {
        self.page.as_ref().map(|service| review_url(service, plan))
    }

    /// How a person decides where no client asks them.
    fn at_hand(&self, id: &PlanId) -> String {
        let terminal = format!("a person can approve it at a terminal: planwright approve {id}");
        match self.page_of(id) {
            Some(page) => format!("{terminal}, or at {page}"),
            None => terminal,
        }
    }

    pub(crate) async fn load_plan(&self, id: &str) -> Result<Review, Problem> {
        let id: PlanId = id
            .parse()
            .map_err(|_| Problem::new("`planId` is no id of a plan").next(LIST))?;
        let loaded = self.engine.plans().load_review(&id).await;
        let (review, _) = loaded.map_err(|error| Problem::of(&error).next(LIST))?;
        Ok(review)
    }

    pub(crate) async fn load(&self, call: &ToolCall) -> Result<Review, Problem> {
        self.load_plan(text(call, "planId").unwrap_or_default())
            .await
    }

    pub(crate) async fn candidate(&self, review: &Review) -> Result<Candidate, Problem> {
        let candidate = self.engine.plans().candidate(review, &Map::new()).await;
        candidate.map_err(review_problem)
    }

    pub(crate) async fn stands(&self, review: &Review) -> Result<PlanStatus, Problem> {
        let status = self.engine.plans().status(review).await;
        status.map_err(|error| Problem::of(&error))
    }

    /// How a plan goes on that no person has decided on.
    fn next_of_proposed(&self, review: &Review, candidate: &Candidate) -> String {
        let id = review.id();
        if self.is_allowed(review, candidate) {
            return format!("plan_execute with planId {id} runs it: policy needs no person for it");
        }
        let at_hand = self.at_hand(id);
        format!("plan_approve with planId {id} asks a person; {at_hand}")
    }

    /// How a plan goes on from where it stands.
    async fn next_of_plan(
        &self,
        review: &Review,
        candidate: &Candidate,
    ) -> Result<String, Problem> {
        let id = review.id();
        Ok(match self.stands(review).await? {
            PlanStatus::Draft | PlanStatus::Proposed | PlanStatus::NeedsReview => {
                self.next_of_proposed(review, candidate)
            }
            PlanStatus::Approved => format!("plan_execute with planId {id} runs it"),
            PlanStatus::Rejected | PlanStatus::ChangesRequested | PlanStatus::Expired => {
                "plan_propose with the same id proposes another version".to_owned()
            }
            PlanStatus::Executing
            | PlanStatus::Waiting
            | PlanStatus::Paused
            | PlanStatus::Stalled
            | PlanStatus::Completed
            | PlanStatus::CompletedWithFailures
            | PlanStatus::Failed
            | PlanStatus::Cancelled
            | PlanStatus::Archived
            | PlanStatus::Deleted => {
                format!("plan_status with planId {id} says how its latest run stands")
            }
        })
    }

    fn is_allowed(&self, review: &Review, candidate: &Candidate) -> bool {
        let plans = self.engine.plans();
        plans.consent_of_policy(review, candidate).is_some()
    }

    pub(crate) async fn write_files(&self, plan: &PlanId) {
        if let Err(problem) = self.files.write(plan).await {
            tracing::warn!(%plan, problem, "the files of a plan are not up to date");
        }
    }
}

/// Where the page of the service shows the review of a plan.
pub(crate) fn review_url(service: &str, plan: &PlanId) -> String {
    format!("{service}/ui/plans/{plan}")
}

const LIST: &str = "plan_list names the plans that there are";
const REPAIR: &str = "repair what the findings name and call plan_propose again with the same id";

pub(crate) fn text<'a>(call: &'a ToolCall, name: &str) -> Option<&'a str> {
    call.args.get(name).and_then(Value::as_str)
}

/// Refuses a call that leaves out what its tool needs, and names it.
fn check_arguments(call: &ToolCall) -> Result<(), Problem> {
    for name in call.tool.needed_texts() {
        let problem = match call.args.get(*name) {
            Some(Value::String(text)) if !text.is_empty() => continue,
            Some(Value::String(_)) => format!("`{name}` must not be empty"),
            None | Some(Value::Null) => format!("`{name}` is missing"),
            Some(_) => format!("`{name}` must be a text"),
        };
        let next = match *name {
            "planId" => LIST.to_owned(),
            _ => next_with(call.tool, name),
        };
        return Err(Problem::new(problem).next(next));
    }
    match call.tool.find_mistyped(&call.args) {
        Some((name, kind)) => {
            let problem = Problem::new(format!("`{name}` must be {kind}"));
            Err(problem.next(next_with(call.tool, &name)))
        }
        None => Ok(()),
    }
}

/// What to do about an argument that is missing or no value of its kind.
fn next_with(tool: PlanCall, argument: &str) -> String {
    let name = tool.as_str();
    match tool.describe_argument(argument) {
        Some(shape) => format!("call {name} again with `{argument}`: {shape}"),
        None => format!("call {name} again with `{argument}`"),
    }
}

/// What to do about a problem that does not say so itself.
fn next_after(call: &ToolCall) -> String {
    match text(call, "planId") {
        Some(plan) => format!("plan_status with planId {plan} says how it stands"),
        None => LIST.to_owned(),
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value {
        map
    } else {
        Map::new()
    }
}

const NOT_AGREED: &str = "the person did not agree";

/// The answer to a call whose decision comes later.
fn leave_to_person(id: &PlanId, place: &str) -> CallToolResult {
    let fields = object(json!({ "planId": id, "status": "pending_approval" }));
    let next = format!(
        "the person decides {place}; plan_status with planId {id} says what they decided, and plan_execute runs what they approved"
    );
    success(fields, &next)
}

/// Tells the agent what the person decided.
fn describe_decision(
    (review, candidate): (&Review, &Candidate),
    decision: &Decision,
    status: PlanStatus,
) -> Done {
    let id = review.id();
    match decision {
        Decision::Unclear => Err(not_agreed(NOT_AGREED)),
        Decision::Approve { .. } => {
            let fields = json!({ "planId": id, "status": status, "digest": candidate.digest });
            let next = format!("plan_execute with planId {id} runs it");
            Ok(success(object(fields), &next))
        }
        Decision::Changes(reason) => {
            Err(not_agreed(format!("the person asks for changes: {reason}")))
        }
        Decision::Reject(reason) => Err(not_agreed(format!(
            "the person rejected the plan: {reason}"
        ))),
    }
}

fn not_agreed(error: impl Into<String>) -> Problem {
    Problem::new(error).next("talk with the person, and propose a changed version if they want one")
}

fn review_problem(error: ReviewError) -> Problem {
    let words = with_causes(&error);
    match error {
        ReviewError::Invalid(findings) => Problem {
            findings,
            ..Problem::new(words).next(REPAIR)
        },
        _ => Problem::new(words),
    }
}

/// Where a run and its steps stand.
pub(crate) fn run_value(engine: &Engine, run: &Run) -> Value {
    let report = RunReport::new(run, engine.now());
    let steps: Vec<Value> = report
        .steps
        .iter()
        .map(|step| {
            json!({
                "id": step.id, "tool": step.tool, "status": step.status, "attempts": step.attempts,
                "error": step.error.as_ref().map(|error| format!("{}: {}", error.code, error.message)),
            })
        })
        .collect();
    json!({
        "runId": report.run,
        "version": report.version,
        "status": report.status,
        "seconds": report.duration.as_secs_f64(),
        "steps": steps,
    })
}

pub(crate) fn next_of_run(run: &Run) -> String {
    let plan = run.plan().id();
    if run.state().is_terminal() {
        return format!("the run is over ({})", run.status());
    }
    match run.schedule().waiting().next() {
        Some(ix) => format!(
            "step `{}` waits for a person: planwright show {plan}",
            run.step_id(ix)
        ),
        None => format!("call plan_status with planId {plan} to follow it"),
    }
}
