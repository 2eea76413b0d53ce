//! One configured server: its connection, its tools as last listed, and how it is started
//! again.

use super::connection::{self, Connection, Peer};
use super::era_memory::EraMemory;
use super::hint_memory::HintMemory;
use super::listing::{self, Listed};
use super::oauth::ServerAccount;
use super::own_connections::OwnConnections;
use super::resources;
use super::stderr_log::StderrLog;
use super::tool_memory::{Answer, RememberedAnswer};
use super::wire::End;
use super::{Connected, Era, McpOptions, RefusedTool, ServerSpec, ServerState, ServerStatus};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_core::tool::{KnownTool, ToolDefinition, ToolName};
use planwright_engine::port::ServerNews;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio::task::{AbortHandle, JoinHandle};

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
    /// A person's sign-in would help.
    pub(super) wants_sign_in: bool,
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
    /// Where the tools come from as long as this process has not listed them.
    recalled: Mutex<Option<Recalled>>,
    /// The last answer on its way to the disk.
    keeping: Mutex<Option<JoinHandle<()>>>,
    /// The connections of single runs, if plans do not share it.
    pub(super) own: OwnConnections,
    /// The person whose run it is for, if people sign in to it by themselves.
    person: Option<Principal>,
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

/// What an earlier process heard beside the tools.
#[derive(Debug)]
struct Recalled {
    seen_at: Timestamp,
    instructions: Option<String>,
}

/// The source of a list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListSource {
    Server,
    Memory,
}

/// The tools of one server.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) tools: BTreeMap<ToolName, Arc<KnownTool>>,
    pub(super) refused: Vec<RefusedTool>,
    /// The tools that can only be called as tasks, in the earlier era.
    pub(super) tasks: BTreeSet<String>,
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
            recalled: Mutex::default(),
            keeping: Mutex::default(),
            own: OwnConnections::default(),
            person: None,
        }
    }

    /// The same server for the calls of one run: with a connection of its own and the tools as
    /// listed over that, and with the same log.
    pub(super) fn for_one_run(&self, person: Option<Principal>) -> Self {
        let options = Arc::clone(&self.options);
        Self {
            log: self.log.clone(),
            person,
            ..Self::new(
                self.spec.clone(),
                options,
                Arc::default(),
                self.news.clone(),
            )
        }
    }

    /// The account that it is used with.
    pub(super) fn account(&self) -> ServerAccount {
        let name = self.spec.name.clone();
        match self.person() {
            Some(person) => ServerAccount::of_person(name, person),
            None => ServerAccount::shared(name),
        }
    }

    /// The person whose sign-in is used: of those who have a program of their own it is known at
    /// once, and of those who use a service with their runs.
    fn person(&self) -> Option<Principal> {
        if !self.spec.personal_sign_in {
            return None;
        }
        let own = || self.options.own_person().cloned();
        self.person.clone().or_else(own)
    }

    /// Takes over the tools that were listed for one person, for all who plan with them.
    pub(super) fn take_tools_of(&self, other: &Self) {
        if !other.is_known() {
            return;
        }
        {
            let mut current = lock(&self.table);
            *current = other.table();
            self.listed.store(true, Ordering::Release);
            *lock(&self.recalled) = None;
        }
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// The connection, opened if there is none. A caller that comes while it is being opened waits
    /// for the same one.
    pub(super) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, Arc<Failure>> {
        if self.spec.personal_sign_in && self.person().is_none() {
            // Its tools are those that were listed for a person before.
            self.recall();
            return Err(Arc::new(Failure {
                reason: "each person signs in to it, and uses it with runs of their own".to_owned(),
                stderr: String::new(),
                wants_sign_in: false,
            }));
        }
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
            // Its clock begins when it may begin. The semaphore is never closed.
            let _start = server.options.starts.acquire().await;
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
                wants_sign_in: false,
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
                    wants_sign_in: connection::hints_at_sign_in(&reason, &self.spec.name),
                    reason,
                    stderr: self.log.tail(),
                });
                slot.failures = slot.failures.saturating_add(1);
                slot.state = State::Failed(Arc::clone(&failure));
                drop(slot);
                self.drop_recalled();
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
        let info = peer.peer_info();
        let has_resources = info.is_some_and(|info| info.capabilities.resources.is_some());
        self.remember(peer, &listed, has_resources);
        let table = self.decide(listed, has_resources, ListSource::Server);
        {
            let mut current = lock(&self.table);
            *current = Arc::new(table);
            self.listed.store(true, Ordering::Release);
            *lock(&self.recalled) = None;
        }
        self.changes.send_modify(|changes| *changes += 1);
        Ok(())
    }

    /// Keeps the answer for other processes. The list does not wait for it; closing does.
    fn remember(&self, peer: &Peer, listed: &Listed, has_resources: bool) {
        let Some(memory) = self.options.memory.clone() else {
            return;
        };
        let Ok(agreed) = connection::read_agreement(peer) else {
            return;
        };
        let refused = listed.refused.iter();
        let answer = Answer {
            definitions: listed.definitions.clone(),
            refused: refused
                .map(|refused| (refused.tool.clone(), refused.reason.clone()))
                .collect(),
            has_resources,
            protocol_version: agreed.protocol_version,
            calls_itself: agreed.calls_itself,
            instructions: agreed.instructions,
        };
        let spec = self.spec.clone();
        let redaction = self.options.redaction.clone();
        let keeping = tokio::task::spawn_blocking(move || memory.keep(&spec, &answer, &redaction));
        *lock(&self.keeping) = Some(keeping);
    }

    /// Takes the tools as an earlier process heard them, unless this one has. Returns whether they
    /// are known then. They are shown and checked against; before a call the server is asked.
    pub(super) fn recall(&self) -> bool {
        if self.is_known() || lock(&self.recalled).is_some() {
            return true;
        }
        let memory = self.options.memory.as_ref();
        let Some(remembered) = memory.and_then(|memory| memory.recall(&self.spec)) else {
            return false;
        };
        let RememberedAnswer { answer, seen_at } = remembered;
        let mut listed = Listed {
            definitions: answer.definitions,
            ..Listed::default()
        };
        for (tool, reason) in answer.refused {
            listed.refuse(&self.spec.name, &tool, reason);
        }
        let table = self.decide(listed, answer.has_resources, ListSource::Memory);
        // The server may have the tool by now that a setting names.
        if !self.fits_settings(&table) {
            return false;
        }
        {
            let mut current = lock(&self.table);
            if self.is_known() {
                return true;
            }
            *current = Arc::new(table);
            *lock(&self.recalled) = Some(Recalled {
                seen_at,
                instructions: answer.instructions,
            });
        }
        self.changes.send_modify(|changes| *changes += 1);
        true
    }

    /// Returns whether it has the tools that the operator's settings name.
    fn fits_settings(&self, table: &Table) -> bool {
        let settings = &self.options.tools;
        let named = settings.classes.keys().chain(settings.key_arguments.keys());
        named
            .filter_map(|named| ToolName::try_from(named.clone()).ok())
            .filter(|name| name.server == self.spec.name)
            .all(|name| table.tools.contains_key(&name))
    }

    /// Forgets what was recalled: the server is not what it was, or is not there.
    fn drop_recalled(&self) {
        {
            let mut current = lock(&self.table);
            if lock(&self.recalled).take().is_none() {
                return;
            }
            *current = Arc::default();
        }
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// When its tools were listed, if that was by an earlier process.
    pub(super) fn recalled_from(&self) -> Option<Timestamp> {
        lock(&self.recalled)
            .as_ref()
            .map(|recalled| recalled.seen_at)
    }

    /// What it says about its use. Untrusted text.
    pub(super) fn instructions(&self) -> Option<String> {
        if let Some(open) = self.open_connection() {
            return open.agreed.instructions.clone();
        }
        let recalled = lock(&self.recalled);
        recalled
            .as_ref()
            .and_then(|recalled| recalled.instructions.clone())
    }

    /// The connection, if there is one that can be used.
    pub(super) fn open_connection(&self) -> Option<Arc<Connection>> {
        match &lock(&self.slot).state {
            State::Open(connection) if connection.wire.is_usable() => Some(Arc::clone(connection)),
            State::Open(_) | State::Idle | State::Opening(..) | State::Failed(_) => None,
        }
    }

    /// Lists the tools again if there is a connection.
    pub(super) async fn refresh(&self) {
        let Some(connection) = self.open_connection() else {
            return;
        };
        if let Err(reason) = self.list(&connection.peer).await {
            connection.wire.end(End::Gone(reason));
        }
    }

    /// The tools with the operator's decisions.
    fn decide(&self, listed: Listed, has_resources: bool, source: ListSource) -> Table {
        let mut table = self.decide_listed(listed, source);
        if has_resources {
            self.add_resource_tools(&mut table);
        }
        table
    }

    fn decide_listed(&self, mut listed: Listed, source: ListSource) -> Table {
        let origin = self.spec.origin();
        let mut tools = BTreeMap::new();
        let hints = HintMemory::new(self.options.hints.as_deref(), &origin);
        let mut doubts = hints.compare(&listed.definitions, source == ListSource::Server);
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
            tool.personal = self.spec.personal_sign_in;
            if let Some(shapes) = &self.options.shapes {
                shapes.recall(&tool);
            }
            if let Some(class) = self.options.tools.classes.get(&full) {
                tool.class = *class;
            }
            tools.insert(name, Arc::new(tool));
        }
        Table {
            tools,
            refused: listed.refused,
            tasks: listed.tasks,
        }
    }

    /// Adds the tools for its resources, unless it has tools of these names.
    fn add_resource_tools(&self, table: &mut Table) {
        let origin = self.spec.origin();
        for definition in resources::definitions(&self.spec.name) {
            let name = definition.tool_name();
            let refused = |refused: &RefusedTool| refused.tool == name.tool;
            if table.tools.contains_key(&name) || table.refused.iter().any(refused) {
                continue;
            }
            let mut tool = KnownTool::from_server(definition, &origin, self.spec.believed);
            tool.made_here = true;
            tool.personal = self.spec.personal_sign_in;
            if let Some(class) = self.options.tools.classes.get(&name.to_string()) {
                tool.class = *class;
            }
            table.tools.insert(name, Arc::new(tool));
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
                        tools: table.tools.values().filter(|tool| !tool.made_here).count(),
                        refused: table.refused.clone(),
                        ignored: connection.wire.ignored_messages(),
                        instructions: agreed.instructions,
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
    /// log, and for its answer to be remembered.
    pub(super) async fn close(&self) {
        self.end_connection().await;
        let keeping = lock(&self.keeping).take();
        if let Some(keeping) = keeping {
            keeping.await.unwrap_or_default();
        }
    }

    async fn end_connection(&self) {
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
        connection.wait_until_gone().await;
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
        let changes = tokio::select! {
            () = wire.wait_until_ended() => return,
            changes = wire.list_changed() => changes,
        };
        // Tools that cannot be listed cannot be checked against what was approved.
        if let Err(reason) = server.list(&peer).await {
            return wire.end(End::Gone(reason));
        }
        wire.note_listed(changes);
        tokio::time::sleep(BETWEEN_LISTS).await;
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
