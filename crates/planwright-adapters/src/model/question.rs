//! A question as the library wants it.

use super::dialect::Dialect;
use super::names::wire;
use super::options::{ProviderKind, ProviderOptions};
use super::settings::RoleSettings;
use genai::chat::{
    CacheControl, ChatMessage, ChatOptions, ChatRequest, ContentPart, JsonSpec, MessageContent,
    Tool, ToolCall, ToolChoice, ToolName, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use planwright_core::model::{AnswerSchema, Message, OfferedTool, WantedCall};
use planwright_core::secret::SecretText;
use planwright_engine::port::ModelRequest;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The address and the account a model is asked with. Everything is given: what the library is not
/// told, it guesses.
pub(super) fn target(
    provider: &ProviderOptions,
    name: &str,
    key: Option<&SecretText>,
) -> ServiceTarget {
    let mut headers = Headers::default();
    let mut add = |name: &str, value: String| headers.merge((name, value));
    match (provider.kind, key) {
        (ProviderKind::OpenAi, Some(key)) => {
            add("authorization", format!("Bearer {}", key.expose()));
        }
        (ProviderKind::Anthropic, Some(key)) => add("x-api-key", key.expose().to_owned()),
        (ProviderKind::Gemini, Some(key)) => add("x-goog-api-key", key.expose().to_owned()),
        (ProviderKind::OpenAi | ProviderKind::Anthropic | ProviderKind::Gemini, None) => {}
    }
    if provider.kind == ProviderKind::Anthropic {
        add("anthropic-version", ANTHROPIC_VERSION.to_owned());
    }
    let kind = match provider.kind {
        ProviderKind::OpenAi => genai::adapter::AdapterKind::OpenAI,
        ProviderKind::Anthropic => genai::adapter::AdapterKind::Anthropic,
        ProviderKind::Gemini => genai::adapter::AdapterKind::Gemini,
    };
    ServiceTarget {
        endpoint: Endpoint::from_owned(format!("{}/", provider.base_url.trim_end_matches('/'))),
        auth: AuthData::RequestOverride {
            url: provider.answers_at(name),
            headers,
        },
        model: ModelIden::new(kind, guarded(name)),
    }
}

/// The library reads an effort of reasoning out of names that end like this, and cuts it off.
const EFFORTS: [&str; 8] = [
    "none", "zero", "low", "minimal", "medium", "high", "xhigh", "max",
];

/// A name that the library leaves alone. The real one is sent all the same: see [`body`].
fn guarded(name: &str) -> String {
    let plain = name.replace("::", "-");
    match plain.rsplit_once('-') {
        Some((_, last)) if EFFORTS.contains(&last) => format!("{plain}-named"),
        _ => plain,
    }
}

/// The way an answer is asked for: a provider that holds it to JSON would keep the model from
/// calling tools.
fn beside_tools(request: &ModelRequest, dialect: Dialect) -> Dialect {
    match dialect {
        Dialect::JsonSchema | Dialect::JsonObject if !request.tools.is_empty() => Dialect::Text,
        Dialect::JsonSchema | Dialect::JsonObject | Dialect::Tool | Dialect::Text => dialect,
    }
}

pub(super) fn chat(request: &ModelRequest, kind: ProviderKind, dialect: Dialect) -> ChatRequest {
    let dialect = beside_tools(request, dialect);
    let mut tools: Vec<Tool> = request.tools.iter().map(offered).collect();
    let mut said = Cow::Borrowed(&request.messages);
    if let Some(schema) = &request.schema {
        if dialect.in_prompt() {
            instruct(said.to_mut(), &instruction(schema));
        }
        if dialect == Dialect::Tool {
            tools.push(answer_tool(schema));
        }
    }
    let mut said = messages(&said);
    if kind == ProviderKind::Anthropic {
        remember_beginning(&mut said);
    }
    let chat = ChatRequest::new(said);
    if tools.is_empty() {
        chat
    } else {
        chat.with_tools(tools)
    }
}

/// Has the provider remember what the conversation begins with, tools included, and what was said so
/// far: the next question begins with the same. Others do it without being told.
fn remember_beginning(said: &mut [ChatMessage]) {
    let last = said.len().saturating_sub(1);
    for index in BTreeSet::from([0, last]) {
        if let Some(message) = said.get_mut(index) {
            let options = message.options.take().unwrap_or_default();
            message.options = Some(options.with_cache_control(CacheControl::Ephemeral));
        }
    }
}

/// Adds to what the user said last. Two messages of one role in a row are more than some servers'
/// templates take.
fn instruct(said: &mut Vec<Message>, words: &str) {
    match said.last_mut() {
        Some(Message::User { text }) => {
            text.push_str("\n\n");
            text.push_str(words);
        }
        _ => said.push(Message::user(words)),
    }
}

/// Says in words what a provider cannot be told otherwise.
fn instruction(schema: &AnswerSchema) -> String {
    format!(
        "Answer with exactly one JSON value and nothing else: no explanation, no comments. It must be valid against \
         this JSON Schema:\n{}",
        schema.schema
    )
}

fn answer_tool(schema: &AnswerSchema) -> Tool {
    let tool = OfferedTool {
        name: schema.name.clone(),
        description:
            "Gives the answer. Call it exactly once, with the whole answer as its arguments."
                .to_owned(),
        schema: schema.schema.clone(),
    };
    offered(&tool)
}

fn offered(tool: &OfferedTool) -> Tool {
    let mut offered = Tool::new(ToolName::Custom(wire(&tool.name)));
    offered.description = Some(tool.description.clone());
    offered.schema = Some(tool.schema.clone());
    offered
}

fn messages(messages: &[Message]) -> Vec<ChatMessage> {
    let mut said: Vec<ChatMessage> = Vec::new();
    let mut results: Vec<ToolResponse> = Vec::new();
    for message in messages {
        if let Message::Tool { call, name, text } = message {
            results.push(ToolResponse::new(call.clone(), text.clone()).with_fn_name(wire(name)));
            continue;
        }
        // What came of the calls of one turn belongs into one message: some providers count them.
        if !results.is_empty() {
            said.push(ChatMessage::from(std::mem::take(&mut results)));
        }
        match message {
            Message::System { text } => said.push(ChatMessage::system(text)),
            Message::User { text } => said.push(ChatMessage::user(text)),
            Message::Assistant { text, calls } => said.extend(assistant(text, calls)),
            Message::Tool { .. } => {}
        }
    }
    if !results.is_empty() {
        said.push(ChatMessage::from(results));
    }
    said
}

/// A turn in which nothing was said is left out: providers refuse empty ones.
fn assistant(text: &str, calls: &[WantedCall]) -> Option<ChatMessage> {
    let text = (!text.is_empty()).then(|| ContentPart::Text(text.to_owned()));
    let calls = calls.iter().map(|call| {
        // Providers insist on objects here, and models do not always keep to it.
        let args = if call.args.is_object() {
            call.args.clone()
        } else {
            json!({ "arguments": call.args })
        };
        ContentPart::ToolCall(ToolCall {
            call_id: call.id.clone(),
            fn_name: wire(&call.name),
            fn_arguments: args,
            thought_signatures: None,
        })
    });
    let parts: Vec<ContentPart> = text.into_iter().chain(calls).collect();
    (!parts.is_empty()).then(|| ChatMessage::assistant(MessageContent::from_parts(parts)))
}

pub(super) fn options(
    request: &ModelRequest,
    (provider, name): (&ProviderOptions, &str),
    dialect: Dialect,
    settings: RoleSettings,
) -> ChatOptions {
    let dialect = beside_tools(request, dialect);
    let mut options = ChatOptions::default()
        .with_capture_usage(true)
        // The library would make room for as many calls as a provider counts, so they are gathered
        // here.
        .with_capture_tool_calls(false)
        .with_capture_content(false)
        .with_extra_body(body(request, provider, name, dialect));
    if let Some(tokens) = request.max_tokens.or(provider.answer_tokens) {
        options = options.with_max_tokens(tokens);
    }
    if let Some(temperature) = settings.temperature {
        options = options.with_temperature(temperature);
    }
    let effort = settings.effort.filter(|_| can_think(request, provider));
    if let Some(effort) = effort {
        options = options.with_reasoning_effort(effort.wire());
    }
    // Anthropic's models cannot think and be made to call a tool at once.
    let is_free =
        provider.kind == ProviderKind::Anthropic && effort.is_some_and(|effort| effort.thinks());
    if let Some(schema) = &request.schema {
        match dialect {
            Dialect::Tool if is_free => {}
            Dialect::Tool if request.tools.is_empty() => {
                options = options.with_tool_choice(ToolChoice::tool(wire(&schema.name)));
            }
            Dialect::Tool => options = options.with_tool_choice(ToolChoice::Required),
            // OpenAI's is part of the body, because the library insists on schemas without
            // free-form objects.
            Dialect::JsonSchema if provider.kind != ProviderKind::OpenAi => {
                options = options
                    .with_response_format(JsonSpec::new(&schema.name, schema.schema.clone()));
            }
            Dialect::JsonSchema | Dialect::JsonObject | Dialect::Text => {}
        }
    }
    options
}

/// Anthropic wants to see again what a model thought before it called a tool, which is not kept: after
/// a call it goes on without thinking.
fn can_think(request: &ModelRequest, provider: &ProviderOptions) -> bool {
    let has_called = request
        .messages
        .iter()
        .any(|message| matches!(message, Message::Assistant { calls, .. } if !calls.is_empty()));
    provider.kind != ProviderKind::Anthropic || !has_called
}

/// Builds the fields that take precedence over those the library sends.
fn body(request: &ModelRequest, provider: &ProviderOptions, name: &str, dialect: Dialect) -> Value {
    let mut body = match provider.kind {
        ProviderKind::OpenAi | ProviderKind::Anthropic => json!({ "model": name }),
        ProviderKind::Gemini => json!({}),
    };
    let Some(schema) = &request.schema else {
        return body;
    };
    match (provider.kind, dialect) {
        (ProviderKind::OpenAi, Dialect::JsonSchema) => {
            let held = json!({ "name": schema.name, "schema": schema.schema, "strict": false });
            body["response_format"] = json!({ "type": "json_schema", "json_schema": held });
        }
        (ProviderKind::OpenAi, Dialect::JsonObject) => {
            // llama.cpp's name for it.
            body["response_format"] = json!({ "type": "json_object", "schema": schema.schema });
            // Ollama's.
            body["format"] = schema.schema.clone();
        }
        (ProviderKind::Gemini, Dialect::JsonObject) => {
            let mut config = json!({ "responseMimeType": "application/json" });
            if let Some(tokens) = request.max_tokens.or(provider.answer_tokens) {
                config["maxOutputTokens"] = json!(tokens);
            }
            body["generationConfig"] = config;
        }
        (ProviderKind::OpenAi | ProviderKind::Gemini, Dialect::Tool | Dialect::Text)
        | (ProviderKind::Gemini, Dialect::JsonSchema)
        | (ProviderKind::Anthropic, _) => {}
    }
    body
}

/// The name under which the answer comes as a call, if it does.
pub(super) fn answer_name(request: &ModelRequest, dialect: Dialect) -> Option<String> {
    let schema = request
        .schema
        .as_ref()
        .filter(|_| dialect == Dialect::Tool)?;
    Some(wire(&schema.name))
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn names_that_the_library_would_change_are_guarded() {
        assert_eq!(guarded("gpt-5-mini"), "gpt-5-mini");
        assert_eq!(guarded("qwen-max"), "qwen-max-named");
        assert_eq!(guarded("a::b-high"), "a-b-high-named");
    }
}
