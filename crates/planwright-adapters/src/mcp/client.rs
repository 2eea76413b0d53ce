//! Our answers to what servers ask of us. Every request gets one: a server that waits for ever
//! hangs its call.

#![expect(deprecated, reason = "servers of the earlier era still ask for roots")]

use super::options::PassedRequests;
use super::questions;
use super::wire::{Elicited, OpenQuestion, Wire};
use planwright_core::run::Asked;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientResult, ElicitResult, ElicitationCapability, ErrorCode,
    ErrorData, FormElicitationCapability, Implementation, ListRootsResult, ProtocolVersion,
    RequestId, Root, RootsCapabilities, SamplingCapability, ServerNotification, ServerRequest,
    UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, Service};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Client {
    wire: Arc<Wire>,
    workspace: Option<PathBuf>,
    passed: PassedRequests,
}

/// The key of a request that is asked alone.
const ALONE: &str = "request";

impl Client {
    pub(super) fn new(wire: Arc<Wire>, workspace: Option<PathBuf>, passed: PassedRequests) -> Self {
        Self {
            wire,
            workspace,
            passed,
        }
    }

    /// Has the client of the call answer, as only it can. Nothing if the call has no client that
    /// does.
    async fn pass_on(&self, during: Option<&RequestId>, request: Value) -> Option<Value> {
        let client = self.wire.client(during)?;
        let requests = Map::from_iter([(ALONE.to_owned(), request)]);
        client.ask(requests).await?.remove(ALONE)
    }

    async fn roots(&self, during: Option<&RequestId>) -> ListRootsResult {
        if self.passed.roots {
            let asked = json!({ "method": "roots/list" });
            let answer = self.pass_on(during, asked).await;
            return answer
                .and_then(|answer| serde_json::from_value(answer).ok())
                .unwrap_or_else(|| ListRootsResult::new(Vec::new()));
        }
        ListRootsResult::new(self.workspace.as_deref().map(root).into_iter().collect())
    }

    async fn elicited(
        &self,
        during: Option<&RequestId>,
        params: Value,
    ) -> Result<ClientResult, ErrorData> {
        let elicited = self.wire.take_question(during, &params).ok_or_else(|| {
            let words = "it does not say which call asks";
            ErrorData::new(ErrorCode::INVALID_REQUEST, words, None)
        })?;
        let result = match elicited {
            Elicited::Answered(result) => result,
            Elicited::Open(open) => match ask_person(&open, params).await {
                Some(result) => result,
                None => self.wire.leave_open(*open),
            },
        };
        Ok(ClientResult::ElicitResult(result))
    }
}

impl Service<RoleClient> for Client {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        let during = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            Some(InboundStreamOrigin::Unassociated) | None => None,
        };
        match request {
            ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
            ServerRequest::ListRootsRequest(_) => {
                Ok(ClientResult::ListRootsResult(self.roots(during).await))
            }
            ServerRequest::CreateMessageRequest(sample) if self.passed.sampling => {
                let params = serde_json::to_value(&sample.params).unwrap_or_default();
                let asked = json!({ "method": "sampling/createMessage", "params": params });
                let answer = self.pass_on(during, asked).await;
                let answer = answer.and_then(|answer| serde_json::from_value(answer).ok());
                answer
                    .map(|said| ClientResult::CreateMessageResult(Box::new(said)))
                    .ok_or_else(not_offered)
            }
            ServerRequest::ElicitRequest(elicit) => {
                let params = serde_json::to_value(&elicit.params).map_err(|error| {
                    ErrorData::new(ErrorCode::INVALID_PARAMS, error.to_string(), None)
                })?;
                self.elicited(during, params).await
            }
            ServerRequest::CustomRequest(custom) if custom.method == "ping" => {
                Ok(ClientResult::empty(()))
            }
            // A form that the machinery finds odd is a question for a person all the same.
            ServerRequest::CustomRequest(custom) if custom.method == "elicitation/create" => {
                self.elicited(during, custom.params.unwrap_or_default())
                    .await
            }
            _ => Err(not_offered()),
        }
    }

    async fn handle_notification(
        &self,
        _notification: ServerNotification,
        _context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default());
        // Roots of our own are not declared: servers confined to directories of their own would take ours
        // instead.
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        if self.passed.sampling {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        if self.passed.roots {
            capabilities.roots = Some(RootsCapabilities::default());
        }
        let itself = Implementation::new("planwright", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(capabilities, itself);
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }
}

/// Asks while the call waits: the person who watches the run, or the one behind the client of the
/// gateway. The call ends the wait when it is over.
async fn ask_person(open: &OpenQuestion, params: Value) -> Option<ElicitResult> {
    if let Some(client) = &open.client {
        let request = json!({ "method": "elicitation/create", "params": params });
        let requests = Map::from_iter([(ALONE.to_owned(), request)]);
        let answer = client.ask(requests).await?.remove(ALONE)?;
        return serde_json::from_value(answer).ok();
    }
    let asked = Asked {
        questions: vec![open.question.clone()],
        state: None,
    };
    let replies = open.person.as_ref()?.ask(asked).await?;
    Some(questions::reply_of(&open.question, replies.first()?))
}

fn not_offered() -> ErrorData {
    let words = "this client does not offer that";
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None)
}

fn root(directory: &Path) -> Root {
    // What RFC 3986 does not allow as it is, is written in percent.
    let path: String = directory
        .to_string_lossy()
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect();
    Root::new(format!("file://{path}"))
}
