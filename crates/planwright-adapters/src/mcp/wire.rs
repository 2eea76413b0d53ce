//! What the two sides of one connection share: the transport that hears the server, and the calls
//! that wait for it.
//!
//! No lock here is held while anything waits.

use super::questions;
use planwright_core::run::{Answered, Question};
use planwright_engine::port::{
    Call, CallClient, LogLevel, LoggedLine, PersonLine, Progress, ProgressSink, ServerNews,
};
use rmcp::model::{
    ElicitResult, ElicitationAction, NumberOrString, ProgressNotificationParam, ProgressToken,
    RequestId,
};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

/// The shortest time between two reports of a call's progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
const MAX_PROGRESS_CHARS: usize = 500;
const MAX_LOG_CHARS: usize = 2_000;
const MAX_LOGGER_CHARS: usize = 100;
/// The number of lines of a log that are passed on for one call.
const MAX_LOG_LINES: usize = 1_000;
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
    /// How often the tools changed, and how many of these changes are listed.
    lists: watch::Sender<Lists>,
    /// Requests of the server that are not answered yet.
    pub(super) unanswered: AtomicUsize,
    /// Messages that fit nowhere: garbage, wrong numbers, late and repeated answers.
    ignored: AtomicU64,
    /// Messages of the log that are still read. Each call makes it whole again.
    log_budget: AtomicUsize,
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

#[derive(Debug, Default)]
struct Lists {
    changed: u64,
    listed: u64,
}

/// What a server asked during a call.
pub(super) enum Elicited {
    /// The answer is known, or there will be none.
    Answered(ElicitResult),
    /// A person has to be asked.
    Open(Box<OpenQuestion>),
}

/// A question without an answer, and who may be asked.
pub(super) struct OpenQuestion {
    call: u64,
    pub(super) question: Question,
    pub(super) person: Option<PersonLine>,
    pub(super) client: Option<Arc<dyn CallClient>>,
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
    /// The number of lines of its server's log that were passed on.
    log_lines: usize,
    answered: Vec<Answered>,
    person: Option<PersonLine>,
    /// The number of questions that were asked.
    questions: usize,
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

    pub(super) async fn wait_until_ended(&self) {
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

    pub(super) fn ignored_messages(&self) -> u64 {
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
            log_lines: 0,
            answered: call.answered.clone(),
            person: call.person.clone(),
            questions: 0,
            asked: Vec::new(),
            has_asked: has_asked.clone(),
            too_large: too_large.clone(),
        };
        self.log_budget.store(MAX_LOG_LINES, Ordering::Relaxed);
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
    pub(super) fn pass_progress(&self, progress: ProgressNotificationParam) {
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

    /// Returns whether one more message of the log is read.
    pub(super) fn takes_log(&self) -> bool {
        let one_less = |budget: usize| budget.checked_sub(1);
        let order = Ordering::Relaxed;
        self.log_budget.fetch_update(order, order, one_less).is_ok()
    }

    /// Passes on a message of the server's log, as the protocol has it: to the client of the call,
    /// or to those who watch the step.
    pub(super) fn pass_log(&self, during: Option<&RequestId>, message: &Value) {
        if let Some(client) = self.client(during) {
            return client.log(message);
        }
        let Some(level) = message["level"].as_str().and_then(LogLevel::from_word) else {
            return self.ignore();
        };
        let text = match &message["data"] {
            Value::String(text) => text.chars().take(MAX_LOG_CHARS).collect(),
            data => data.to_string().chars().take(MAX_LOG_CHARS).collect(),
        };
        let logger = message["logger"].as_str();
        let logger = logger.map(|name| name.chars().take(MAX_LOGGER_CHARS).collect());
        self.log_line(
            during,
            LoggedLine {
                level,
                logger,
                text,
            },
        );
    }

    /// Passes on a line that the server wrote to its standard error.
    pub(super) fn pass_stderr_line(&self, line: &str) {
        let line = LoggedLine {
            level: LogLevel::Info,
            logger: Some("stderr".to_owned()),
            text: line.chars().take(MAX_LOG_CHARS).collect(),
        };
        self.log_line(None, line);
    }

    /// A line whose call is not known is told to no one: it may be another plan's.
    fn log_line(&self, during: Option<&RequestId>, mut line: LoggedLine) {
        let mut state = self.state();
        let is_alone = state.calls.len() == 1;
        let mut calls = state.calls.values_mut();
        let call = match during {
            Some(id) => calls.find(|call| call.id.as_ref() == Some(id)),
            None => calls.next().filter(|_| is_alone),
        };
        let Some(call) = call.filter(|call| call.log_lines < MAX_LOG_LINES) else {
            drop(state);
            return self.ignore();
        };
        call.log_lines += 1;
        if call.log_lines == MAX_LOG_LINES {
            line.text = format!("more than {MAX_LOG_LINES} lines: the others are left out");
        }
        let sink = call.progress.clone();
        drop(state);
        sink.report_log(line);
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

    /// A server of the earlier era asks during a call. What a person answered already is known.
    pub(super) fn take_question(
        &self,
        during: Option<&RequestId>,
        params: &Value,
    ) -> Option<Elicited> {
        let mut state = self.state();
        let (number, asking) = state.asking(during)?;
        if let Some(reply) = questions::known_reply(&asking.answered, params) {
            return Some(Elicited::Answered(reply));
        }
        asking.questions += 1;
        let question = (asking.questions <= MAX_QUESTIONS)
            .then(|| questions::question(&format!("q{}", asking.questions), params))
            .flatten();
        Some(question.map_or_else(
            || Elicited::Answered(ElicitResult::new(ElicitationAction::Cancel)),
            |question| {
                Elicited::Open(Box::new(OpenQuestion {
                    call: number,
                    question,
                    person: asking.person.clone(),
                    client: asking.client.clone(),
                }))
            },
        ))
    }

    /// No person answers a question now. The server is told so, and the attempt ends.
    pub(super) fn leave_open(&self, open: OpenQuestion) -> ElicitResult {
        if let Some(call) = self.state().calls.get_mut(&open.call) {
            call.asked.push(open.question);
            call.has_asked.cancel();
        }
        ElicitResult::new(ElicitationAction::Cancel)
    }

    /// The server told that its tools changed.
    pub(super) fn note_list_changed(&self) {
        self.lists.send_modify(|lists| lists.changed += 1);
    }

    /// The tools were listed after this many changes.
    pub(super) fn note_listed(&self, changes: u64) {
        self.lists
            .send_modify(|lists| lists.listed = lists.listed.max(changes));
    }

    /// Returns once there is a change that was not listed, and how many there were.
    pub(super) async fn list_changed(&self) -> u64 {
        let mut lists = self.lists.subscribe();
        let changed = lists.wait_for(|lists| lists.changed > lists.listed).await;
        let changed = changed.map(|lists| lists.changed);
        match changed {
            Ok(changed) => changed,
            // The wire holds the sender itself.
            Err(_) => std::future::pending().await,
        }
    }

    /// Returns once the tools are listed as they are after every change told of until now.
    pub(super) async fn list_settled(&self) {
        let mut lists = self.lists.subscribe();
        let now = lists.borrow().changed;
        drop(lists.wait_for(|lists| lists.listed >= now).await);
    }

    /// The client of the call during which the server asks or tells something.
    pub(super) fn client(&self, during: Option<&RequestId>) -> Option<Arc<dyn CallClient>> {
        self.state().asking(during)?.1.client.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The call that asks. Over a pipe nothing says which one it is; with several under way it is
    /// the only one that is not read-only, and with several of those it is unknown.
    fn asking(&mut self, during: Option<&RequestId>) -> Option<(u64, &mut InFlight)> {
        let only_call = self.calls.len() == 1;
        let mut calls = self.calls.iter_mut().map(|(number, call)| (*number, call));
        if let Some(id) = during {
            return calls.find(|(_, call)| call.id.as_ref() == Some(id));
        }
        let mut candidates = calls.filter(|(_, call)| only_call || !call.read_only);
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
