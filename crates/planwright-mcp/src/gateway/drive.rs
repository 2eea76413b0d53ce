//! One call from the client's request to its result.

use super::pending::PendingCall;
use super::server::GatewayServer;
use crate::answer::Problem;
use crate::question::{Channel, KEY, PATIENCE};
use crate::run_question::{RunQuestion, find_question};
use planwright_core::principal::Principal;
use planwright_core::run::{Run, StepError, StepState};
use planwright_core::tool::ToolName;
use planwright_engine::{CallEvent, ClientAnswer, OpenCall, RunCommand};
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitResult, InputRequest,
    InputRequests, InputRequiredResult, ResultType,
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// A call on its way.
pub(super) struct ClientRequest {
    pub(super) tool: ToolName,
    pub(super) args: Map<String, Value>,
    pub(super) agent: Principal,
    /// Who is asked.
    pub(super) person: Option<Principal>,
    /// Tells callers apart.
    pub(super) key: String,
    pub(super) channel: Channel,
    pub(super) cancelled: CancellationToken,
}

/// What came of going on with a call.
enum Advanced {
    Ended(Box<CallToolResult>),
    /// The person behind the client has decided, and the call goes on.
    Decided,
    /// The question is the result of the request.
    Asks(Box<Run>, Box<RunQuestion>),
}

/// Waits for something, unless the client gives up.
async fn unless_cancelled<T>(
    request: &ClientRequest,
    waiting: impl Future<Output = T>,
) -> Result<T, Box<CallToolResult>> {
    tokio::select! {
        biased;
        () = request.cancelled.cancelled() => {
            let why = "the client cancelled the call";
            Err(Box::new(problem("cancelled", why, "nothing was left running")))
        }
        came = waiting => Ok(came),
    }
}

impl GatewayServer {
    /// Goes on with a call until there is something to tell the client. A call that is given up is
    /// ended.
    pub(super) async fn drive(&self, call: OpenCall, request: &ClientRequest) -> CallToolResponse {
        loop {
            match self.advance(&call, request).await {
                Ok(Advanced::Decided) => {}
                Ok(Advanced::Ended(result)) => return (*result).into(),
                Ok(Advanced::Asks(run, question)) => {
                    return self.ask_as_result(call, run, *question, request);
                }
                Err(refused) => {
                    self.stop(&call, &request.agent).await;
                    return (*refused).into();
                }
            }
        }
    }

    /// Goes on until the call ends or waits for a person, who is asked where the client is.
    async fn advance(
        &self,
        call: &OpenCall,
        request: &ClientRequest,
    ) -> Result<Advanced, Box<CallToolResult>> {
        let run = match unless_cancelled(request, call.advance()).await? {
            CallEvent::Ended(answer) => {
                return Ok(Advanced::Ended(Box::new(
                    self.result(answer, call.let_through()),
                )));
            }
            CallEvent::Asks(run) => run,
        };
        if let Some(unknown) = unknown_outcome(&run) {
            return Ok(Advanced::Ended(Box::new(unknown)));
        }
        let needs_person = |why: &str| Box::new(problem("needs_person", why, NEXT_PLAN));
        let question = find_question(&self.host.engine, &run, &request.agent).await;
        let question =
            question.ok_or_else(|| needs_person("the call asks what no client can ask"))?;
        match &request.channel {
            Channel::Request(peer) => {
                let form = question.form.clone();
                let asking = peer.create_elicitation_with_timeout(form, Some(PATIENCE));
                // A yes that comes after the client gave up is for nothing.
                let answer = unless_cancelled(request, asking).await?;
                let answer = answer.map_err(|error| {
                    tracing::warn!(%error, "the client did not ask its person");
                    needs_person("the client did not ask")
                })?;
                self.decide(&question, &answer, request).await?;
                Ok(Advanced::Decided)
            }
            Channel::Result { .. } => Ok(Advanced::Asks(run, Box::new(question))),
            Channel::None => Err(needs_person("no person can be asked here")),
        }
    }

    /// Takes up a call that was asked about, with the answer that came with the second request.
    pub(super) async fn take_up(
        &self,
        pending: PendingCall,
        request: &ClientRequest,
    ) -> CallToolResponse {
        let PendingCall { call, run, .. } = pending;
        let answer = match &request.channel {
            Channel::Result { responses, .. } => responses
                .as_ref()
                .and_then(|answers| answers.get(KEY))
                .and_then(|answer| serde_json::from_value::<ElicitResult>(answer.clone()).ok()),
            Channel::Request(_) | Channel::None => None,
        };
        let question = find_question(&self.host.engine, &run, &request.agent).await;
        let (Some(answer), Some(question)) = (answer, question) else {
            self.stop(&call, &request.agent).await;
            return problem("denied", "the question was not answered", NEXT_PLAN).into();
        };
        if let Err(refused) = self.decide(&question, &answer, request).await {
            self.stop(&call, &request.agent).await;
            return (*refused).into();
        }
        self.drive(call, request).await
    }

    fn ask_as_result(
        &self,
        call: OpenCall,
        run: Box<Run>,
        question: RunQuestion,
        request: &ClientRequest,
    ) -> CallToolResponse {
        let pending = PendingCall {
            call,
            run,
            tool: request.tool.clone(),
            args: request.args.clone(),
            key: request.key.clone(),
        };
        let form = InputRequest::Elicitation(ElicitRequest::new(question.form));
        match self.pending.keep(pending) {
            Ok(state) => {
                let requests = InputRequests::from([(KEY.to_owned(), form)]);
                InputRequiredResult::new(Some(requests), Some(state)).into()
            }
            Err(_) => problem("busy", "too many calls wait for a person", NEXT_PLAN).into(),
        }
    }

    async fn decide(
        &self,
        question: &RunQuestion,
        answer: &ElicitResult,
        request: &ClientRequest,
    ) -> Result<(), Box<CallToolResult>> {
        let Some(person) = &request.person else {
            let why = "no person can be asked here";
            return Err(Box::new(problem("needs_person", why, NEXT_PLAN)));
        };
        let command = question.command(answer, person);
        let decided = self
            .host
            .engine
            .runs()
            .command(&question.run, command)
            .await;
        decided.map_err(|error| Box::new(problem("denied", &error.to_string(), NEXT_PLAN)))
    }

    /// Ends a call that is not wanted any more.
    async fn stop(&self, call: &OpenCall, by: &Principal) {
        let command = RunCommand::Cancel { by: by.clone() };
        let stopped = self.host.engine.runs().command(call.run(), command).await;
        if let Err(error) = stopped {
            tracing::debug!(run = %call.run(), %error, "a call could not be stopped");
        }
    }

    /// What a client is told of a call that ended.
    pub(super) fn result(
        &self,
        answer: ClientAnswer,
        let_through: Option<&StepError>,
    ) -> CallToolResult {
        let said = answer
            .answer
            .and_then(|said| serde_json::from_value::<CallToolResult>(said).ok());
        let mut result = match (answer.outcome, said) {
            (Ok(_), Some(said)) => said,
            (Ok(value), None) => result_of(value),
            (Err(_), Some(said)) if said.is_error == Some(true) => said,
            (Err(error), _) => refused(&error),
        };
        // Servers of the earlier era do not say that a result is whole; modern clients want to hear it.
        result.result_type = Some(ResultType::COMPLETE);
        if let Some(objection) = let_through.filter(|_| self.settings.warns()) {
            let text = format!(
                "planwright would have refused this call: {}",
                objection.message
            );
            result.content.push(ContentBlock::text(text));
        }
        result
    }
}

const NEXT_PLAN: &str =
    "propose the call as a step of a plan with plan_propose; plan_approve asks a person";

/// A value of a tool of this process, as a server would have answered.
fn result_of(value: Value) -> CallToolResult {
    match value {
        Value::String(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Value::Object(_) => CallToolResult::structured(value),
        other => CallToolResult::success(vec![ContentBlock::text(other.to_string())]),
    }
}

/// What a client is told that may not call, or whose call failed.
pub(super) fn refused(error: &StepError) -> CallToolResult {
    let next = match error.code.as_str() {
        "guarded_tool" | "needs_person" | "denied" => NEXT_PLAN,
        "policy_denied" => "do without the call, or ask the user to change the policy",
        "guard_blocked" | "too_many_calls" => "the session has spent its budget: tell the user",
        "outcome_unknown" => "do not make the call again: ask the user what happened",
        "stopped" => "a person ended the session: tell the user",
        _ => "read the error, and make another call if that helps",
    };
    problem(error.code.as_str(), &error.message, next)
}

pub(super) fn problem(code: &str, message: &str, next: &str) -> CallToolResult {
    Problem::new(message).code(code).next(next).into_result()
}

/// A call may have happened: only a person finds out.
fn unknown_outcome(run: &Run) -> Option<CallToolResult> {
    let ix = run.waiting().next()?;
    matches!(run.step(ix), StepState::OutcomeUnknown { .. }).then(|| {
        let message = format!(
            "the connection broke during the call, and it may have happened; a person says what \
             did: planwright resolve {}",
            run.id()
        );
        problem(
            "outcome_unknown",
            &message,
            "do not make the call again: ask the user what happened",
        )
    })
}
