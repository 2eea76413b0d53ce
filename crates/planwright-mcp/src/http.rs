//! The same servers over HTTP, for callers that the service has recognised.

use crate::earlier_tasks::{TaskSessions, rename, restore_task_ids};
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use planwright_core::digest::Digest;
use planwright_core::policy::Permission;
use planwright_core::principal::Principal;
use rmcp::handler::server::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// The header by which clients of the earlier era name their session.
const SESSION: &str = "mcp-session-id";
/// Sessions of clients of the earlier era at once.
const MAX_SESSIONS: usize = 256;
/// The largest message of a client.
pub const MAX_BODY: usize = 4 << 20;

/// The caller of a request, as its token says.
#[derive(Debug, Clone)]
pub struct HttpCaller {
    /// The owner of the token.
    pub principal: Principal,
    /// What the token and the policy let its owner do.
    pub allowed: Vec<Permission>,
    /// The hash of the token: a session belongs to the token that began it.
    pub credential: Digest,
}

/// A server at an address of the service.
pub struct HttpServer<S> {
    service: StreamableHttpService<S, TaskSessions>,
    manager: Arc<TaskSessions>,
    owners: Mutex<BTreeMap<String, Digest>>,
}

impl<S> std::fmt::Debug for HttpServer<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer").finish_non_exhaustive()
    }
}

/// Why a request is not handed to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HttpRefusal {
    /// The session is unknown, or another caller's.
    #[error("there is no such session: begin one with initialize")]
    NoSession,
    /// Too many sessions are open.
    #[error("{MAX_SESSIONS} sessions are open: close one, or try again later")]
    TooManySessions,
}

/// What a client is answered, perhaps as a stream of events.
pub type HttpAnswer = http::Response<BoxBody<Bytes, Infallible>>;

impl<S: ServerHandler + Send + Sync + 'static> HttpServer<S> {
    /// Serves each client with a server of its own until `stop` is cancelled. Host and origin are
    /// checked by the service in front of it.
    pub fn new(server: impl Fn() -> S + Send + Sync + 'static, stop: CancellationToken) -> Self {
        let manager = Arc::<TaskSessions>::default();
        let mut config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins();
        config.cancellation_token = stop;
        config.max_request_body_bytes = MAX_BODY;
        let service =
            StreamableHttpService::new(move || Ok(server()), Arc::clone(&manager), config);
        Self {
            service,
            manager,
            owners: Mutex::default(),
        }
    }

    /// Answers one request of a caller.
    pub async fn handle(
        &self,
        caller: HttpCaller,
        request: http::Request<Bytes>,
    ) -> Result<HttpAnswer, HttpRefusal> {
        let credential = caller.credential;
        match session_of(request.headers()) {
            // An answer to a question counts only from the caller that was asked.
            Some(id) if self.owners().get(&id) != Some(&credential) => {
                return Err(HttpRefusal::NoSession);
            }
            Some(_) => {}
            None => self.make_room().await?,
        }
        let mut is_changed = false;
        let mut request = request.map(|body| {
            let renamed = rename(&body);
            is_changed = renamed.is_some();
            Full::new(renamed.map_or(body, Bytes::from))
        });
        request.extensions_mut().insert(caller);
        let answer = self.service.handle(request).await;
        if let Some(id) = session_of(answer.headers()) {
            self.owners().entry(id).or_insert(credential);
        }
        if is_changed {
            return Ok(answer.map(|body| {
                body.map_frame(|frame| frame.map_data(name_tasks_in_event))
                    .boxed()
            }));
        }
        Ok(answer)
    }

    /// Forgets sessions that are over, and refuses a client that could not have one.
    async fn make_room(&self) -> Result<(), HttpRefusal> {
        let sessions = self.manager.0.sessions.read().await;
        let mut owners = self.owners();
        owners.retain(|id, _| sessions.contains_key(id.as_str()));
        if sessions.len() >= MAX_SESSIONS {
            return Err(HttpRefusal::TooManySessions);
        }
        Ok(())
    }

    fn owners(&self) -> MutexGuard<'_, BTreeMap<String, Digest>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event of a stream, with the tasks that it acknowledges under their names.
fn name_tasks_in_event(event: Bytes) -> Bytes {
    const FIELD: &str = "data: ";
    let Ok(text) = std::str::from_utf8(&event) else {
        return event;
    };
    let mut is_changed = false;
    let lines = text.split('\n').map(|line| {
        let message = line.strip_prefix(FIELD);
        let message = message.filter(|message| message.contains("subscriptions/acknowledged"));
        let message = message.and_then(|message| serde_json::from_str::<Value>(message).ok());
        let named = message.and_then(|mut message| {
            restore_task_ids(&mut message["params"])?;
            Some(format!("{FIELD}{message}"))
        });
        is_changed |= named.is_some();
        named.unwrap_or_else(|| line.to_owned())
    });
    let lines: Vec<String> = lines.collect();
    match is_changed {
        true => Bytes::from(lines.join("\n")),
        false => event,
    }
}

fn session_of(headers: &http::HeaderMap) -> Option<String> {
    Some(headers.get(SESSION)?.to_str().ok()?.to_owned())
}
