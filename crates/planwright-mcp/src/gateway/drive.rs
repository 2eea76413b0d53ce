//! One call from the client's request to its result.

#![expect(deprecated, reason = "messages of servers are passed on in both eras")]

use super::link::{ClientAsks, Heard, LogWish, ask_by_requests, read_requests};
use super::pending::{OpenQuestion, PendingCall, Waiting};
use super::server::GatewayServer;
use crate::answer::Problem;
use crate::caller::Caller;
use crate::question::{Channel, PATIENCE};
use crate::run_question::{RunQuestion, find_questions};
use planwright_core::principal::Principal;
use planwright_core::run::{Run, StepError, StepErrorCode, StepState};
use planwright_core::tool::ToolName;
use planwright_engine::port::{ClientInput, ProgressSink};
use planwright_engine::{CallEvent, ClientAnswer, OpenCall, RunCommand};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ElicitRequest,
    ElicitResult, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    ProgressNotificationParam, ProgressToken, ResultType,
};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

/// How often a server may ask the client for something before it answers.
const MAX_ROUNDS: usize = 10;

/// A call on its way.
pub(super) struct ClientRequest {
    pub(super) tool: ToolName,
    pub(super) args: Map<String, Value>,
    pub(super) caller: Caller,
    /// How the person behind the client is asked.
    pub(super) channel: Channel,
    /// What the client can be asked for.
    pub(super) capabilities: ClientCapabilities,
    pub(super) log: LogWish,
    pub(super) cancelled: CancellationToken,
    pub(super) peer: Peer<RoleServer>,
    pub(super) progress: Option<ProgressToken>,
    /// Questions are results of the request in the modern era, and requests in the earlier one.
    pub(super) is_modern: bool,
    /// What a modern client answered, and our word for the call it answers to.
    pub(super) responses: Option<InputResponses>,
    pub(super) state: Option<String>,
}

/// A call with what it has for its client.
pub(super) struct AttendedCall {
    call: Arc<OpenCall>,
    heard: mpsc::Receiver<Heard>,
    /// Goes on with the call, also while its client is asked: what the server waits for ends in time.
    advancing: Option<JoinHandle<CallEvent>>,
}

impl Drop for AttendedCall {
    fn drop(&mut self) {
        if let Some(advancing) = self.advancing.take() {
            advancing.abort();
        }
    }
}

impl fmt::Debug for AttendedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AttendedCall").field(&self.call).finish()
    }
}

impl AttendedCall {
    pub(super) fn new(call: OpenCall, heard: mpsc::Receiver<Heard>) -> Self {
        Self {
            call: Arc::new(call),
            heard,
            advancing: None,
        }
    }

    /// Goes on until something of the client is wanted or the call ends or waits. What the server
    /// tells meanwhile is passed on.
    async fn advance(&mut self, request: &ClientRequest) -> Result<Event, Box<CallToolResult>> {
        let Self {
            call,
            heard,
            advancing,
        } = self;
        if let Some(answer) = call.ended_at_once() {
            tell_all(heard, request).await;
            return Ok(Event::Ended(answer));
        }
        let going = advancing.get_or_insert_with(|| {
            let call = Arc::clone(call);
            tokio::spawn(async move { call.advance().await })
        });
        let event = loop {
            tokio::select! {
                biased;
                () = request.cancelled.cancelled() => return Err(cancelled()),
                Some(heard) = heard.recv() => {
                    if let Some(asks) = request.tell(heard).await {
                        return Ok(Event::AsksClient(asks));
                    }
                }
                event = &mut *going => break event.map_err(|error| broken(&error))?,
            }
        };
        *advancing = None;
        tell_all(heard, request).await;
        Ok(match event {
            CallEvent::Ended(answer) => Event::Ended(answer),
            CallEvent::Asks(run) => Event::Waits(run),
        })
    }
}

/// What was told before the end is heard before it.
async fn tell_all(heard: &mut mpsc::Receiver<Heard>, request: &ClientRequest) {
    while let Ok(heard) = heard.try_recv() {
        drop(request.tell(heard).await);
    }
}

impl ClientRequest {
    /// Tells the client, or returns what it is asked.
    async fn tell(&self, heard: Heard) -> Option<ClientAsks> {
        let told = match heard {
            Heard::Asks(asks) => return Some(asks),
            Heard::Progress(progress) => {
                let token = self.progress.clone()?;
                let mut told = ProgressNotificationParam::new(token, progress.done);
                told.total = progress.total;
                told.message = progress.message;
                self.peer.notify_progress(told).await
            }
            Heard::Log(message) => self.peer.notify_logging_message(*message).await,
        };
        if let Err(error) = told {
            tracing::debug!(%error, "a client could not be told how its call goes");
        }
        None
    }

    /// The answers of a modern client in the order of the forms, if it gave all of them.
    pub(super) fn answers(&self, question: &RunQuestion) -> Option<Vec<ElicitResult>> {
        let given = self.responses.as_ref()?;
        let answers = question.forms().into_iter().map(|(key, _)| {
            let answer = given.get(&key)?;
            serde_json::from_value(answer.clone()).ok()
        });
        answers.collect()
    }

    /// Waits for something, unless the client gives up.
    async fn unless_cancelled<T>(
        &self,
        waiting: impl Future<Output = T>,
    ) -> Result<T, Box<CallToolResult>> {
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => Err(cancelled()),
            came = waiting => Ok(came),
        }
    }
}

fn broken(error: &JoinError) -> Box<CallToolResult> {
    let next = "ask the user what happened before you make the call again";
    Box::new(problem(
        StepErrorCode::OutcomeUnknown.as_str(),
        &error.to_string(),
        next,
    ))
}

fn cancelled() -> Box<CallToolResult> {
    let why = "the client cancelled the call";
    Box::new(problem(
        StepErrorCode::Cancelled.as_str(),
        why,
        "nothing was left running",
    ))
}

/// What a server wants of the client before it does anything: not what a person answers, but what
/// the client's model says, or where it works.
struct WantedInput {
    requests: InputRequests,
    state: Option<String>,
}

impl WantedInput {
    fn of(answer: &ClientAnswer, capabilities: &ClientCapabilities) -> Option<Self> {
        let said = answer.answer.as_ref()?;
        if !has_failed(answer, "input_required") || said["resultType"] != "input_required" {
            return None;
        }
        let requests = said["inputRequests"].as_object()?.clone();
        Some(Self {
            requests: read_requests(requests, capabilities)?,
            state: said["requestState"].as_str().map(str::to_owned),
        })
    }
}

/// Returns whether the call ended with this error, and not with one that came after what was heard.
fn has_failed(answer: &ClientAnswer, code: &str) -> bool {
    let error = answer.outcome.as_ref().err();
    error.is_some_and(|error| error.code.as_str() == code)
}

/// What came of going on with a call.
enum Event {
    Ended(ClientAnswer),
    /// Its run waits for a person.
    Waits(Box<Run>),
    AsksClient(ClientAsks),
}

/// What is done about it.
enum Advanced {
    Ended(ClientAnswer),
    Told(Box<CallToolResult>),
    /// The client or its person has answered, and the call goes on.
    Answered,
    /// The question is the result of the request.
    Asks(OpenQuestion, InputRequests),
}

impl GatewayServer {
    /// Goes on with a call until there is something to tell the client. A call that is given up is
    /// ended.
    pub(super) async fn drive(
        &self,
        mut call: AttendedCall,
        request: &ClientRequest,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut rounds = 0;
        loop {
            match self.advance(&mut call, request).await {
                Ok(Advanced::Answered) => {}
                Ok(Advanced::Ended(answer)) => {
                    let Some(wanted) = WantedInput::of(&answer, &request.capabilities) else {
                        return self.result(answer, call.call.let_through());
                    };
                    if request.is_modern {
                        let requests = Some(wanted.requests);
                        return Ok(InputRequiredResult::new(requests, wanted.state).into());
                    }
                    rounds += 1;
                    let asking = ask_by_requests(&request.peer, wanted.requests);
                    let answers = match request.unless_cancelled(asking).await {
                        Ok(Some(answers)) if rounds <= MAX_ROUNDS => answers,
                        Ok(_) => return self.result(answer, call.call.let_through()),
                        Err(refused) => return Ok((*refused).into()),
                    };
                    let input = ClientInput {
                        capabilities: None,
                        responses: answers,
                        state: wanted.state,
                    };
                    call = match Box::pin(self.begin(request, input)).await {
                        Ok(call) => call,
                        Err(refused) => return Ok((*refused).into()),
                    };
                }
                Ok(Advanced::Told(result)) => return Ok((*result).into()),
                Ok(Advanced::Asks(question, forms)) => {
                    let waiting = Waiting::Call(call, question);
                    return Ok(self.ask_as_result(waiting, forms, request));
                }
                Err(refused) => {
                    Box::pin(self.stop(&call.call, &request.caller.principal)).await;
                    return Ok((*refused).into());
                }
            }
        }
    }

    /// Goes on until the call ends or waits for the client or its person, who are asked where they
    /// are.
    async fn advance(
        &self,
        call: &mut AttendedCall,
        request: &ClientRequest,
    ) -> Result<Advanced, Box<CallToolResult>> {
        let run = match call.advance(request).await? {
            Event::Ended(answer) => return Ok(Advanced::Ended(answer)),
            Event::AsksClient(asks) if request.is_modern => {
                let forms = asks.requests.clone();
                return Ok(Advanced::Asks(OpenQuestion::Client(asks), forms));
            }
            Event::AsksClient(asks) => {
                let asking = Box::pin(ask_by_requests(&request.peer, asks.requests));
                // Without an answer the server is told that there is none.
                if let Some(answers) = request.unless_cancelled(asking).await? {
                    drop(asks.answers.send(answers));
                }
                return Ok(Advanced::Answered);
            }
            Event::Waits(run) => run,
        };
        if let Some(unknown) = unknown_outcome(&run) {
            return Ok(Advanced::Told(Box::new(unknown)));
        }
        let needs_person = |why: &str| Box::new(problem("needs_person", why, NEXT_PLAN));
        let agent = &request.caller.principal;
        let question = Box::pin(find_questions(&self.host.engine, &run, agent)).await;
        let question =
            question.ok_or_else(|| needs_person("the call asks what no client can ask"))?;
        match &request.channel {
            Channel::Request(peer) => {
                let mut answers = Vec::new();
                for (_, form) in question.forms() {
                    let asking =
                        Box::pin(peer.create_elicitation_with_timeout(form, Some(PATIENCE)));
                    // A yes that comes after the client gave up is for nothing.
                    let answer = request.unless_cancelled(asking).await?;
                    answers.push(answer.map_err(|error| {
                        tracing::warn!(%error, "the client did not ask its person");
                        needs_person("the client did not ask")
                    })?);
                }
                Box::pin(self.decide(&question, &answers, request)).await?;
                Ok(Advanced::Answered)
            }
            Channel::Result { .. } => {
                let forms = as_requests(&question);
                Ok(Advanced::Asks(OpenQuestion::Run(run), forms))
            }
            Channel::None => Err(needs_person("no person can be asked here")),
        }
    }

    /// Takes up what was asked about, with the answers that came with the second request.
    pub(super) async fn take_up(
        &self,
        pending: PendingCall,
        request: &ClientRequest,
        progress: &ProgressSink,
    ) -> Result<CallToolResponse, ErrorData> {
        match pending.waiting {
            Waiting::Call(call, question) => self.take_up_call(call, question, request).await,
            Waiting::Step(run, question) => {
                self.take_up_step(&run, &question, request, progress).await
            }
        }
    }

    async fn take_up_call(
        &self,
        call: AttendedCall,
        question: OpenQuestion,
        request: &ClientRequest,
    ) -> Result<CallToolResponse, ErrorData> {
        let run = match question {
            OpenQuestion::Client(asks) => {
                let given = request.responses.as_ref();
                let answers: Option<Map<String, Value>> = asks
                    .requests
                    .keys()
                    .map(|key| Some((key.clone(), given?.get(key)?.clone())))
                    .collect();
                let Some(answers) = answers else {
                    let forms = asks.requests.clone();
                    let waiting = Waiting::Call(call, OpenQuestion::Client(asks));
                    return Ok(self.ask_as_result(waiting, forms, request));
                };
                drop(asks.answers.send(answers));
                return self.drive(call, request).await;
            }
            OpenQuestion::Run(run) => run,
        };
        let agent = &request.caller.principal;
        let question = find_questions(&self.host.engine, &run, agent).await;
        let Some(question) = question else {
            self.stop(&call.call, &request.caller.principal).await;
            return Ok(problem(
                StepErrorCode::Denied.as_str(),
                "the question is not open any more",
                NEXT_PLAN,
            )
            .into());
        };
        let Some(answers) = request.answers(&question) else {
            // A server gets its answer or waits; what we ask is a no without one.
            if question.is_of_tool() {
                let forms = as_requests(&question);
                let waiting = Waiting::Call(call, OpenQuestion::Run(run));
                return Ok(self.ask_as_result(waiting, forms, request));
            }
            self.stop(&call.call, &request.caller.principal).await;
            return Ok(problem(
                StepErrorCode::Denied.as_str(),
                "the question was not answered",
                NEXT_PLAN,
            )
            .into());
        };
        if let Err(refused) = self.decide(&question, &answers, request).await {
            self.stop(&call.call, &request.caller.principal).await;
            return Ok((*refused).into());
        }
        self.drive(call, request).await
    }

    /// Makes the question the result of the request, and keeps what waits for its answer.
    pub(super) fn ask_as_result(
        &self,
        waiting: Waiting,
        forms: InputRequests,
        request: &ClientRequest,
    ) -> CallToolResponse {
        let pending = PendingCall {
            waiting,
            tool: request.tool.clone(),
            args: request.args.clone(),
            key: request.caller.key.clone(),
        };
        match self.pending.keep(pending) {
            Ok(state) => InputRequiredResult::new(Some(forms), Some(state)).into(),
            Err(_) => problem("busy", "too many calls wait for a person", NEXT_PLAN).into(),
        }
    }

    pub(super) async fn decide(
        &self,
        question: &RunQuestion,
        answers: &[ElicitResult],
        request: &ClientRequest,
    ) -> Result<(), Box<CallToolResult>> {
        let Some(person) = &request.caller.person else {
            let why = "no person can be asked here";
            return Err(Box::new(problem("needs_person", why, NEXT_PLAN)));
        };
        let command = question.command_of(answers, person);
        let runs = self.host.engine.runs();
        let decided = runs.command(&question.run, command).await;
        decided.map_err(|error| {
            Box::new(problem(
                StepErrorCode::Denied.as_str(),
                &error.to_string(),
                NEXT_PLAN,
            ))
        })
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
    ) -> Result<CallToolResponse, ErrorData> {
        let is_error = has_failed(&answer, "tool_error");
        let mut said = answer.answer;
        // An error of the server stays one, with its code.
        if is_error
            && let Some(error) = said.as_mut().and_then(|said| said.get_mut("error"))
            && let Ok(error) = serde_json::from_value::<ErrorData>(error.take())
        {
            return Err(error);
        }
        let said = said.and_then(|said| serde_json::from_value::<CallToolResult>(said).ok());
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
        Ok(result.into())
    }
}

/// Questions to a person as a modern client gets them.
pub(super) fn as_requests(question: &RunQuestion) -> InputRequests {
    let forms = question.forms().into_iter();
    forms
        .map(|(key, form)| (key, InputRequest::Elicitation(ElicitRequest::new(form))))
        .collect()
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
    let next = match error.code {
        StepErrorCode::GuardedTool | StepErrorCode::NeedsPerson | StepErrorCode::Denied => {
            NEXT_PLAN
        }
        StepErrorCode::PolicyDenied => "do without the call, or ask the user to change the policy",
        StepErrorCode::GuardBlocked | StepErrorCode::TooManyCalls => {
            "the session has spent its budget: tell the user"
        }
        StepErrorCode::OutcomeUnknown => "do not make the call again: ask the user what happened",
        StepErrorCode::Stopped => "a person ended the session: tell the user",
        _ => "read the error, and make another call if that helps",
    };
    problem(error.code.as_str(), &error.message, next)
}

pub(super) fn problem(code: &str, message: &str, next: &str) -> CallToolResult {
    Problem::new(message).code(code).next(next).into_result()
}

/// A call may have happened: only a person finds out.
fn unknown_outcome(run: &Run) -> Option<CallToolResult> {
    let ix = run.schedule().waiting().next()?;
    matches!(run.step(ix), StepState::OutcomeUnknown { .. }).then(|| {
        let message = format!(
            "the connection broke during the call, and it may have happened; a person says what \
             did: planwright resolve {}",
            run.id()
        );
        problem(
            StepErrorCode::OutcomeUnknown.as_str(),
            &message,
            "do not make the call again: ask the user what happened",
        )
    })
}
