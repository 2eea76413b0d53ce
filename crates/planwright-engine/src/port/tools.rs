//! Calling tools.

use super::{ArtifactFile, BoxFuture, CallClient, PersonLine, ProgressSink};
use planwright_core::digest::Digest;
use planwright_core::id::{AttemptNo, PlanId, RunId, StepId};
use planwright_core::principal::Principal;
use planwright_core::run::{Answered, Asked, CallEffect, StepErrorCode};
use planwright_core::tool::{Catalog, ToolName};
use planwright_core::trace::TraceParent;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// One tool call, exactly as it is sent.
#[derive(Clone)]
pub struct Call {
    /// The tool that is called.
    pub tool: ToolName,
    /// With their secrets: they must not be written down.
    pub args: Map<String, Value>,
    /// The tool's definition as it was judged. A tool that is another one by now is not called.
    pub definition: Option<Digest>,
    /// The plan of the step.
    pub plan: PlanId,
    /// The run of the step.
    pub run: RunId,
    /// The run at the top of that run, which is its own unless it is the run of a sub-plan or of a
    /// call that an executor wanted. What a server keeps for one of these is not for another.
    pub top_run: RunId,
    /// The person whose name the run is in, if it is in one's: a server that people sign in to by
    /// themselves is called with what this person signed in with.
    pub acts_for: Option<Principal>,
    /// The step that calls.
    pub step: StepId,
    /// Counts from 1. A retry is a new attempt; the key stays the same.
    pub attempt: AttemptNo,
    /// The same for every attempt of this step in this run.
    pub idempotency_key: String,
    /// Cancelled when the answer is no longer wanted. A tool that can stop early does, and says so
    /// with [`CallError::Cancelled`] only if it is certain that nothing happened.
    pub cancelled: CancellationToken,
    /// The answers of people to the questions of earlier attempts, oldest first.
    pub answered: Vec<Answered>,
    /// Told how far the call is, and what its server logs. It never waits.
    pub progress: ProgressSink,
    /// Its place in a trace, for servers that go on below it.
    pub trace: Option<TraceParent>,
    /// Given the server's own answer, for a client that wants it as it is.
    pub answer: AnswerSink,
    /// The client that made the call through the gateway, if one did.
    pub client: Option<Arc<dyn CallClient>>,
    /// The person who can be asked while the call waits, if one may be there.
    pub person: Option<PersonLine>,
    /// The files of artifacts that its arguments name. They are gone with the call.
    pub files: Vec<ArtifactFile>,
}

/// The values of the arguments may be secrets: only their names are shown.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("tool", &self.tool)
            .field("args", &self.args.keys().collect::<Vec<_>>())
            .field("run", &self.run)
            .field("step", &self.step)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// Takes the answer of a server as it was given, before it becomes a value: with pictures and
/// remarks that a value leaves out. It never waits.
#[derive(Clone, Default)]
pub struct AnswerSink(Option<Arc<dyn HearAnswer>>);

trait HearAnswer: Fn(&Value) + Send + Sync {}

impl<F: Fn(&Value) + Send + Sync> HearAnswer for F {}

impl AnswerSink {
    /// Makes a sink of a function that returns at once.
    pub fn new(sink: impl Fn(&Value) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(sink)))
    }

    /// Passes on the answer, if it is wanted.
    pub fn take(&self, answer: &Value) {
        if let Some(sink) = &self.0 {
            sink(answer);
        }
    }
}

impl fmt::Debug for AnswerSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerSink")
    }
}

/// Why a call gave no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The call came to nothing, and that will not change: no answer is waited for any more.
    #[error("{message}")]
    Failed {
        /// The code that the step fails with.
        code: StepErrorCode,
        /// The tool's own words.
        message: String,
        /// True if another attempt may succeed.
        retryable: bool,
        /// What is known of the effect. An unsafe call is repeated only if it had none.
        effect: CallEffect,
    },
    /// The call was not made: there is no such tool or its server is gone.
    #[error("{0}")]
    Unavailable(String),
    /// The call was stopped before it had any effect.
    #[error("cancelled before it had any effect")]
    Cancelled,
    /// The connection broke while the call was under way: what happened is unknown.
    #[error("{0}")]
    Lost(String),
    /// The tool wants values from a person first. This attempt is over and had no effect; the next
    /// one is made with the answers.
    #[error("the tool asks a person for values")]
    InputRequired(Box<Asked>),
    /// The tool asked a person in the middle of its work, and got no answer. This attempt is over;
    /// what it did before it asked is unknown.
    #[error("the tool asked a person in the middle of its work")]
    AskedMidway(Box<Asked>),
}

impl CallError {
    /// A failure that will not go away by trying again.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            code: StepErrorCode::ToolError,
            message: message.into(),
            retryable: false,
            effect: CallEffect::Unknown,
        }
    }

    /// A call that was refused before anything was done.
    pub fn refused(code: impl Into<StepErrorCode>, message: impl Into<String>) -> Self {
        Self::Failed {
            code: code.into(),
            message: message.into(),
            retryable: false,
            effect: CallEffect::None,
        }
    }

    /// A call that was answered with something that cannot be used. The tool did its work.
    pub fn unusable(code: impl Into<StepErrorCode>, message: impl Into<String>) -> Self {
        Self::Failed {
            code: code.into(),
            message: message.into(),
            retryable: false,
            effect: CallEffect::Done,
        }
    }

    /// A failure that may go away by trying again.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::Failed {
            code: StepErrorCode::ToolError,
            message: message.into(),
            retryable: true,
            effect: CallEffect::Unknown,
        }
    }
}

/// The outcome of a call.
pub type Outcome = Result<Value, CallError>;

/// All tools that can be called, behind one door.
pub trait Tools: Send + Sync + fmt::Debug {
    /// The tools known now.
    fn catalog(&self) -> Catalog;

    /// Makes the call. The future may be dropped once [`Call::cancelled`] fired and a grace period
    /// passed.
    fn call(&self, call: Call) -> BoxFuture<'static, Outcome>;

    /// Returns how many calls one server takes at once; `None` for no limit of its own.
    fn server_limit(&self, _server: &str) -> Option<usize> {
        None
    }

    /// Returns whether calls of this server's tools that are not read-only run one at a time.
    fn serial_writes(&self, _server: &str) -> bool {
        true
    }

    /// Returns the words of servers about their use, by their names. Untrusted text.
    fn instructions(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Lets go of everything that was kept for the calls of one [`Call::top_run`]: it is not
    /// executed here any more, nor any run below it. It must not wait.
    fn release(&self, _top_run: &RunId) {}
}
