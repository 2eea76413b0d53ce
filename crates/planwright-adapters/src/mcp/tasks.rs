//! Calls that a server answers with a task: its end is waited for, as if it were the answer.
//!
//! In the modern era the server decides that a call becomes a task, and is asked now and then how it
//! stands. In the earlier era a tool can insist on it, and one request waits for the result. Once
//! there is a task the call is under way: a server that is lost then leaves its outcome unknown.

use super::Era;
use super::answer::shorten;
use super::call::CAPABILITIES_META;
use super::connection::{Connection, plain};
use super::questions;
use super::wire::Ticket;
use planwright_core::run::{Asked, Question};
use planwright_engine::port::Call;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, CustomRequest, ErrorData, RequestMetaObject, TASKS_EXTENSION_ID};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// The time between two questions how a task stands, if the server names none, and its bounds.
const POLL: Duration = Duration::from_secs(1);
const MIN_POLL: Duration = Duration::from_millis(50);
const MAX_POLL: Duration = Duration::from_secs(30);
/// The time a server may take to say how a task stands.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Questions in a row that may stay without an answer.
const MAX_FAILURES: usize = 5;
/// The time a task may go on after its server was told to stop it.
const AFTER_CANCEL: Duration = Duration::from_secs(2);
/// The time for which a server of the earlier era is asked to keep the result.
const KEPT_MS: u64 = 3_600_000;
/// The longest id of a task.
const MAX_ID: usize = 1_024;
/// The questions that one task may ask.
const MAX_QUESTIONS: usize = 32;

/// A task that a server made of a call.
#[derive(Debug)]
pub(super) struct Task {
    id: String,
    poll: Duration,
}

/// The end of a task.
pub(super) enum TaskEnd {
    /// The result of the call.
    Result(Value),
    Failed(ErrorData),
    /// It asked a person in the middle of its work, and got no answer.
    AskedMidway(Asked),
    /// It was told to stop, and did not.
    Unstoppable,
    TooLarge,
    Lost(String),
}

impl Task {
    /// Reads the task in an answer, if it is one.
    pub(super) fn of_answer(era: Era, answer: &Value) -> Option<Self> {
        let task = match era {
            Era::Modern if answer["resultType"] == "task" => answer,
            Era::Earlier => answer.get("task")?,
            Era::Modern => return None,
        };
        let id = task["taskId"].as_str().filter(|id| id.len() <= MAX_ID)?;
        Some(Self {
            id: id.to_owned(),
            poll: poll_of(task),
        })
    }

    fn params(&self) -> Value {
        json!({ "taskId": self.id })
    }
}

fn poll_of(task: &Value) -> Duration {
    let millis = task
        .get("pollIntervalMs")
        .or_else(|| task.get("pollInterval"));
    let named = millis.and_then(Value::as_u64).map(Duration::from_millis);
    named.unwrap_or(POLL).clamp(MIN_POLL, MAX_POLL)
}

/// The field of a call of a tool that insists on being a task, in the earlier era.
pub(super) fn wish() -> Value {
    json!({ "ttl": KEPT_MS })
}

/// The capabilities of a client that can wait for a task, for a server that has tasks.
pub(super) fn with_tasks(connection: &Connection, capabilities: Option<Value>) -> Option<Value> {
    let info = connection.peer.peer_info();
    if !info.is_some_and(|info| info.capabilities.supports_tasks()) {
        return capabilities;
    }
    let mut capabilities = capabilities.unwrap_or_else(|| connection.capabilities.clone());
    let fields = capabilities.as_object_mut()?;
    let extensions = fields.entry("extensions").or_insert_with(|| json!({}));
    extensions
        .as_object_mut()?
        .insert(TASKS_EXTENSION_ID.to_owned(), json!({}));
    Some(capabilities)
}

/// Waits until the task ends.
pub(super) async fn finish(
    connection: &Connection,
    ticket: &Ticket,
    call: &Call,
    task: &Task,
) -> TaskEnd {
    match connection.agreed.era {
        Era::Modern => poll(connection, call, task).await,
        Era::Earlier => wait_for_result(connection, ticket, call, task).await,
    }
}

/// Where a task of the modern era stands.
enum Standing {
    Goes,
    Asks(Map<String, Value>),
    Ended(TaskEnd),
}

async fn poll(connection: &Connection, call: &Call, task: &Task) -> TaskEnd {
    let mut pause = task.poll;
    let mut failures = 0;
    let mut answered = BTreeSet::new();
    let mut unanswered = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = connection.wire.wait_until_ended() => return lost(connection),
            () = call.cancelled.cancelled() => return stop(connection, call, task).await,
            () = tokio::time::sleep(pause) => {}
        }
        let requests = match read(connection, call, task).await {
            Ok((Standing::Goes, next)) => {
                pause = next;
                failures = 0;
                continue;
            }
            Ok((Standing::Ended(_), _)) if !unanswered.is_empty() => {
                return TaskEnd::AskedMidway(Asked {
                    questions: unanswered,
                    state: None,
                });
            }
            Ok((Standing::Ended(end), _)) => return end,
            Ok((Standing::Asks(requests), next)) => {
                pause = next;
                failures = 0;
                requests
            }
            Err(error) if failures < MAX_FAILURES && !is_answer(&error) => {
                failures += 1;
                continue;
            }
            Err(error) => return TaskEnd::Lost(shorten(&format!("its task is lost: {error}"))),
        };
        // What was answered may still be listed for a while.
        let open: Map<String, Value> = requests
            .into_iter()
            .filter(|(key, _)| !answered.contains(key))
            .collect();
        if open.is_empty() {
            continue;
        }
        if answered.len() + open.len() > MAX_QUESTIONS {
            request_cancel(connection, call, task).await;
            return TaskEnd::Lost("its task asks too much".to_owned());
        }
        let asking = ask(call, &open);
        let responses = tokio::select! {
            biased;
            () = connection.wire.wait_until_ended() => return lost(connection),
            () = call.cancelled.cancelled() => return stop(connection, call, task).await,
            responses = asking => responses,
        };
        let responses = match responses {
            Answers::Given(responses) => responses,
            Answers::Missing(questions) => {
                let cancelled = |key: &String| (key.clone(), json!({ "action": "cancel" }));
                let responses = open.keys().map(cancelled).collect();
                unanswered.extend(questions);
                responses
            }
            Answers::Impossible => {
                request_cancel(connection, call, task).await;
                return TaskEnd::Lost("its task wants input that no person can give".to_owned());
            }
        };
        answered.extend(open.keys().cloned());
        let mut params = task.params();
        params["inputResponses"] = Value::Object(responses);
        if let Err(error) = request(connection, call, "tasks/update", params).await
            && is_answer(&error)
        {
            return TaskEnd::Lost(shorten(&format!("its task took no answer: {error}")));
        }
    }
}

/// The answers to what a task asks.
enum Answers {
    Given(Map<String, Value>),
    /// No person can be reached.
    Missing(Vec<Question>),
    /// It asks for something else than a person's words.
    Impossible,
}

async fn ask(call: &Call, requests: &Map<String, Value>) -> Answers {
    let asked = questions::of_result(&json!({ "inputRequests": requests }));
    if let Some(client) = &call.client {
        return match (client.ask(requests.clone()).await, asked) {
            (Some(responses), _) => Answers::Given(responses),
            (None, Some(asked)) => Answers::Missing(asked.questions),
            (None, None) => Answers::Impossible,
        };
    }
    let Some(asked) = asked else {
        return Answers::Impossible;
    };
    if let Some(known) = questions::known_responses(&call.answered, &asked) {
        return Answers::Given(known.into_iter().collect());
    }
    let replies = match &call.person {
        Some(person) => person.ask(asked.clone()).await,
        None => None,
    };
    match replies {
        Some(replies) => {
            let answered = planwright_core::run::Answered { asked, replies };
            Answers::Given(questions::responses(&answered).into_iter().collect())
        }
        None => Answers::Missing(asked.questions),
    }
}

/// Tells the server to stop the task. What it still comes to is the outcome.
async fn stop(connection: &Connection, call: &Call, task: &Task) -> TaskEnd {
    request_cancel(connection, call, task).await;
    let until = Instant::now() + AFTER_CANCEL;
    while Instant::now() < until {
        match tokio::time::timeout_at(until, read(connection, call, task)).await {
            Ok(Ok((Standing::Ended(end), _))) => return end,
            Ok(Err(error)) if is_answer(&error) => return TaskEnd::Lost(error.to_string()),
            Ok(_) | Err(_) => tokio::time::sleep(MIN_POLL * 2).await,
        }
    }
    TaskEnd::Unstoppable
}

async fn request_cancel(connection: &Connection, call: &Call, task: &Task) {
    let telling = request(connection, call, "tasks/cancel", task.params());
    // A server that does not take this is dealt with by the caller.
    if let Ok(Err(error)) = tokio::time::timeout(Duration::from_millis(500), telling).await {
        tracing::debug!(%error, "a server could not be told to stop a task");
    }
}

async fn read(
    connection: &Connection,
    call: &Call,
    task: &Task,
) -> Result<(Standing, Duration), ServiceError> {
    let mut said = request(connection, call, "tasks/get", task.params()).await?;
    let pause = said
        .get("pollIntervalMs")
        .map_or(task.poll, |_| poll_of(&said));
    let standing = match said["status"].as_str() {
        Some("working") => Standing::Goes,
        Some("input_required") => match said["inputRequests"].take() {
            Value::Object(requests) => Standing::Asks(requests),
            _ => Standing::Goes,
        },
        Some("completed") => Standing::Ended(TaskEnd::Result(said["result"].take())),
        Some("failed") => Standing::Ended(TaskEnd::Failed(read_error(said["error"].take()))),
        Some("cancelled") => Standing::Ended(TaskEnd::Failed(ErrorData::internal_error(
            "the task was cancelled",
            None,
        ))),
        _ => Standing::Ended(TaskEnd::Lost(
            "the server does not say how its task stands".to_owned(),
        )),
    };
    Ok((standing, pause))
}

fn read_error(error: Value) -> ErrorData {
    serde_json::from_value(error)
        .unwrap_or_else(|_| ErrorData::internal_error("the task failed", None))
}

/// Returns whether the server said so, and not the way to it.
fn is_answer(error: &ServiceError) -> bool {
    matches!(error, ServiceError::McpError(_))
}

fn lost(connection: &Connection) -> TaskEnd {
    let end = connection.wire.how_it_ended();
    let reason = end.map_or("the connection broke", |end| end.reason());
    TaskEnd::Lost(format!("the server was lost during the task: {reason}"))
}

/// Asks a server of the earlier era for the result, which comes when the task ends. What the task
/// asks meanwhile is asked during this request.
async fn wait_for_result(
    connection: &Connection,
    ticket: &Ticket,
    call: &Call,
    task: &Task,
) -> TaskEnd {
    let Ok(mut handle) = send(connection, call, "tasks/result", task.params()).await else {
        return lost(connection);
    };
    ticket.sent_as(handle.id.clone(), handle.progress_token.clone());
    let waited = tokio::select! {
        biased;
        () = ticket.too_large() => return TaskEnd::TooLarge,
        answer = &mut handle.rx => answer,
        () = connection.wire.wait_until_ended() => return lost(connection),
        () = call.cancelled.cancelled() => {
            request_cancel(connection, call, task).await;
            match tokio::time::timeout(AFTER_CANCEL, &mut handle.rx).await {
                Ok(answer) => answer,
                Err(_) => return TaskEnd::Unstoppable,
            }
        }
    };
    let asked = ticket.asked();
    if !asked.is_empty() {
        return TaskEnd::AskedMidway(Asked {
            questions: asked,
            state: None,
        });
    }
    match waited {
        Ok(Ok(result)) => TaskEnd::Result(plain(result)),
        Ok(Err(ServiceError::McpError(error))) => TaskEnd::Failed(error),
        Ok(Err(error)) => TaskEnd::Lost(shorten(&error.to_string())),
        Err(_) => lost(connection),
    }
}

async fn request(
    connection: &Connection,
    call: &Call,
    method: &str,
    params: Value,
) -> Result<Value, ServiceError> {
    let mut handle = send(connection, call, method, params).await?;
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, &mut handle.rx).await;
    match answer {
        Ok(Ok(result)) => result.map(plain),
        Ok(Err(_)) => Err(ServiceError::TransportClosed),
        Err(_) => Err(ServiceError::Timeout {
            timeout: ANSWER_TIMEOUT,
        }),
    }
}

async fn send(
    connection: &Connection,
    call: &Call,
    method: &str,
    params: Value,
) -> Result<RequestHandle<RoleClient>, ServiceError> {
    let mut meta = RequestMetaObject::new();
    if connection.agreed.era == Era::Modern {
        let own = call.client.as_ref().map(|client| client.input());
        let own = own.and_then(|input| input.capabilities);
        if let Some(capabilities) = with_tasks(connection, own) {
            meta.insert(CAPABILITIES_META.to_owned(), capabilities);
        }
    }
    let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)));
    let options = PeerRequestOptions::no_options().with_meta(meta);
    connection
        .peer
        .send_request_with_option(request, options)
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_task_only_if_its_era_says_so() {
        let modern = json!({ "resultType": "task", "taskId": "t", "pollIntervalMs": 5 });
        let task = Task::of_answer(Era::Modern, &modern).unwrap();
        assert_eq!((task.id.as_str(), task.poll), ("t", MIN_POLL));
        assert!(Task::of_answer(Era::Earlier, &modern).is_none());
        let earlier = json!({ "task": { "taskId": "t", "pollInterval": 3_600_000 } });
        let task = Task::of_answer(Era::Earlier, &earlier).unwrap();
        assert_eq!((task.id.as_str(), task.poll), ("t", MAX_POLL));
        assert!(Task::of_answer(Era::Modern, &earlier).is_none());
        for other in [
            json!({ "content": [] }),
            json!({ "resultType": "task" }),
            json!({ "resultType": "task", "taskId": "x".repeat(MAX_ID + 1) }),
            json!({ "task": { "taskId": 7 } }),
            json!(null),
        ] {
            for era in [Era::Modern, Era::Earlier] {
                assert!(Task::of_answer(era, &other).is_none(), "{other}");
            }
        }
    }
}
