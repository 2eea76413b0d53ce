//! One connection: how it is opened, what was agreed, and how it is kept up to date.

use super::child::{self, Launch};
use super::client::Client;
use super::credentials;
use super::http;
use super::lines::Lines;
use super::message_filter::FilteredTransport;
use super::server::Server;
use super::sse;
use super::wire::{End, Wire};
use super::{Era, Transport};
use crate::scarcity::wait_for_room;
use planwright_core::text::{escape_invisible, sanitize_line};
use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, Implementation, ProtocolVersion, ServerResult, SubscriptionFilter,
    SubscriptionsListenRequest, SubscriptionsListenRequestParams,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RequestHandle, RunningService,
    ServiceError, serve_client_with_lifecycle,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(super) type Peer = rmcp::service::Peer<RoleClient>;
type Service = RunningService<RoleClient, Client>;

const MAX_SHOWN_CHARS: usize = 200;
/// The characters kept of what a server says about its use.
const MAX_INSTRUCTIONS: usize = 4_000;

/// An open connection. Dropping it ends it, and the process behind it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) wire: Arc<Wire>,
    pub(super) agreed: Agreed,
    pub(super) peer: Peer,
    /// What we can be asked for, as servers are told.
    pub(super) capabilities: Value,
    /// `true` if cancelling means to close the stream of the answer.
    pub(super) closes_streams: bool,
    /// `true` if the server is a process of ours, which can be ended if it does not stop.
    pub(super) is_child: bool,
    reaped: Option<CancellationToken>,
    _service: Service,
    /// Keeps the request for news of the tool list open.
    _listening: Option<RequestHandle<RoleClient>>,
    /// Keeps those for news of single resources open, by their addresses.
    watched: Mutex<BTreeMap<String, RequestHandle<RoleClient>>>,
}

/// The terms agreed with the server.
#[derive(Debug, Clone)]
pub(super) struct Agreed {
    pub(super) era: Era,
    pub(super) protocol_version: String,
    pub(super) calls_itself: Option<String>,
    /// What it says about its use. Untrusted text.
    pub(super) instructions: Option<String>,
}

impl Connection {
    /// Waits until the process is gone too. It is killed if it takes too long, so this is bounded.
    pub(super) async fn wait_until_gone(&self) {
        if let Some(reaped) = &self.reaped {
            reaped.cancelled().await;
        }
    }

    /// Asks a modern server to tell of changes of one resource, until it is not wanted any more.
    pub(super) async fn watch(&self, uri: &str) -> Result<(), ServiceError> {
        let filter = SubscriptionFilter::builder().resource_subscription(uri);
        let handle = self.subscribe(filter.build()).await?;
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.insert(uri.to_owned(), handle);
        Ok(())
    }

    pub(super) async fn unwatch(&self, uri: &str) -> Result<(), ServiceError> {
        let handle = {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            watched.remove(uri)
        };
        match handle {
            Some(handle) => handle.cancel(None).await,
            None => Ok(()),
        }
    }

    async fn subscribe(
        &self,
        filter: SubscriptionFilter,
    ) -> Result<RequestHandle<RoleClient>, ServiceError> {
        let params = SubscriptionsListenRequestParams::new(filter);
        let request = SubscriptionsListenRequest::new(params);
        let request = ClientRequest::SubscriptionsListenRequest(request);
        let options = PeerRequestOptions::no_options();
        self.peer.send_request_with_option(request, options).await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.wire.end(End::Closed);
    }
}

/// Stops the process if the opening stops, for any reason.
struct EndUnlessOpen(Arc<Wire>, bool);

impl Drop for EndUnlessOpen {
    fn drop(&mut self) {
        if !self.1 {
            self.0.end(End::Closed);
        }
    }
}

/// Opens a connection in the server's era, which is found out if it is not known.
pub(super) async fn open(server: &Server) -> Result<Connection, String> {
    if let Some(era) = server.spec.era {
        return open_in(server, Some(era))
            .await
            .map_err(|(reason, _)| reason);
    }
    let known = server.era();
    match open_in(server, known).await {
        Ok(connection) => Ok(connection),
        Err((_, Some(learnt))) if known != Some(learnt) => {
            server.learn_era(learnt);
            open_in(server, Some(learnt))
                .await
                .map_err(|(reason, _)| reason)
        }
        // What was remembered may be out of date: the server may have been replaced.
        Err(_) if known.is_some() => {
            server.forget_era();
            open_in(server, None).await.map_err(|(reason, _)| reason)
        }
        Err((reason, _)) => Err(reason),
    }
}

/// The error says why, and which era was learnt from the failure.
async fn open_in(server: &Server, known: Option<Era>) -> Result<Connection, (String, Option<Era>)> {
    let news = server.news.clone();
    let wire = Arc::new(Wire::telling(&server.spec.name, news));
    let mut guard = EndUnlessOpen(Arc::clone(&wire), false);
    let opened =
        tokio::time::timeout(server.spec.start_timeout, negotiate(server, &wire, known)).await;
    let problem = match opened {
        Ok(Ok(connection)) => {
            guard.1 = true;
            return Ok(connection);
        }
        Ok(Err(problem)) => problem,
        Err(_) => format!(
            "it did not answer within {} s",
            server.spec.start_timeout.as_secs()
        ),
    };
    // The process knows best why it ended, and says so within moments.
    if wire.silent.is_cancelled() {
        tokio::time::timeout(Duration::from_secs(1), wire.wait_until_ended())
            .await
            .unwrap_or_default();
    }
    let reason = match wire.how_it_ended() {
        Some(End::Closed) | None => problem,
        Some(end) => end.reason().to_owned(),
    };
    let learnt = wire
        .late_discover
        .load(Ordering::Relaxed)
        .then_some(Era::Modern);
    Err((reason, learnt))
}

async fn negotiate(
    server: &Server,
    wire: &Arc<Wire>,
    known: Option<Era>,
) -> Result<Connection, String> {
    let client = Client::new(
        Arc::clone(wire),
        server.options.workspace.clone(),
        server.options.passed,
    );
    let about = rmcp::service::Service::<RoleClient>::get_info(&client);
    let capabilities = about.capabilities;
    let capabilities = serde_json::to_value(capabilities).unwrap_or_default();
    let patient = known == Some(Era::Modern);
    let mut reaped = None;
    let served = match &server.spec.transport {
        Transport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            let cwd = cwd.as_deref().or(server.options.workspace.as_deref());
            let env = credentials::variables(&server.spec.name, env, &server.options).await?;
            let launch = Launch {
                name: &server.spec.name,
                command,
                args,
                env: &env,
                cwd,
                logs_stderr: server.spec.logs_stderr,
            };
            let start = || child::start(&launch, &server.log, &server.options.children, wire);
            let started = wait_for_room(&CancellationToken::new(), start)
                .await
                .map_err(|error| format!("`{command}` cannot be started: {error}"))?;
            reaped = Some(started.reaped.clone());
            let lines = Lines::new(
                started.stdin,
                started.stdout,
                Arc::clone(wire),
                started.reaped,
            );
            let transport = FilteredTransport::new(lines, Arc::clone(wire), patient, true);
            Box::pin(serve_client_with_lifecycle(
                client,
                transport,
                lifecycle(known),
            ))
            .await
        }
        Transport::Http { url, headers } => {
            let name = &server.spec.name;
            let mut headers = credentials::headers(name, url, headers, &server.options).await?;
            if let Some(helper) = &server.spec.headers_helper {
                let more = credentials::headers_of_helper(name, url, helper, &server.options);
                headers.extend(more.await?);
            }
            let bearer = credentials::sign_in(server.account(), url, &headers, &server.options);
            let bearer = bearer.await?;
            if server.spec.streams_events {
                let lines = sse::open(url, (&headers, bearer), wire).await?;
                let transport = FilteredTransport::new(lines, Arc::clone(wire), true, true);
                let lifecycle = ClientLifecycleMode::Initialize;
                let served =
                    Box::pin(serve_client_with_lifecycle(client, transport, lifecycle)).await;
                return settle(server, wire, served, (capabilities, None)).await;
            }
            let transport = FilteredTransport::new(
                http::transport(url, (&headers, bearer), wire)?,
                Arc::clone(wire),
                true,
                false,
            );
            Box::pin(serve_client_with_lifecycle(
                client,
                transport,
                lifecycle(known),
            ))
            .await
        }
    };
    settle(server, wire, served, (capabilities, reaped)).await
}

/// Takes what was agreed, and lists the tools.
async fn settle(
    server: &Server,
    wire: &Arc<Wire>,
    served: Result<Service, ClientInitializeError>,
    (capabilities, reaped): (Value, Option<CancellationToken>),
) -> Result<Connection, String> {
    let service = served.map_err(|error| {
        let reason = describe(&error);
        if reason.contains("401 Unauthorized") {
            format!("{reason} ({})", sign_in_hint(&server.spec.name))
        } else {
            reason
        }
    })?;
    wire.settled.store(true, Ordering::Relaxed);
    let agreed = read_agreement(service.peer())?;
    let peer = service.peer().clone();
    let mut connection = Connection {
        wire: Arc::clone(wire),
        closes_streams: reaped.is_none() && agreed.era == Era::Modern,
        is_child: reaped.is_some(),
        reaped,
        capabilities,
        agreed,
        peer,
        _service: service,
        _listening: None,
        watched: Mutex::default(),
    };
    server.list(&connection.peer).await?;
    connection._listening = listen(&connection).await;
    Ok(connection)
}

fn lifecycle(known: Option<Era>) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match known {
        Some(Era::Modern) => ClientLifecycleMode::Discover { preferred_versions },
        Some(Era::Earlier) => ClientLifecycleMode::Initialize,
        None => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

pub(super) fn read_agreement(peer: &Peer) -> Result<Agreed, String> {
    let info = peer.peer_info().ok_or("it did not say what it speaks")?;
    let version = info.protocol_version.as_str();
    if !ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version) {
        return Err(format!(
            "it speaks the unknown protocol version `{}`",
            shown(version)
        ));
    }
    let era = if info.protocol_version.has_initialize() {
        Era::Earlier
    } else {
        Era::Modern
    };
    let name = |itself: &Implementation| shown(&format!("{} {}", itself.name, itself.version));
    Ok(Agreed {
        era,
        protocol_version: version.to_owned(),
        calls_itself: info.server_info.as_ref().map(name),
        instructions: info.instructions.as_deref().and_then(bounded_instructions),
    })
}

/// The text without what could not be shown, cut. Lines stay lines: models read it.
fn bounded_instructions(text: &str) -> Option<String> {
    let lines = text.trim().lines().map(|line| line.replace('\t', " "));
    let lines: Vec<String> = lines
        .map(|line| escape_invisible(&line).into_owned())
        .collect();
    let text: String = lines.join("\n").chars().take(MAX_INSTRUCTIONS).collect();
    (!text.is_empty()).then_some(text)
}

/// Modern servers tell of changed lists only those who asked. One that does not listen is no
/// worse for it.
async fn listen(connection: &Connection) -> Option<RequestHandle<RoleClient>> {
    let info = connection.peer.peer_info()?;
    let offered = &info.capabilities;
    let tells = |changed: Option<bool>| (changed == Some(true)).then_some(true);
    let mut filter = SubscriptionFilter::new();
    let tools = offered.tools.as_ref();
    filter.tools_list_changed = tools.and_then(|tools| tells(tools.list_changed));
    let prompts = offered.prompts.as_ref();
    filter.prompts_list_changed = prompts.and_then(|prompts| tells(prompts.list_changed));
    let resources = offered.resources.as_ref();
    filter.resources_list_changed = resources.and_then(|all| tells(all.list_changed));
    if connection.agreed.era == Era::Earlier || filter == SubscriptionFilter::new() {
        return None;
    }
    connection.subscribe(filter).await.ok()
}

/// An answer as plain JSON. What the machinery took it for does not matter.
pub(super) fn plain(result: ServerResult) -> Value {
    match result {
        ServerResult::CustomResult(custom) => custom.0,
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

fn describe(error: &ClientInitializeError) -> String {
    let text = match error {
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refused the connection: {}", error.message)
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return describe(fallback),
        ClientInitializeError::TransportError { error, .. } => error.error.to_string(),
        ClientInitializeError::ExpectedInitResult(_) => {
            "its answer to initialize cannot be read".to_owned()
        }
        other => other.to_string(),
    };
    shown(&text)
}

/// What helps if a server wants a sign-in.
pub(super) fn sign_in_hint(server: &str) -> String {
    format!(
        "{}, or a token in its headers, helps",
        sign_in_command(server)
    )
}

fn sign_in_command(server: &str) -> String {
    format!("planwright servers sign-in {server}")
}

/// Returns whether the reason for which a server could not be connected to says that a sign-in
/// helps. The reasons of the protocol's library are texts, and nothing was called.
pub(super) fn hints_at_sign_in(reason: &str, server: &str) -> bool {
    reason.contains(&sign_in_command(server))
}

/// A server's text for people, short and in one line.
fn shown(text: &str) -> String {
    sanitize_line(text).chars().take(MAX_SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_keep_their_lines_and_hide_nothing() {
        assert_eq!(
            bounded_instructions("\n# Use\r\n\n- a\tb\u{202e}\n").as_deref(),
            Some("# Use\n\n- a b\\u{202e}")
        );
        assert_eq!(bounded_instructions(" \n"), None);
        let long = bounded_instructions(&"x\n".repeat(MAX_INSTRUCTIONS)).unwrap();
        assert_eq!(long.chars().count(), MAX_INSTRUCTIONS);
    }
}
