//! What servers offer besides tools: resources, prompts and completions, passed on as they are.

#![expect(
    deprecated,
    reason = "servers of the earlier era are told levels, and of watched resources"
)]

use super::call::CAPABILITIES_META;
use super::connection::{Connection, plain};
use super::server::Server;
use super::{Era, McpServers};
use planwright_engine::port::{
    BoxFuture, ClientInput, ServerError, ServerNews, ServerQuestion, Servers,
};
use rmcp::model::{
    ClientRequest, CompleteRequest, GetPromptRequest, GetPromptRequestParams, InputResponses,
    ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams,
    ReadResourceRequest, ReadResourceRequestParams, RequestMetaObject, SetLevelRequest,
    SetLevelRequestParams, SubscribeRequest, SubscribeRequestParams, UnsubscribeRequest,
    UnsubscribeRequestParams,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// The time a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);
const MAX_PAGES: usize = 100;
/// Resources or prompts of one server.
const MAX_ITEMS: usize = 1_000;

impl Servers for McpServers {
    fn names(&self) -> Vec<String> {
        Self::names(self).map(str::to_owned).collect()
    }

    fn ask(
        &self,
        server: &str,
        question: ServerQuestion,
    ) -> BoxFuture<'static, Result<Value, ServerError>> {
        let server = self.server(server).cloned();
        Box::pin(async move {
            let server = server.ok_or(ServerError::NotOffered)?;
            let asking = ask(&server, question);
            let late = || {
                let words = format!("{} did not answer in time", server.spec.name);
                ServerError::Unavailable(words)
            };
            let answered = tokio::time::timeout(PATIENCE, asking).await;
            answered.map_err(|_| late())?
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.subscribe_changes()
    }

    fn news(&self) -> broadcast::Receiver<ServerNews> {
        self.subscribe_news()
    }
}

pub(super) async fn ask(
    server: &Arc<Server>,
    question: ServerQuestion,
) -> Result<Value, ServerError> {
    let opened = server.connection().await;
    let connection = opened.map_err(|failure| ServerError::Unavailable(failure.reason.clone()))?;
    if !offers(&connection, &question) {
        return Err(ServerError::NotOffered);
    }
    match question {
        ServerQuestion::Resources => list(&connection, "resources", resources).await,
        ServerQuestion::ResourceTemplates => {
            list(&connection, "resourceTemplates", resource_templates).await
        }
        ServerQuestion::Prompts => list(&connection, "prompts", prompts).await,
        ServerQuestion::Resource { uri, input } => {
            let mut params = ReadResourceRequestParams::new(uri);
            let meta = take_input(&connection, input, |responses, state| {
                params.input_responses = responses;
                params.request_state = state;
            });
            let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
            send_with(&connection, request, meta).await
        }
        ServerQuestion::Prompt {
            name,
            arguments,
            input,
        } => {
            let mut params = GetPromptRequestParams::new(name).with_arguments(arguments);
            let meta = take_input(&connection, input, |responses, state| {
                params.input_responses = responses;
                params.request_state = state;
            });
            let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
            send_with(&connection, request, meta).await
        }
        ServerQuestion::Completion(params) => {
            let unreadable = |error: serde_json::Error| ServerError::Refused {
                code: rmcp::model::ErrorCode::INVALID_PARAMS.0,
                message: error.to_string(),
                data: None,
            };
            let params = serde_json::from_value(params).map_err(unreadable)?;
            let request = CompleteRequest::new(params);
            send(&connection, ClientRequest::CompleteRequest(request)).await
        }
        ServerQuestion::LogLevel(level) => {
            let Ok(level) = serde_json::from_value(json!(level)) else {
                return Err(ServerError::NotOffered);
            };
            // A modern server is told with each call.
            if connection.agreed.era == Era::Modern {
                return Ok(Value::Null);
            }
            let request = SetLevelRequest::new(SetLevelRequestParams::new(level));
            send(&connection, ClientRequest::SetLevelRequest(request)).await
        }
        ServerQuestion::Watch(uri) if connection.agreed.era == Era::Modern => {
            let watched = connection.watch(&uri).await;
            watched.map(|()| Value::Null).map_err(unanswered)
        }
        ServerQuestion::Unwatch(uri) if connection.agreed.era == Era::Modern => {
            let unwatched = connection.unwatch(&uri).await;
            unwatched.map(|()| Value::Null).map_err(unanswered)
        }
        ServerQuestion::Watch(uri) => {
            let request = SubscribeRequest::new(SubscribeRequestParams::new(uri));
            send(&connection, ClientRequest::SubscribeRequest(request)).await
        }
        ServerQuestion::Unwatch(uri) => {
            let request = UnsubscribeRequest::new(UnsubscribeRequestParams::new(uri));
            send(&connection, ClientRequest::UnsubscribeRequest(request)).await
        }
    }
}

/// Hands over what a client said before, to a server that can ask for it, and says what the client
/// can be asked for.
fn take_input(
    connection: &Connection,
    input: ClientInput,
    hand_over: impl FnOnce(Option<InputResponses>, Option<String>),
) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    if connection.agreed.era == Era::Modern {
        let responses: InputResponses = input.responses.into_iter().collect();
        hand_over(
            Some(responses).filter(|responses| !responses.is_empty()),
            input.state,
        );
        if let Some(capabilities) = input.capabilities {
            meta.insert(CAPABILITIES_META.to_owned(), capabilities);
        }
    }
    meta
}

fn offers(connection: &Connection, question: &ServerQuestion) -> bool {
    let Some(info) = connection.peer.peer_info() else {
        return false;
    };
    let capabilities = &info.capabilities;
    match question {
        ServerQuestion::Resources
        | ServerQuestion::ResourceTemplates
        | ServerQuestion::Resource { .. } => capabilities.resources.is_some(),
        ServerQuestion::Prompts | ServerQuestion::Prompt { .. } => capabilities.prompts.is_some(),
        ServerQuestion::Completion(_) => capabilities.completions.is_some(),
        ServerQuestion::LogLevel(_) => capabilities.logging.is_some(),
        ServerQuestion::Watch(_) | ServerQuestion::Unwatch(_) => capabilities
            .resources
            .as_ref()
            .is_some_and(|resources| resources.subscribe == Some(true)),
    }
}

fn page_after(cursor: Option<String>) -> Option<PaginatedRequestParams> {
    cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)))
}

fn resources(cursor: Option<String>) -> ClientRequest {
    ClientRequest::ListResourcesRequest(ListResourcesRequest {
        params: page_after(cursor),
        ..ListResourcesRequest::default()
    })
}

fn resource_templates(cursor: Option<String>) -> ClientRequest {
    ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
        params: page_after(cursor),
        ..ListResourceTemplatesRequest::default()
    })
}

fn prompts(cursor: Option<String>) -> ClientRequest {
    ClientRequest::ListPromptsRequest(ListPromptsRequest {
        params: page_after(cursor),
        ..ListPromptsRequest::default()
    })
}

/// Asks for all pages, up to a limit.
async fn list(
    connection: &Connection,
    field: &str,
    request: impl Fn(Option<String>) -> ClientRequest,
) -> Result<Value, ServerError> {
    let mut items = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let mut page = send(connection, request(cursor.take())).await?;
        if let Some(Value::Array(more)) = page.get_mut(field).map(Value::take) {
            items.extend(more);
        }
        let next = page.get("nextCursor").and_then(Value::as_str);
        cursor = next.filter(|next| !next.is_empty()).map(str::to_owned);
        if cursor.is_none() || items.len() >= MAX_ITEMS {
            break;
        }
    }
    items.truncate(MAX_ITEMS);
    Ok(json!(items))
}

async fn send(connection: &Connection, request: ClientRequest) -> Result<Value, ServerError> {
    send_with(connection, request, RequestMetaObject::new()).await
}

async fn send_with(
    connection: &Connection,
    request: ClientRequest,
    meta: RequestMetaObject,
) -> Result<Value, ServerError> {
    let options = PeerRequestOptions::no_options().with_meta(meta);
    let sent = connection.peer.send_request_with_option(request, options);
    let handle = sent.await.map_err(unanswered)?;
    handle.await_response().await.map(plain).map_err(unanswered)
}

fn unanswered(error: ServiceError) -> ServerError {
    match error {
        ServiceError::McpError(error) => ServerError::Refused {
            code: error.code.0,
            message: super::answer::shorten(&error.message),
            data: error.data,
        },
        error => ServerError::Unavailable(super::answer::shorten(&error.to_string())),
    }
}
