//! One configured server: its connection, its tools as last listed, and how it is started
//! again.

use super::connection::{self, Connection, Peer};
use super::era_memory::EraMemory;
use super::hint_memory::HintMemory;
use super::listing::{self, Listed};
use super::own_connections::OwnConnections;
use super::stderr_log::StderrLog;
use super::wire::End;
use super::{Connected, Era, McpOptions, RefusedTool, ServerSpec, ServerState, ServerStatus};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use planwright_core::tool::{KnownTool, ToolDefinition, ToolName};
use planwright_engine::port::ServerNews;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);
/// The time a server gets to calm down between two changes of its tool list.
const BETWEEN_LISTS: Duration = Duration::from_millis(250);
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason why there is no connection.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) reason: String,
    pub(super) stderr: String,
}

type Opening = Shared<BoxFuture<'static, Result<Arc<Connection>, Arc<Failure>>>>;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) spec: ServerSpec,
    pub(super) options: Arc<McpOptions>,
    pub(super) log: StderrLog,
    /// Counts the changes of all servers' tools.
    changes: Arc<watch::Sender<u64>>,
    /// What all servers tell by themselves.
    pub(super) news: broadcast::Sender<ServerNews>,
    slot: Mutex<Slot>,
    era: EraMemory,
    /// As last listed. They stay known while the server is down: a plan that names them is no worse
    /// for it.
    table: Mutex<Arc<Table>>,
    listed: AtomicBool,
    /// The connections of single runs, if plans do not share it.
    pub(super) own: OwnConnections,
}

#[derive(Debug, Default)]
struct Slot {
    state: State,
    /// Starts in a row that came to nothing.
    failures: u32,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Opening(Opening, AbortHandle),
    Open(Arc<Connection>),
    Failed(Arc<Failure>),
}

/// The tools of one server.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) tools: BTreeMap<ToolName, Arc<KnownTool>>,
    pub(super) refused: Vec<RefusedTool>,
}

impl Server {
    pub(super) fn new(
        spec: ServerSpec,
        options: Arc<McpOptions>,
        changes: Arc<watch::Sender<u64>>,
        news: broadcast::Sender<ServerNews>,
    ) -> Self {
        Self {
            log: StderrLog::new(&options.logs, &spec.name, options.redaction.clone())
                .kept(options.keep_logs),
            era: EraMemory::new(&options.logs, &spec),
            spec,
            options,
            changes,
            news,
            slot: Mutex::default(),
            table: Mutex::default(),
            listed: AtomicBool::new(false),
            own: OwnConnections::default(),
        }
    }

    /// The same server for the calls of one run: with a connection of its own and the tools as
    /// listed over that, and with the same log.
    pub(super) fn for_one_run(&self) -> Self {
        let options = Arc::clone(&self.options);
        Self {
            log: self.log.clone(),
            ..Self::new(
                self.spec.clone(),
                options,
                Arc::default(),
                self.news.clone(),
            )
        }
    }

    /// The connection, opened if there is none. A caller that comes while it is being opened waits
    /// for the same one.
    pub(super) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, Arc<Failure>> {
        let opening = {
            let mut slot = lock(&self.slot);
            match &slot.state {
                State::Open(connection) if connection.wire.is_usable() => {
                    return Ok(Arc::clone(connection));
                }
                State::Opening(opening, _) => opening.clone(),
                State::Idle | State::Open(_) | State::Failed(_) => {
                    slot.note_break();
                    let (opening, abort) = self.start_opening(slot.backoff());
                    slot.state = State::Opening(opening.clone(), abort);
                    opening
                }
            }
        };
        opening.await
    }

    /// Opens in a task of its own, so that a caller that gives up waiting does not leave it half
    /// open.
    fn start_opening(self: &Arc<Self>, backoff: Duration) -> (Opening, AbortHandle) {
        let server = Arc::clone(self);
        let task = tokio::spawn(async move {
            tokio::time::sleep(backoff).await;
            let opened = connection::open(&server).await;
            if opened.is_err() {
                server.log.settle().await;
            }
            server.opened(opened)
        });
        let given_up = |error: tokio::task::JoinError| {
            Err(Arc::new(Failure {
                reason: format!("starting it was given up: {error}"),
                stderr: String::new(),
            }))
        };
        let abort = task.abort_handle();
        (
            task.map(move |opened| opened.unwrap_or_else(given_up))
                .boxed()
                .shared(),
            abort,
        )
    }

    fn opened(
        self: &Arc<Self>,
        opened: Result<Connection, String>,
    ) -> Result<Arc<Connection>, Arc<Failure>> {
        let mut slot = lock(&self.slot);
        match opened {
            Ok(connection) => {
                let connection = Arc::new(connection);
                self.learn_era(connection.agreed.era);
                slot.state = State::Open(Arc::clone(&connection));
                tokio::spawn(keep_listed(Arc::clone(self), Arc::downgrade(&connection)));
                Ok(connection)
            }
            Err(reason) => {
                let failure = Arc::new(Failure {
                    reason,
                    stderr: self.log.tail(),
                });
                slot.failures = slot.failures.saturating_add(1);
                slot.state = State::Failed(Arc::clone(&failure));
                Err(failure)
            }
        }
    }

    pub(super) fn era(&self) -> Option<Era> {
        self.era.get()
    }

    pub(super) fn learn_era(&self, era: Era) {
        self.era.learn(era);
    }

    pub(super) fn forget_era(&self) {
        self.era.forget();
    }

    /// Lists the tools again. The table is replaced as a whole.
    pub(super) async fn list(&self, peer: &Peer) -> Result<(), String> {
        let listed = tokio::time::timeout(LIST_TIMEOUT, listing::list(peer, &self.spec.name)).await;
        let listed = listed.map_err(|_| {
            format!(
                "it did not list its tools within {} s",
                LIST_TIMEOUT.as_secs()
            )
        })??;
        *lock(&self.table) = Arc::new(self.decide(listed));
        self.listed.store(true, Ordering::Release);
        self.changes.send_modify(|changes| *changes += 1);
        Ok(())
    }

    /// Lists the tools again if there is a connection.
    pub(super) async fn refresh(&self) {
        let connection = match &lock(&self.slot).state {
            State::Open(connection) if connection.wire.is_usable() => Arc::clone(connection),
            State::Open(_) | State::Idle | State::Opening(..) | State::Failed(_) => return,
        };
        if let Err(reason) = self.list(&connection.peer).await {
            connection.wire.end(End::Gone(reason));
        }
    }

    /// The tools with the operator's decisions.
    fn decide(&self, mut listed: Listed) -> Table {
        let origin = self.spec.origin();
        let mut tools = BTreeMap::new();
        let hints = HintMemory::new(self.options.hints.as_deref(), &origin);
        let mut doubts = hints.compare(&listed.definitions);
        for definition in std::mem::take(&mut listed.definitions) {
            let name = definition.tool_name();
            let full = name.to_string();
            let key_argument = self.options.tools.key_arguments.get(&full).cloned();
            if let Some(argument) = &key_argument
                && !takes(&definition, argument)
            {
                let reason = format!(
                    "it is to take its idempotency key as `{argument}`, which it does not take"
                );
                listed.refuse(&self.spec.name, &name.tool, reason);
                continue;
            }
            let doubt = doubts.remove(&name.tool);
            let believed = self.spec.believed && doubt.is_none();
            let mut tool = KnownTool::from_server(definition, &origin, believed);
            tool.doubt = doubt.map(|change| {
                format!(
                    "{change} (planwright servers trust {} accepts that)",
                    self.spec.name
                )
            });
            tool.key_argument = key_argument;
            if let Some(class) = self.options.tools.classes.get(&full) {
                tool.class = *class;
            }
            tools.insert(name, Arc::new(tool));
        }
        Table {
            tools,
            refused: listed.refused,
        }
    }

    pub(super) fn table(&self) -> Arc<Table> {
        Arc::clone(&lock(&self.table))
    }

    /// Returns whether its tools are known: it was connected at least once.
    pub(super) fn is_known(&self) -> bool {
        self.listed.load(Ordering::Acquire)
    }

    pub(super) fn status(&self) -> ServerStatus {
        let state = match &lock(&self.slot).state {
            State::Idle | State::Opening(..) => ServerState::Idle,
            State::Failed(failure) => ServerState::Failed {
                reason: failure.reason.clone(),
                stderr: failure.stderr.clone(),
            },
            State::Open(connection) => match connection.wire.how_it_ended() {
                Some(end) => ServerState::Failed {
                    reason: end.reason().to_owned(),
                    stderr: self.log.tail(),
                },
                None => {
                    let table = self.table();
                    let agreed = connection.agreed.clone();
                    ServerState::Connected(Connected {
                        era: agreed.era,
                        protocol_version: agreed.protocol_version,
                        calls_itself: agreed.calls_itself,
                        tools: table.tools.len(),
                        refused: table.refused.clone(),
                        ignored: connection.wire.ignored(),
                    })
                }
            },
        };
        ServerStatus {
            name: self.spec.name.clone(),
            state,
        }
    }

    /// Ends the connection and waits for the process to be gone and its last words to be in the
    /// log.
    pub(super) async fn close(&self) {
        let state = std::mem::take(&mut lock(&self.slot).state);
        let connection = match state {
            State::Open(connection) => connection,
            // The callers that wait for it are told; the process ends with the task.
            State::Opening(opening, abort) => {
                abort.abort();
                match opening.await {
                    Ok(connection) => connection,
                    Err(_) => return,
                }
            }
            State::Idle | State::Failed(_) => return,
        };
        // It may have been opened in the very last moment.
        lock(&self.slot).state = State::Idle;
        connection.wire.end(End::Closed);
        connection.gone().await;
        self.log.settle().await;
    }
}

impl Slot {
    /// A connection that broke without having been of any use counts as a start that came to
    /// nothing.
    fn note_break(&mut self) {
        if let State::Open(connection) = &self.state {
            self.failures = if connection.wire.is_useful() {
                0
            } else {
                self.failures.saturating_add(1)
            };
        }
    }

    fn backoff(&self) -> Duration {
        match self.failures {
            0 => Duration::ZERO,
            failures => FIRST_BACKOFF
                .saturating_mul(1 << (failures - 1).min(8))
                .min(LONGEST_BACKOFF),
        }
    }
}

/// Lists the tools again whenever the server says that they changed, as long as the connection
/// lives.
async fn keep_listed(server: Arc<Server>, connection: std::sync::Weak<Connection>) {
    loop {
        let Some(open) = connection.upgrade() else {
            return;
        };
        let wire = Arc::clone(&open.wire);
        let peer = open.peer.clone();
        drop(open);
        tokio::select! {
            () = wire.ended() => return,
            () = wire.list_changed.notified() => {}
        }
        tokio::time::sleep(BETWEEN_LISTS).await;
        // Tools that cannot be listed cannot be checked against what was approved.
        if let Err(reason) = server.list(&peer).await {
            return wire.end(End::Gone(reason));
        }
    }
}

fn takes(definition: &ToolDefinition, argument: &str) -> bool {
    definition
        .input_schema
        .get("properties")
        .is_some_and(|properties| properties.get(argument).is_some())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
