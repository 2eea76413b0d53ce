//! What servers offer besides tools: resources, prompts and completions, passed on as they are.

use super::McpServers;
use super::connection::{Connection, plain};
use super::server::Server;
use planwright_engine::port::{BoxFuture, ServerError, ServerQuestion, Servers};
use rmcp::model::{
    ClientRequest, CompleteRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest,
    ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams,
    ReadResourceRequest, ReadResourceRequestParams,
};
use rmcp::service::ServiceError;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

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
}

async fn ask(server: &Arc<Server>, question: ServerQuestion) -> Result<Value, ServerError> {
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
        ServerQuestion::Resource(uri) => {
            let params = ReadResourceRequestParams::new(uri);
            let request = ReadResourceRequest::new(params);
            send(&connection, ClientRequest::ReadResourceRequest(request)).await
        }
        ServerQuestion::Prompt { name, arguments } => {
            let params = GetPromptRequestParams::new(name).with_arguments(arguments);
            let request = GetPromptRequest::new(params);
            send(&connection, ClientRequest::GetPromptRequest(request)).await
        }
        ServerQuestion::Completion(params) => {
            let unreadable = |error: serde_json::Error| ServerError::Refused {
                code: rmcp::model::ErrorCode::INVALID_PARAMS.0,
                message: error.to_string(),
            };
            let params = serde_json::from_value(params).map_err(unreadable)?;
            let request = CompleteRequest::new(params);
            send(&connection, ClientRequest::CompleteRequest(request)).await
        }
    }
}

fn offers(connection: &Connection, question: &ServerQuestion) -> bool {
    let Some(info) = connection.peer.peer_info() else {
        return false;
    };
    let capabilities = &info.capabilities;
    match question {
        ServerQuestion::Resources
        | ServerQuestion::ResourceTemplates
        | ServerQuestion::Resource(_) => capabilities.resources.is_some(),
        ServerQuestion::Prompts | ServerQuestion::Prompt { .. } => capabilities.prompts.is_some(),
        ServerQuestion::Completion(_) => capabilities.completions.is_some(),
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
    match connection.peer.send_request(request).await {
        Ok(result) => Ok(plain(result)),
        Err(ServiceError::McpError(error)) => Err(ServerError::Refused {
            code: error.code.0,
            message: super::answer::shortened(&error.message),
        }),
        Err(error) => Err(ServerError::Unavailable(super::answer::shortened(
            &error.to_string(),
        ))),
    }
}
