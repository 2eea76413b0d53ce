//! Our answers to what servers ask of us. Every request gets one: a server that waits for ever
//! hangs its call.

#![expect(deprecated, reason = "servers of the earlier era still ask for roots")]

use super::wire::Wire;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientResult, ElicitationCapability, ErrorCode, ErrorData,
    FormElicitationCapability, Implementation, ListRootsResult, ProtocolVersion, RequestId, Root,
    ServerNotification, ServerRequest, UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, Service};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Client {
    wire: Arc<Wire>,
    workspace: Option<PathBuf>,
}

impl Client {
    pub(super) fn new(wire: Arc<Wire>, workspace: Option<PathBuf>) -> Self {
        Self { wire, workspace }
    }

    fn elicited(
        &self,
        during: Option<&RequestId>,
        params: &Value,
    ) -> Result<ClientResult, ErrorData> {
        self.wire
            .elicited(during, params)
            .map(ClientResult::ElicitResult)
            .ok_or_else(|| {
                ErrorData::new(
                    ErrorCode::INVALID_REQUEST,
                    "it does not say which call asks",
                    None,
                )
            })
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
            ServerRequest::ListRootsRequest(_) => Ok(ClientResult::ListRootsResult(
                ListRootsResult::new(self.workspace.as_deref().map(root).into_iter().collect()),
            )),
            ServerRequest::ElicitRequest(elicit) => {
                let params = serde_json::to_value(&elicit.params).map_err(|error| {
                    ErrorData::new(ErrorCode::INVALID_PARAMS, error.to_string(), None)
                })?;
                self.elicited(during, &params)
            }
            ServerRequest::CustomRequest(custom) if custom.method == "ping" => {
                Ok(ClientResult::empty(()))
            }
            // A form that the machinery finds odd is a question for a person all the same.
            ServerRequest::CustomRequest(custom) if custom.method == "elicitation/create" => {
                self.elicited(during, &custom.params.unwrap_or_default())
            }
            _ => Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "this client does not offer that",
                None,
            )),
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
        // Roots are not declared: servers confined to directories of their own would take ours
        // instead.
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        let itself = Implementation::new("planwright", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(capabilities, itself);
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }
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
