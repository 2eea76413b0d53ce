//! Talking to a model. There is none yet: the request is checked, and refused.

use crate::http::body::JsonBody;
use crate::http::problem::{Answer, Problem};
use crate::http::router::Routes;
use axum::Json;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

/// The most messages of a conversation.
const MAX_MESSAGES: usize = 1_000;

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
    #[expect(dead_code, reason = "no model reads it yet")]
    role: ChatRole,
    #[schema(min_length = 1)]
    content: String,
}

/// A conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "messages": [{ "role": "user", "content": "Summarize the diff." }] }))]
struct ChatRequest {
    #[schema(min_items = 1, max_items = 1000)]
    messages: Vec<ChatMessage>,
    /// A configured model; the default one when absent.
    #[serde(default)]
    #[expect(dead_code, reason = "no model is chosen yet")]
    model: Option<String>,
}

/// What the model answered.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChatAnswer {
    response: String,
    trace_id: String,
}

/// Passes a conversation on to a model.
#[utoipa::path(post, path = "/chat", operation_id = "chat", tag = "chat",
    request_body = ChatRequest,
    responses((status = 200, description = "The answer of the model.", body = ChatAnswer)),
    extensions(("x-planwright-action" = json!("propose"))))]
async fn chat(JsonBody(body): JsonBody<ChatRequest>) -> Answer<Json<ChatAnswer>> {
    if body.messages.is_empty() || body.messages.len() > MAX_MESSAGES {
        return Err(Problem::bad_request(format!("a conversation has 1 to {MAX_MESSAGES} messages")));
    }
    if body.messages.iter().any(|message| message.content.is_empty()) {
        return Err(Problem::bad_request("a message must not be empty"));
    }
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no model is configured")
        .hint("this version does not talk to models; POST /plan takes whole plans"))
}
