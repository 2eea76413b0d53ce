//! Talking to a model: a thin way through to the models that are configured. It gives the model no
//! tools, keeps nothing, and decides nothing.

mod answer;
mod stream;

use crate::events::{Wanted, full, negotiate_format};
use crate::http::Caller;
use crate::http::auth::Trace;
use crate::http::body::JsonBody;
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use planwright_core::model::{Message, ModelRole, TokenUsage};
use planwright_engine::port::ModelRequest;
use serde::{Deserialize, Serialize};
use tracing::Instrument as _;
use utoipa::ToSchema;
use utoipa_axum::routes;

/// The most messages of a conversation.
const MAX_MESSAGES: usize = 1_000;

/// The longest answer a caller may ask for, in tokens.
const MAX_TOKENS: u32 = 1 << 20;

pub(super) fn routes() -> Routes {
    Routes::default().routes(routes!(chat))
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ChatRole {
    System,
    User,
    Assistant,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChatMessage {
    role: ChatRole,
    #[schema(min_length = 1)]
    content: String,
}

impl ChatMessage {
    fn into_message(self) -> Message {
        match self.role {
            ChatRole::System => Message::system(self.content),
            ChatRole::User => Message::user(self.content),
            ChatRole::Assistant => Message::assistant(self.content),
        }
    }
}

/// A conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(example = json!({ "messages": [{ "role": "user", "content": "Summarize the diff." }] }))]
struct ChatRequest {
    #[schema(min_items = 1, max_items = 1000)]
    messages: Vec<ChatMessage>,
    /// A configured model; the one for chats when absent.
    #[serde(default)]
    model: Option<String>,
    /// Tell the answer as it comes, as `Accept: text/event-stream` does.
    #[serde(default)]
    stream: bool,
    /// The longest answer, in tokens.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_048_576)]
    max_tokens: Option<u32>,
}

/// What the model answered.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChatAnswer {
    response: String,
    trace_id: String,
    /// The model that answered.
    model: String,
    usage: ChatUsage,
    /// The answer ends where it does because it became too long.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// What the answer took, in tokens.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChatUsage {
    input_tokens: u64,
    output_tokens: u64,
    /// In millionths of a dollar; absent where no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    micro_dollars: Option<u64>,
}

impl ChatUsage {
    fn new(usage: &TokenUsage, cost: Option<planwright_core::model::Cost>) -> Self {
        Self {
            input_tokens: usage.input,
            output_tokens: usage.output,
            micro_dollars: cost.map(|cost| cost.0),
        }
    }
}

/// Passes a conversation on to a model.
///
/// With `"stream": true` or `Accept: text/event-stream` the answer is told as it comes:
/// events `chat.delta` with a piece of its text, and at last `chat.done` with what the answer
/// without a stream would be, or `chat.error` with a problem.
#[utoipa::path(post, path = "/chat", operation_id = "chat", tag = "chat",
    request_body = ChatRequest,
    responses(
        (status = 200, description = "The answer of the model.",
            content((ChatAnswer = "application/json"), (String = "text/event-stream"))),
        (status = 406, description = "Neither JSON nor an event stream is accepted."),
        (status = 502, description = "The provider of the model gave no answer.")),
    extensions(("x-planwright-action" = json!("propose"))))]
async fn chat(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ChatRequest>,
) -> HttpResult<Response> {
    let form = negotiate_format(&headers).ok_or_else(not_acceptable)?;
    let streams = body.stream || form == Wanted::Stream;
    let request = read(body)?;
    let asked = http
        .service
        .engine
        .model()
        .resolve(request.role, request.model.as_deref());
    let asked = asked.map_err(answer::problem)?;
    let permit = http.events.enter(&caller).ok_or_else(full)?;
    let span = tracing::info_span!("answer", planwright.model = %asked.name);
    if streams {
        return Ok(stream::answer(&http, permit, request, trace, span));
    }
    let answered = answer::whole(&http, request, trace).instrument(span).await;
    drop(permit);
    Ok(Json(answered?).into_response())
}

/// The question, if it is one.
fn read(body: ChatRequest) -> HttpResult<ModelRequest> {
    if body.messages.is_empty() || body.messages.len() > MAX_MESSAGES {
        return Err(Problem::bad_request(format!(
            "a conversation has 1 to {MAX_MESSAGES} messages"
        )));
    }
    if body
        .messages
        .iter()
        .any(|message| message.content.is_empty())
    {
        return Err(Problem::bad_request("a message must not be empty"));
    }
    if body
        .max_tokens
        .is_some_and(|tokens| tokens == 0 || tokens > MAX_TOKENS)
    {
        return Err(Problem::bad_request(format!(
            "`maxTokens` is between 1 and {MAX_TOKENS}"
        )));
    }
    let messages = body
        .messages
        .into_iter()
        .map(ChatMessage::into_message)
        .collect();
    let mut request = ModelRequest::new(ModelRole::Chat, messages);
    request.model = body.model;
    request.max_tokens = body.max_tokens;
    Ok(request)
}

fn not_acceptable() -> Problem {
    Problem::of(
        ProblemCode::NotAcceptable,
        "an answer comes as application/json or text/event-stream",
    )
}
