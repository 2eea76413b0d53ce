//! One call: sent, watched, and stopped when it must be.

use super::Era;
use super::answer::{failed, refused};
use super::connection::Connection;
use super::exchange::{Exchange, RpcReply, broken, refusal, settle_exchange, too_large};
use super::questions;
use super::server::{Failure, Server};
use super::sign_in_question::{self, ask, can_sign_in};
use super::tasks::{self, Task, TaskEnd};
use super::wire::{End, Ticket};
use planwright_core::run::{Answered, Asked};
use planwright_core::tool::KnownTool;
use planwright_engine::port::{Call, CallError, Outcome};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientNotification, ClientRequest, CustomNotification,
    CustomRequest, CustomResult, ErrorCode, InputResponses, RequestMetaObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;

/// The time a call may go on after its server was told to stop it.
const AFTER_CANCEL: Duration = Duration::from_secs(2);
/// The time a call may go on after its server was told that no person answers its question now.
const AFTER_QUESTION: Duration = Duration::from_secs(10);
/// The number of times a server may ask to be asked again before it answers.
const MAX_ROUNDS: usize = 3;
/// The metadata field in which servers find the idempotency key.
const KEY_META: &str = "planwright/idempotencyKey";
/// Those in which modern servers find what a client can be asked for, and wants to be told.
pub(super) const CAPABILITIES_META: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL_META: &str = "io.modelcontextprotocol/logLevel";

/// Makes the call on the server's connection, which is opened if need be.
pub(super) async fn make(server: Arc<Server>, tool: Arc<KnownTool>, call: Call) -> Outcome {
    if sign_in_question::is_declined(&call.answered) {
        return Err(refused("unauthorized", "the person did not sign in"));
    }
    let answered = sign_in_question::last_for_server(&call.answered).map(Given::of);
    let from_client = answered.is_none();
    let mut given = answered.unwrap_or_else(|| Given::by_client(&call));
    let mut resent = false;
    let mut forgotten = false;
    let mut rounds = 0;
    loop {
        let connection = connected(&server, &tool, &call).await?;
        match exchange(&server, &connection, &tool, &call, &given).await {
            Exchange::Done(outcome) => return outcome,
            Exchange::AskedMidway(asked) => return Err(CallError::AskedMidway(Box::new(asked))),
            Exchange::Asks(asked) => {
                rounds += 1;
                let known = if asked.questions.is_empty() {
                    Some(given.responses)
                } else {
                    forgotten
                        .then(|| questions::known_responses(&call.answered, &asked))
                        .flatten()
                };
                match known {
                    Some(responses) if rounds <= MAX_ROUNDS + call.answered.len() => {
                        given = Given {
                            responses,
                            state: asked.state,
                        };
                    }
                    Some(_) => {
                        return Err(CallError::transient(
                            "the server keeps asking to be asked again",
                        ));
                    }
                    None => return Err(CallError::InputRequired(Box::new(asked))),
                }
            }
            // It is asked from the beginning, and told again what a person said to the same
            // questions.
            Exchange::Forgotten(_) if !forgotten && !from_client => {
                (forgotten, given) = (true, Given::default());
            }
            Exchange::Forgotten(error) => return Err(error),
            Exchange::NotSent(_) if !resent => resent = true,
            Exchange::NotSent(reason) => return Err(unavailable(&server, &reason)),
        }
    }
}

/// The values a modern server gets beside the arguments.
#[derive(Default)]
struct Given {
    responses: InputResponses,
    /// The server's own note about what it asked.
    state: Option<String>,
}

impl Given {
    fn of(answered: &Answered) -> Self {
        Self {
            responses: questions::responses(answered),
            state: answered.asked.state.clone(),
        }
    }

    /// What the client of the gateway says to what the server asked it for.
    fn by_client(call: &Call) -> Self {
        let input = call.client.as_ref().map(|client| client.input());
        let input = input.unwrap_or_default();
        Self {
            responses: input.responses.into_iter().collect(),
            state: input.state,
        }
    }
}

/// The tool as it is known now. A server that was never reached is asked first.
pub(super) async fn tool(
    server: &Arc<Server>,
    call: &Call,
) -> Result<Option<Arc<KnownTool>>, CallError> {
    if !server.is_known() {
        connection(server, call).await?;
    } else if let Some(open) = server.open_connection() {
        settled_list(&open, call).await?;
    }
    Ok(server.table().tools.get(&call.tool).cloned())
}

/// A connection whose server still defines the tool as the caller knows it.
async fn connected(
    server: &Arc<Server>,
    tool: &KnownTool,
    call: &Call,
) -> Result<Arc<Connection>, CallError> {
    let connection = connection(server, call).await?;
    settled_list(&connection, call).await?;
    match server.table().tools.get(&tool.name) {
        Some(now) if now.digest() == tool.digest() => Ok(connection),
        Some(_) => Err(CallError::Unavailable(format!(
            "{} changed while its server was started again",
            tool.name
        ))),
        None => Err(CallError::Unavailable(format!(
            "{} is gone since its server was started again",
            tool.name
        ))),
    }
}

/// Waits until the tools are listed as the server last said that they changed. A list that does not
/// come ends the connection, and then the call is not sent on it.
async fn settled_list(connection: &Connection, call: &Call) -> Result<(), CallError> {
    tokio::select! {
        biased;
        () = connection.wire.list_settled() => Ok(()),
        () = call.cancelled.cancelled() => Err(CallError::Cancelled),
        () = connection.wire.wait_until_ended() => Ok(()),
    }
}

async fn connection(server: &Arc<Server>, call: &Call) -> Result<Arc<Connection>, CallError> {
    tokio::select! {
        biased;
        () = call.cancelled.cancelled() => Err(CallError::Cancelled),
        connection = server.connection() => connection.map_err(|failure| not_connected(server, &failure)),
    }
}

/// Nothing was called. A server that only wants a sign-in can be called once there is one.
fn not_connected(server: &Server, failure: &Failure) -> CallError {
    if failure.wants_sign_in && can_sign_in(server) {
        return CallError::InputRequired(Box::new(ask(server)));
    }
    let said = match failure.stderr.as_str() {
        "" => String::new(),
        stderr => format!(" (it said: {stderr})"),
    };
    unavailable(server, &format!("{}{said}", failure.reason))
}

async fn exchange(
    server: &Server,
    connection: &Connection,
    tool: &KnownTool,
    call: &Call,
    given: &Given,
) -> Exchange {
    let ticket = connection.wire.begin(call, tool.is_read_only());
    let sending = connection.peer.send_request_with_option(
        request(server, connection, call, given),
        PeerRequestOptions::no_options().with_meta(meta(connection, call)),
    );
    let sent = tokio::select! {
        biased;
        // What was not handed over when it is dropped never will be.
        () = call.cancelled.cancelled() => return Exchange::Done(Err(CallError::Cancelled)),
        sent = sending => sent,
    };
    let Ok(mut handle) = sent else {
        connection
            .wire
            .end(End::Gone("the connection closed".into()));
        return Exchange::NotSent("the connection closed".into());
    };
    ticket.sent_as(handle.id.clone(), handle.progress_token.clone());
    note_exchange(connection, &handle);
    let waited = tokio::select! {
        biased;
        // The stream of an answer that is too large ends, and the machinery takes that for its end.
        () = ticket.too_large() => Waited::TooLarge,
        // An answer that is there counts, also if the connection ends or the call is cancelled meanwhile.
        answer = &mut handle.rx => Waited::answered(answer),
        () = connection.wire.wait_until_ended() => Box::pin(after_the_end(&mut handle)).await,
        () = call.cancelled.cancelled() => Box::pin(after_cancel(connection, &mut handle)).await,
        () = ticket.has_asked() => Box::pin(after_question(connection, &mut handle, call)).await,
    };
    let waited = match task_of(connection, &waited) {
        Some(task) => {
            ticket.was_answered();
            Waited::Task(Box::pin(tasks::finish(connection, &ticket, call, &task)).await)
        }
        None => waited,
    };
    match waited {
        Waited::Task(end) => {
            Box::pin(settle_task(server, connection, tool, &ticket, call, end)).await
        }
        Waited::Answered(answer) => {
            let asked = ticket.asked();
            // The questions were refused for now, and the answer was given without what a person says.
            if !asked.is_empty() {
                return Exchange::AskedMidway(Asked {
                    questions: asked,
                    state: None,
                });
            }
            // A server that was started again does not know the state that it gave out before.
            if let (Some(_), Ok(Err(ServiceError::McpError(error)))) = (&given.state, &*answer)
                && error.code == ErrorCode::INVALID_PARAMS
            {
                ticket.was_answered();
                return Exchange::Forgotten(refusal(error));
            }
            settle_exchange(server, connection, tool, &ticket, call, *answer).await
        }
        Waited::TooLarge => Exchange::Done(Err(too_large("the answer is too large"))),
        Waited::Broken => Box::pin(broken(connection, &ticket)).await,
        Waited::Unstoppable => unstoppable(connection),
    }
}

fn unstoppable(connection: &Connection) -> Exchange {
    if connection.is_child {
        connection.wire.retire();
    }
    Exchange::Done(Err(CallError::Lost(
        "the server was told to stop the call and did not answer".into(),
    )))
}

/// The task that the server made of the call, if it did.
fn task_of(connection: &Connection, waited: &Waited) -> Option<Task> {
    let Waited::Answered(answer) = waited else {
        return None;
    };
    let era = connection.agreed.era;
    match &**answer {
        Ok(Ok(ServerResult::CustomResult(result))) => Task::of_answer(era, &result.0),
        Ok(Ok(ServerResult::CreateTaskResult(task))) => Task::of_answer(era, &json!(task)),
        Ok(_) | Err(_) => None,
    }
}

/// Reads what came of a task, which is what came of the call.
async fn settle_task(
    server: &Server,
    connection: &Connection,
    tool: &KnownTool,
    ticket: &Ticket,
    call: &Call,
    end: TaskEnd,
) -> Exchange {
    match end {
        TaskEnd::Result(result) => {
            let answer = Ok(Ok(ServerResult::CustomResult(CustomResult(result))));
            settle_exchange(server, connection, tool, ticket, call, answer).await
        }
        TaskEnd::Failed(error) => {
            call.answer.take(&json!({ "error": error }));
            // The task was under way, so it may have had an effect.
            Exchange::Done(Err(failed("tool_error", &error.message)))
        }
        TaskEnd::AskedMidway(asked) => Exchange::AskedMidway(asked),
        TaskEnd::Unstoppable => unstoppable(connection),
        TaskEnd::TooLarge => Exchange::Done(Err(too_large("the answer is too large"))),
        TaskEnd::Lost(reason) => Exchange::Done(Err(CallError::Lost(reason))),
    }
}

/// The end of the wait for an answer.
enum Waited {
    Answered(Box<RpcReply>),
    /// The answer was a task, and this is how that ended.
    Task(TaskEnd),
    TooLarge,
    Broken,
    Unstoppable,
}

impl Waited {
    fn answered(answer: RpcReply) -> Self {
        Self::Answered(Box::new(answer))
    }
}

/// The last words of a server may be the answer.
async fn after_the_end(handle: &mut RequestHandle<RoleClient>) -> Waited {
    match tokio::time::timeout(Duration::from_millis(200), &mut handle.rx).await {
        Ok(Ok(Ok(result))) => Waited::answered(Ok(Ok(result))),
        Ok(Ok(Err(error @ ServiceError::McpError(_)))) => Waited::answered(Ok(Err(error))),
        Ok(_) | Err(_) => Waited::Broken,
    }
}

/// Tells the server to stop. What it still answers is the outcome.
async fn after_cancel(connection: &Connection, handle: &mut RequestHandle<RoleClient>) -> Waited {
    tell_to_stop(connection, handle).await;
    if connection.closes_streams {
        return Waited::Unstoppable;
    }
    let ended = async {
        connection.wire.wait_until_ended().await;
        Waited::Broken
    };
    tokio::select! {
        biased;
        answer = &mut handle.rx => Waited::answered(answer),
        waited = ended => waited,
        () = tokio::time::sleep(AFTER_CANCEL) => Waited::Unstoppable,
    }
}

/// The question was refused for now, so the call should end by itself.
async fn after_question(
    connection: &Connection,
    handle: &mut RequestHandle<RoleClient>,
    call: &Call,
) -> Waited {
    tokio::select! {
        biased;
        answer = &mut handle.rx => return Waited::answered(answer),
        () = connection.wire.wait_until_ended() => return after_the_end(handle).await,
        () = call.cancelled.cancelled() => {}
        () = tokio::time::sleep(AFTER_QUESTION) => {}
    }
    after_cancel(connection, handle).await
}

/// The machinery drops the answer of a request once it passed on a cancellation that it recognizes,
/// so it is not shown one where an answer may still come.
async fn tell_to_stop(connection: &Connection, handle: &RequestHandle<RoleClient>) {
    let params = json!({"requestId": handle.id, "reason": "the call is no longer wanted"});
    let notification = if connection.closes_streams {
        match serde_json::from_value(params) {
            Ok(params) => ClientNotification::CancelledNotification(
                rmcp::model::CancelledNotification::new(params),
            ),
            Err(_) => return,
        }
    } else {
        ClientNotification::CustomNotification(CustomNotification::new(
            "notifications/cancelled",
            Some(params),
        ))
    };
    // A server that does not even take this is dealt with by the caller.
    let telling = connection.peer.send_notification(notification);
    if let Ok(Err(error)) = tokio::time::timeout(Duration::from_millis(500), telling).await {
        tracing::debug!(%error, "a server could not be told to stop a call");
    }
}

fn request(server: &Server, connection: &Connection, call: &Call, given: &Given) -> ClientRequest {
    let params = params(connection, call, given);
    let insists = || server.table().tasks.contains(&call.tool.tool);
    if connection.agreed.era == Era::Earlier && insists() {
        let mut params = json!(params);
        params["task"] = tasks::wish();
        return ClientRequest::CustomRequest(CustomRequest::new("tools/call", Some(params)));
    }
    ClientRequest::CallToolRequest(CallToolRequest::new(params))
}

fn params(connection: &Connection, call: &Call, given: &Given) -> CallToolRequestParams {
    let mut params =
        CallToolRequestParams::new(call.tool.tool.clone()).with_arguments(call.args.clone());
    if connection.agreed.era == Era::Modern {
        params.input_responses =
            Some(given.responses.clone()).filter(|responses| !responses.is_empty());
        params.request_state.clone_from(&given.state);
    }
    params
}

fn meta(connection: &Connection, call: &Call) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    meta.insert(
        KEY_META.to_owned(),
        Value::String(call.idempotency_key.clone()),
    );
    if let Some(place) = &call.trace {
        meta.insert("traceparent".to_owned(), Value::String(place.to_string()));
    }
    if connection.agreed.era != Era::Modern {
        return meta;
    }
    let own = call.client.as_ref().map(|client| client.input());
    let own = own.and_then(|input| input.capabilities);
    if let Some(capabilities) = tasks::with_tasks(connection, own) {
        meta.insert(CAPABILITIES_META.to_owned(), capabilities);
    }
    if let Some(client) = &call.client {
        if let Some(level) = client.log_level() {
            meta.insert(LOG_LEVEL_META.to_owned(), Value::String(level));
        }
    } else if logs(connection) {
        // A server of this era says nothing unless it is asked to.
        meta.insert(LOG_LEVEL_META.to_owned(), Value::String("info".to_owned()));
    }
    meta
}

fn logs(connection: &Connection) -> bool {
    let info = connection.peer.peer_info();
    info.is_some_and(|info| info.capabilities.logging.is_some())
}

/// Adds to the span of the call what only this side of it knows.
fn note_exchange(connection: &Connection, handle: &RequestHandle<RoleClient>) {
    let span = Span::current();
    if span.is_disabled() {
        return;
    }
    span.record("mcp.method.name", "tools/call");
    span.record(
        "mcp.protocol.version",
        connection.agreed.protocol_version.as_str(),
    );
    span.record(
        "network.transport",
        if connection.is_child { "pipe" } else { "tcp" },
    );
    span.record("jsonrpc.request.id", tracing::field::display(&handle.id));
}

fn unavailable(server: &Server, reason: &str) -> CallError {
    CallError::Unavailable(format!(
        "the server {} is not available: {reason}",
        server.spec.name
    ))
}
