//! The client of one call, as the server it calls sees it: what it can be asked for, and the way
//! there. Nothing is answered in its place.

#![expect(
    deprecated,
    reason = "clients and servers of both eras sample, list roots and log"
)]

use crate::question::PATIENCE;
use planwright_engine::Redaction;
use planwright_engine::port::{BoxFuture, CallClient, ClientInput, Progress, ProgressSink};
use rmcp::model::{
    ClientCapabilities, ClientResult, InputRequest, InputRequests, ListRootsRequest, LoggingLevel,
    LoggingMessageNotificationParam, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleServer};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Messages for a client that wait to be sent. One that does not keep up misses what comes then.
const MAX_WAITING: usize = 64;

/// The time a client may take while the call waits.
const LIVE_PATIENCE: Duration = Duration::from_secs(120);

/// What a call has for its client before its answer.
#[derive(Debug)]
pub(super) enum Heard {
    Progress(Progress),
    Log(Box<LoggingMessageNotificationParam>),
    Asks(ClientAsks),
}

/// What a server wants of the client, and where the answers go.
#[derive(Debug)]
pub(super) struct ClientAsks {
    pub(super) requests: InputRequests,
    pub(super) answers: oneshot::Sender<Map<String, Value>>,
}

/// The messages of its server's log that a client wants.
#[derive(Debug, Clone, Copy)]
pub(super) enum LogWish {
    Nothing,
    /// Every message that the server sends by itself.
    Usual,
    From(LoggingLevel),
}

/// The way from a call to its client.
#[derive(Debug)]
pub(super) struct ClientLink {
    capabilities: ClientCapabilities,
    input: ClientInput,
    log: LogWish,
    redaction: Redaction,
    heard: mpsc::Sender<Heard>,
}

impl ClientLink {
    pub(super) fn new(
        capabilities: ClientCapabilities,
        mut input: ClientInput,
        log: LogWish,
        redaction: Redaction,
    ) -> (Self, mpsc::Receiver<Heard>) {
        let (heard, waiting) = mpsc::channel(MAX_WAITING);
        input.capabilities = Some(json!(capabilities));
        let link = Self {
            capabilities,
            input,
            log,
            redaction,
            heard,
        };
        (link, waiting)
    }

    /// Takes how far the call is.
    pub(super) fn progress(&self) -> ProgressSink {
        let heard = self.heard.clone();
        ProgressSink::new(move |progress| drop(heard.try_send(Heard::Progress(progress))))
    }

    fn wants(&self, level: LoggingLevel) -> bool {
        match self.log {
            LogWish::Nothing => false,
            LogWish::Usual => true,
            LogWish::From(least) => severity(level) >= severity(least),
        }
    }
}

impl CallClient for ClientLink {
    fn input(&self) -> ClientInput {
        self.input.clone()
    }

    fn log_level(&self) -> Option<String> {
        let level = match self.log {
            LogWish::Nothing => return None,
            LogWish::Usual => LoggingLevel::Info,
            LogWish::From(level) => level,
        };
        json!(level).as_str().map(str::to_owned)
    }

    fn log(&self, message: &Value) {
        let mut message = message.clone();
        self.redaction.redactor().value(&mut message);
        let read = serde_json::from_value::<LoggingMessageNotificationParam>(message);
        if let Ok(message) = read
            && self.wants(message.level)
        {
            drop(self.heard.try_send(Heard::Log(Box::new(message))));
        }
    }

    fn ask(
        &self,
        mut requests: Map<String, Value>,
    ) -> BoxFuture<'static, Option<Map<String, Value>>> {
        for request in requests.values_mut() {
            self.redaction.redactor().value(request);
        }
        let requests = read_requests(requests, &self.capabilities);
        let heard = self.heard.clone();
        let asking = async move {
            let (answers, answered) = oneshot::channel();
            let requests = requests?;
            let asks = ClientAsks { requests, answers };
            heard.send(Heard::Asks(asks)).await.ok()?;
            answered.await.ok()
        };
        // The call holds up others that write to its server.
        Box::pin(async move { tokio::time::timeout(LIVE_PATIENCE, asking).await.ok()? })
    }
}

/// What a client can be asked for through the gateway. Elicitation is for clients whose person can
/// be told from an agent.
pub(super) fn capabilities_of(
    declared: Option<ClientCapabilities>,
    has_person: bool,
) -> ClientCapabilities {
    let declared = declared.unwrap_or_default();
    let mut capabilities = ClientCapabilities::default();
    capabilities.sampling = declared.sampling;
    capabilities.roots = declared.roots;
    capabilities.elicitation = declared.elicitation.filter(|_| has_person);
    capabilities
}

/// The requests, if the client can be asked every one of them.
pub(super) fn read_requests(
    requests: Map<String, Value>,
    capabilities: &ClientCapabilities,
) -> Option<InputRequests> {
    let requests = requests.into_iter().map(|(key, request)| {
        let request: InputRequest = serde_json::from_value(request).ok()?;
        let can = match &request {
            InputRequest::CreateMessage(_) => capabilities.sampling.is_some(),
            InputRequest::Elicitation(_) => capabilities.elicitation.is_some(),
            InputRequest::ListRoots(_) => capabilities.roots.is_some(),
            _ => false,
        };
        can.then_some((key, request))
    });
    requests.collect()
}

/// Asks a client of the earlier era, one request after the other.
pub(super) async fn ask_by_requests(
    peer: &Peer<RoleServer>,
    requests: InputRequests,
) -> Option<Map<String, Value>> {
    let mut answers = Map::new();
    for (key, request) in requests {
        let request = match request {
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::ListRoots(_) => {
                ServerRequest::ListRootsRequest(ListRootsRequest::default())
            }
            _ => return None,
        };
        let options = PeerRequestOptions::with_timeout(PATIENCE);
        let sent = peer.send_request_with_option(request, options).await;
        let answer = sent.ok()?.await_response().await;
        let answer = answer
            .inspect_err(|error| tracing::warn!(%error, "a client did not answer its server"))
            .ok()?;
        let answer = match answer {
            ClientResult::CustomResult(custom) => custom.0,
            other => serde_json::to_value(other).ok()?,
        };
        answers.insert(key, answer);
    }
    Some(answers)
}

pub(super) fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
