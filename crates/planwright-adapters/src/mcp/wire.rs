//! What the two sides of one connection share: the transport that hears the server, and the calls
//! that wait for it.
//!
//! No lock here is held while anything waits.

use super::questions;
use planwright_core::run::{Answered, Question};
use planwright_engine::port::{Call, CallClient, Progress, ProgressSink, ServerNews};
use rmcp::model::{
    ElicitResult, ElicitationAction, NumberOrString, ProgressNotificationParam, ProgressToken,
    RequestId,
};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

/// The shortest time between two reports of a call's progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
const MAX_PROGRESS_CHARS: usize = 500;
/// The number of questions one call may ask.
const MAX_QUESTIONS: usize = 32;

/// The reason why a connection is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// We closed it.
    Closed,
    /// The server is gone, or can no longer be talked to.
    Gone(String),
}

impl End {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Closed => "the connection was closed",
            Self::Gone(reason) => reason,
        }
    }
}

/// One connection as its transport and its calls see it.
#[derive(Debug, Default)]
pub(super) struct Wire {
    ended: CancellationToken,
    end: OnceLock<End>,
    /// The server closed its output.
    pub(super) silent: CancellationToken,
    /// Until the era is settled, answers are read as those of a handshake.
    pub(super) settled: AtomicBool,
    /// `server/discover` was answered after it had been given up.
    pub(super) late_discover: AtomicBool,
    pub(super) list_changed: Notify,
    /// Requests of the server that are not answered yet.
    pub(super) unanswered: AtomicUsize,
    /// Messages that fit nowhere: garbage, wrong numbers, late and repeated answers.
    ignored: AtomicU64,
    /// `true` if any call was ever answered.
    useful: AtomicBool,
    /// The name of the server.
    server: String,
    /// Where its news go.
    news: Option<broadcast::Sender<ServerNews>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that went out and have no answer.
    outstanding: HashSet<RequestId>,
    calls: BTreeMap<u64, InFlight>,
    next: u64,
    /// Takes no further calls; closed when the last one is over.
    retired: bool,
}

/// A call that waits for its answer.
#[derive(Debug)]
struct InFlight {
    id: Option<RequestId>,
    token: Option<ProgressToken>,
    read_only: bool,
    progress: ProgressSink,
    client: Option<Arc<dyn CallClient>>,
    reported_at: Option<Instant>,
    answered: Vec<Answered>,
    asked: Vec<Question>,
    has_asked: CancellationToken,
    too_large: CancellationToken,
}

impl Wire {
    /// A wire whose server's news are told.
    pub(super) fn telling(server: &str, news: broadcast::Sender<ServerNews>) -> Self {
        Self {
            server: server.to_owned(),
            news: Some(news),
            ..Self::default()
        }
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Passes on what the server tells by itself.
    pub(super) fn tell(&self, news: ServerNews) {
        // Without a listener the client is not told.
        if let Some(listeners) = &self.news {
            drop(listeners.send(news));
        }
    }

    /// Ends the connection. Only the first reason counts.
    pub(super) fn end(&self, end: End) {
        self.end.get_or_init(|| end);
        self.ended.cancel();
    }

    pub(super) fn how_it_ended(&self) -> Option<&End> {
        self.end.get()
    }

    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Returns whether further calls can be made.
    pub(super) fn is_usable(&self) -> bool {
        !self.ended.is_cancelled() && !self.silent.is_cancelled() && !self.state().retired
    }

    pub(super) fn is_useful(&self) -> bool {
        self.useful.load(Ordering::Relaxed)
    }

    pub(super) fn ignore(&self) {
        self.ignored.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }

    /// Takes no further calls, and ends when those under way are over: for a server that does not
    /// stop when told to.
    pub(super) fn retire(&self) {
        let mut state = self.state();
        state.retired = true;
        let last = state.calls.is_empty();
        drop(state);
        if last {
            self.end(End::Closed);
        }
    }

    /// A request is on its way: from here on it is unknown whether the server acts on it.
    pub(super) fn handed_over(&self, id: &RequestId) {
        self.state().outstanding.insert(id.clone());
    }

    /// Takes the answer to a request that went out and had none. The number may come back as text.
    pub(super) fn answered(&self, id: &RequestId) -> bool {
        let mut state = self.state();
        if state.outstanding.remove(id) {
            return true;
        }
        match id {
            NumberOrString::String(text) => text
                .parse()
                .is_ok_and(|number| state.outstanding.remove(&NumberOrString::Number(number))),
            NumberOrString::Number(_) => false,
        }
    }

    pub(super) fn begin(self: &Arc<Self>, call: &Call, read_only: bool) -> Ticket {
        let has_asked = CancellationToken::new();
        let too_large = CancellationToken::new();
        let in_flight = InFlight {
            id: None,
            token: None,
            read_only,
            progress: call.progress.clone(),
            client: call.client.clone(),
            reported_at: None,
            answered: call.answered.clone(),
            asked: Vec::new(),
            has_asked: has_asked.clone(),
            too_large: too_large.clone(),
        };
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.calls.insert(number, in_flight);
        Ticket {
            wire: Arc::clone(self),
            number,
            has_asked,
            too_large,
        }
    }

    /// Passes progress on to the call it belongs to, not too often. A client counts for itself.
    pub(super) fn progressed(&self, progress: ProgressNotificationParam) {
        let now = Instant::now();
        let mut state = self.state();
        let due = state
            .calls
            .values_mut()
            .find(|call| call.token.as_ref() == Some(&progress.progress_token));
        let Some(call) = due.filter(|call| {
            let is_due = call
                .reported_at
                .is_none_or(|at| now.duration_since(at) >= PROGRESS_INTERVAL);
            (is_due || call.client.is_some()) && progress.progress.is_finite()
        }) else {
            drop(state);
            return self.ignore();
        };
        call.reported_at = Some(now);
        let sink = call.progress.clone();
        drop(state);
        sink.report(Progress {
            done: progress.progress,
            total: progress.total.filter(|total| total.is_finite()),
            message: progress
                .message
                .map(|text| text.chars().take(MAX_PROGRESS_CHARS).collect()),
        });
    }

    /// The answer to one request is larger than is read.
    pub(super) fn too_large(&self, id: &RequestId) {
        if let Some(call) = self
            .state()
            .calls
            .values()
            .find(|call| call.id.as_ref() == Some(id))
        {
            call.too_large.cancel();
        }
    }

    /// A server of the earlier era asks during a call. What a person answered already is passed on;
    /// anything else ends the attempt, and the question goes to a person.
    pub(super) fn elicited(
        &self,
        during: Option<&RequestId>,
        params: &Value,
    ) -> Option<ElicitResult> {
        let mut state = self.state();
        let asking = state.asking(during)?;
        if let Some(reply) = questions::known_reply(&asking.answered, params) {
            return Some(reply);
        }
        if asking.asked.len() < MAX_QUESTIONS
            && let Some(question) =
                questions::question(&format!("q{}", asking.asked.len() + 1), params)
        {
            asking.asked.push(question);
            asking.has_asked.cancel();
        }
        Some(ElicitResult::new(ElicitationAction::Cancel))
    }

    /// The client of the call during which the server asks or tells something.
    pub(super) fn client(&self, during: Option<&RequestId>) -> Option<Arc<dyn CallClient>> {
        self.state().asking(during)?.client.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The call that asks. Over a pipe nothing says which one it is; with several under way it is
    /// the only one that is not read-only, and with several of those it is unknown.
    fn asking(&mut self, during: Option<&RequestId>) -> Option<&mut InFlight> {
        if let Some(id) = during {
            return self
                .calls
                .values_mut()
                .find(|call| call.id.as_ref() == Some(id));
        }
        let only_call = self.calls.len() == 1;
        let mut candidates = self
            .calls
            .values_mut()
            .filter(|call| only_call || !call.read_only);
        candidates.next().filter(|_| candidates.next().is_none())
    }
}

/// The place of one call. Dropping it ends the call's part in everything.
#[derive(Debug)]
pub(super) struct Ticket {
    wire: Arc<Wire>,
    number: u64,
    has_asked: CancellationToken,
    too_large: CancellationToken,
}

impl Ticket {
    pub(super) fn sent_as(&self, id: RequestId, token: ProgressToken) {
        if let Some(call) = self.wire.state().calls.get_mut(&self.number) {
            call.id = Some(id);
            call.token = Some(token);
        }
    }

    pub(super) async fn has_asked(&self) {
        self.has_asked.cancelled().await;
    }

    pub(super) async fn too_large(&self) {
        self.too_large.cancelled().await;
    }

    /// The questions that the server asked during the call and that have no answer yet.
    pub(super) fn asked(&self) -> Vec<Question> {
        self.wire
            .state()
            .calls
            .get(&self.number)
            .map(|call| call.asked.clone())
            .unwrap_or_default()
    }

    /// Returns whether the server may have seen the request.
    pub(super) fn was_sent(&self) -> bool {
        let state = self.wire.state();
        let id = state
            .calls
            .get(&self.number)
            .and_then(|call| call.id.as_ref());
        id.is_some_and(|id| state.outstanding.contains(id))
    }

    pub(super) fn was_answered(&self) {
        self.wire.useful.store(true, Ordering::Relaxed);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.wire.state();
        state.calls.remove(&self.number);
        let last = state.retired && state.calls.is_empty();
        drop(state);
        if last {
            self.wire.end(End::Closed);
        }
    }
}
