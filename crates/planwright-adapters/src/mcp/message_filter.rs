//! The filter between a transport and the protocol machinery.
//!
//! It bounds what a server can make us do. Notifications never reach the machinery, which would
//! start a task for each. Answers that no request waits for are dropped. A server that does not
//! know `server/discover`, regardless of how it shows that, is taken for one of the earlier era.

use super::wire::{End, Wire};
use planwright_engine::port::ServerNews;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcError, JsonRpcResponse,
    ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use rmcp::transport::Transport;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// The time a server may take to answer `server/discover` before it is asked the earlier way.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(3);
/// The time a server that answered it after that may take to answer the earlier way too, as one
/// that speaks both does.
const LATE_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of requests of the server that may wait for our answers.
const MAX_UNANSWERED: usize = 64;

pub(super) struct FilteredTransport<T> {
    inner: T,
    wire: Arc<Wire>,
    discover: Option<Discover>,
    given_up: Option<RequestId>,
    /// When a server that answered late is taken for one that speaks nothing but the modern way.
    late: Option<Instant>,
    patience: Option<Duration>,
    /// True if nothing says which call a message of the log is about.
    is_pipe: bool,
}

struct Discover {
    id: RequestId,
    deadline: Option<Instant>,
}

impl<T> FilteredTransport<T> {
    /// `patient` for a server that is known to be modern: it gets all the time it needs.
    pub(super) fn new(inner: T, wire: Arc<Wire>, patient: bool, is_pipe: bool) -> Self {
        let patience = (!patient).then_some(DISCOVER_TIMEOUT);
        Self {
            inner,
            wire,
            discover: None,
            given_up: None,
            late: None,
            patience,
            is_pipe,
        }
    }

    /// Returns the part of a message that rmcp is to see, if any.
    fn sift(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            ServerJsonRpcMessage::Notification(heard) => {
                self.notified(heard.notification);
                None
            }
            ServerJsonRpcMessage::Response(response) => self.answer(response),
            ServerJsonRpcMessage::Error(error) => self.error(error),
            request @ ServerJsonRpcMessage::Request(_) => {
                if self.wire.unanswered.fetch_add(1, Ordering::Relaxed) >= MAX_UNANSWERED {
                    self.wire.end(End::Gone(
                        "it asks more than it waits for answers to".into(),
                    ));
                    return None;
                }
                Some(request)
            }
        }
    }

    fn notified(&self, notification: ServerNotification) {
        match notification {
            ServerNotification::ProgressNotification(progress) => {
                self.wire.pass_progress(progress.params);
            }
            ServerNotification::ToolListChangedNotification(_) => {
                self.wire.note_list_changed();
            }
            ServerNotification::PromptListChangedNotification(_) => {
                self.wire.tell(ServerNews::Prompts);
            }
            ServerNotification::ResourceListChangedNotification(_) => {
                self.wire.tell(ServerNews::Resources);
            }
            ServerNotification::ResourceUpdatedNotification(updated) => {
                self.wire.tell(ServerNews::Resource {
                    server: self.wire.server().to_owned(),
                    uri: updated.params.uri,
                });
            }
            ServerNotification::LoggingMessageNotification(message) if self.is_pipe => {
                match serde_json::to_value(message.params) {
                    Ok(params) => self.wire.pass_log(None, &params),
                    Err(_) => self.wire.ignore(),
                }
            }
            _ => self.wire.ignore(),
        }
    }

    fn answer(&mut self, response: JsonRpcResponse<ServerResult>) -> Option<ServerJsonRpcMessage> {
        if !self.wire.answered(&response.id) {
            let discovered = matches!(response.result, ServerResult::DiscoverResult(_));
            if discovered && self.given_up.as_ref() == Some(&response.id) {
                self.wire.late_discover.store(true, Ordering::Relaxed);
                self.late = Some(Instant::now() + LATE_TIMEOUT);
            }
            self.wire.ignore();
            return None;
        }
        self.late = None;
        match self.discover.take() {
            Some(discover) if discover.id == response.id && !speaks_modern(&response.result) => {
                Some(unknown_method(discover.id))
            }
            _ => Some(ServerJsonRpcMessage::Response(response)),
        }
    }

    fn error(&mut self, error: JsonRpcError) -> Option<ServerJsonRpcMessage> {
        let known = match &error.id {
            Some(id) => self.wire.answered(id),
            // A server of the earlier era may fail to read the request, its number included.
            None => self.discover.is_some(),
        };
        if !known {
            self.wire.ignore();
            return None;
        }
        self.discover = None;
        self.late = None;
        Some(ServerJsonRpcMessage::Error(error))
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for FilteredTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let mut replies = false;
        match &item {
            ClientJsonRpcMessage::Request(request) => {
                self.wire.handed_over(&request.id);
                if matches!(request.request, ClientRequest::DiscoverRequest(_)) {
                    let deadline = self.patience.map(|patience| Instant::now() + patience);
                    self.discover = Some(Discover {
                        id: request.id.clone(),
                        deadline,
                    });
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => replies = true,
            ClientJsonRpcMessage::Notification(_) => {}
        }
        let sending = self.inner.send(item);
        let wire = Arc::clone(&self.wire);
        async move {
            let sent = sending.await;
            if replies {
                let one_less = |count: usize| Some(count.saturating_sub(1));
                wire.unanswered
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
                    .unwrap_or_default();
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let deadline = self
                .discover
                .as_ref()
                .and_then(|discover| discover.deadline)
                .or(self.late);
            let given_up = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            let message = tokio::select! {
                biased;
                // What was said before the end still counts.
                message = self.inner.receive() => message?,
                () = self.wire.wait_until_ended() => return None,
                () = given_up => {
                    let Some(Discover { id, .. }) = self.discover.take() else {
                        self.wire.end(End::Gone("it speaks nothing but the modern way".into()));
                        return None;
                    };
                    self.wire.answered(&id);
                    self.given_up = Some(id.clone());
                    return Some(unknown_method(id));
                }
            };
            if let Some(message) = self.sift(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        let closed = self.inner.close().await;
        self.wire.end(End::Gone("the connection closed".into()));
        closed
    }
}

/// A server that knows the modern way and offers only earlier versions is spoken to the earlier
/// way.
fn speaks_modern(result: &ServerResult) -> bool {
    matches!(result, ServerResult::DiscoverResult(discovered)
        if discovered.supported_versions.contains(&ProtocolVersion::V_2026_07_28))
}

fn unknown_method(id: RequestId) -> ServerJsonRpcMessage {
    let error = ErrorData::new(
        ErrorCode::METHOD_NOT_FOUND,
        "no usable answer to server/discover",
        None,
    );
    ServerJsonRpcMessage::error(error, Some(id))
}
