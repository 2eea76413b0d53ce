//! What the server says of tasks to a client of the earlier era, over pipes and HTTP.

use super::names::restore_task_ids;
use crate::tool::PlanCall;
use futures::Stream;
use rmcp::model::{
    ClientJsonRpcMessage, CustomNotification, CustomResult, JsonRpcMessage, JsonRpcNotification,
    ProtocolVersion, ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use rmcp::transport::common::server_side_http::{ServerSseMessage, SessionId};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, LocalSessionWorker,
};
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, SessionManager};
use rmcp::transport::worker::WorkerTransport;
use serde::Serialize;
use serde_json::{Value, json};

/// Adds to what the server says what the library has no fields for.
pub(crate) struct TaskTransport<T> {
    inner: T,
    /// The client knows tasks of the earlier era: it opened the connection with the version that has
    /// them.
    has_tasks: bool,
}

impl<T> TaskTransport<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self {
            inner,
            has_tasks: false,
        }
    }

    fn complete(&mut self, message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
        let mut response = match message {
            JsonRpcMessage::Response(response) => response,
            JsonRpcMessage::Notification(notice) => {
                return JsonRpcMessage::Notification(name_tasks(notice));
            }
            other => return other,
        };
        response.result = match response.result {
            ServerResult::InitializeResult(opened) => {
                self.has_tasks = opened.protocol_version == ProtocolVersion::V_2025_11_25
                    && opened.capabilities.supports_tasks();
                match self.has_tasks {
                    true => changed(ServerResult::InitializeResult(opened), announce_tasks),
                    false => ServerResult::InitializeResult(opened),
                }
            }
            ServerResult::ListToolsResult(tools) if self.has_tasks => {
                changed(ServerResult::ListToolsResult(tools), mark_tools)
            }
            other => other,
        };
        JsonRpcMessage::Response(response)
    }
}

/// A result as it is written, with something more in it.
fn changed(result: ServerResult, change: impl FnOnce(&mut Value)) -> ServerResult {
    let Ok(mut written) = to_value(&result) else {
        return result;
    };
    change(&mut written);
    ServerResult::CustomResult(CustomResult(written))
}

/// The acknowledgement of what a client listens to, with the tasks among it.
fn name_tasks(
    notice: JsonRpcNotification<ServerNotification>,
) -> JsonRpcNotification<ServerNotification> {
    if !matches!(
        notice.notification,
        ServerNotification::SubscriptionsAcknowledgedNotification(_)
    ) {
        return notice;
    }
    let Ok(mut written) = to_value(&notice.notification) else {
        return notice;
    };
    if restore_task_ids(&mut written["params"]).is_none() {
        return notice;
    }
    let method = written["method"].as_str().unwrap_or_default().to_owned();
    let named = CustomNotification::new(method, Some(written["params"].take()));
    JsonRpcNotification {
        notification: ServerNotification::CustomNotification(named),
        ..notice
    }
}

fn to_value(result: &impl Serialize) -> serde_json::Result<Value> {
    serde_json::to_value(result)
}

fn announce_tasks(opened: &mut Value) {
    opened["capabilities"]["tasks"] =
        json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
}

fn mark_tools(listed: &mut Value) {
    for tool in listed["tools"].as_array_mut().into_iter().flatten() {
        let name = tool["name"].as_str().and_then(PlanCall::from_name);
        if name.is_some_and(PlanCall::runs_plans) {
            tool["execution"] = json!({ "taskSupport": "optional" });
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for TaskTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let message = self.complete(message);
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.inner.receive().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// Sessions of clients of the earlier era over HTTP, which know tasks.
#[derive(Default)]
pub(crate) struct TaskSessions(pub(crate) LocalSessionManager);

impl SessionManager for TaskSessions {
    type Error = LocalSessionManagerError;
    type Transport = TaskTransport<WorkerTransport<LocalSessionWorker>>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.0.create_session().await?;
        Ok((id, TaskTransport::new(transport)))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.0.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.0.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.0.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.0.create_stream(id, message).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.0.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.0.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.0.resume(id, last_event_id).await
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        Ok(match self.0.restore_session(id).await? {
            RestoreOutcome::Restored(transport) => {
                RestoreOutcome::Restored(TaskTransport::new(transport))
            }
            RestoreOutcome::AlreadyPresent => RestoreOutcome::AlreadyPresent,
            _ => RestoreOutcome::NotSupported,
        })
    }
}
