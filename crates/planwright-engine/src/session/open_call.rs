//! One call of a client, until it ends.

use crate::context::{BegunCall, BegunRun, ClientEars, ClientOutcome, ClientWork, Context};
use crate::journal::load::LoadError;
use crate::port::{AnswerSink, CallClient, ProgressSink};
use crate::run::undo::load_any_run;
use planwright_core::id::RunId;
use planwright_core::model::WantedCall;
use planwright_core::run::{AgentCall, ClientTerms, Run, StepError, StepErrorCode, StoredValue};
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A call as a client wants it.
#[derive(Debug)]
pub struct WantedByClient {
    /// The name of the tool, in full.
    pub tool: String,
    /// The arguments.
    pub args: Value,
    /// A person can be asked about it while the client waits.
    pub attended: bool,
    /// Told how far the call is.
    pub progress: ProgressSink,
    /// The client, for what the server tells it and asks of it meanwhile.
    pub client: Option<Arc<dyn CallClient>>,
}

/// What comes of a call.
#[derive(Debug)]
pub struct ClientAnswer {
    /// The value of the call, or why there is none.
    pub outcome: Result<Value, StepError>,
    /// The server's own answer, without secrets.
    pub answer: Option<Value>,
}

/// Where a call stands.
#[derive(Debug)]
pub enum CallEvent {
    /// Its run waits for a person. Once that is decided, [`OpenCall::advance`] goes on.
    Asks(Box<Run>),
    /// It is over.
    Ended(ClientAnswer),
}

/// A call that a session agreed to make.
pub struct OpenCall {
    context: Arc<Context>,
    work: Arc<ClientWork>,
    call: AgentCall,
    run: RunId,
    /// Executes the call, until it is followed, or what came of it.
    begun: Mutex<Option<BegunRun>>,
    answer: ReceivedAnswer,
}

/// The server's own answer to a call, once it is there.
#[derive(Debug, Default)]
pub(super) struct ReceivedAnswer(Arc<Mutex<Option<Value>>>);

impl ReceivedAnswer {
    /// Hears the answer and the progress of a call.
    pub(super) fn ears(&self, progress: ProgressSink) -> ClientEars {
        let heard = Arc::clone(&self.0);
        let answer = AnswerSink::new(move |said| {
            *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(said.clone());
        });
        ClientEars {
            answer,
            progress,
            client: None,
        }
    }

    /// Takes the answer, without secrets.
    pub(super) fn take(&self, context: &Context) -> Option<Value> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What nests too deep to be searched for secrets is not passed on.
        let mut answer = kept.take().filter(StoredValue::can_keep)?;
        context.redaction.redactor().value(&mut answer);
        Some(answer)
    }
}

impl fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenCall")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl OpenCall {
    pub(super) async fn begin(
        context: &Arc<Context>,
        work: &Arc<ClientWork>,
        wanted: WantedByClient,
        terms: ClientTerms,
    ) -> Result<Self, StepError> {
        let call = WantedCall {
            id: String::new(),
            name: wanted.tool,
            args: wanted.args,
        };
        let answer = ReceivedAnswer::default();
        let ears = ClientEars {
            client: wanted.client,
            ..answer.ears(wanted.progress)
        };
        let BegunCall { call, run, begun } = work.calls.begin(call, terms, ears).await?;
        Ok(Self {
            context: Arc::clone(context),
            work: Arc::clone(work),
            call,
            run,
            begun: Mutex::new(Some(begun)),
            answer,
        })
    }

    /// The run that makes the call.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Why the call would have been refused, had the gateway been told to enforce.
    pub fn let_through(&self) -> Option<&StepError> {
        self.call.let_through.as_ref()
    }

    /// What came of a call that had ended when it was begun. It is told once.
    pub fn ended_at_once(&self) -> Option<ClientAnswer> {
        let mut begun = self.begun();
        let ended = begun.take_if(|begun| matches!(begun, BegunRun::Ended(_)));
        drop(begun);
        match ended? {
            BegunRun::Ended(outcome) => Some(self.answered(outcome)),
            BegunRun::Executing(_) => None,
        }
    }

    /// Goes on until the call ends or waits for a person.
    pub async fn advance(&self) -> CallEvent {
        let begun = self.begun().take();
        let going_on = match begun {
            Some(BegunRun::Ended(outcome)) => return CallEvent::Ended(self.answered(outcome)),
            Some(BegunRun::Executing(execution)) => execution.follow(),
            None => self.work.calls.resume(self.call.clone()),
        };
        let outcome = match going_on.await {
            ClientOutcome::Parked(run) => match load_any_run(&self.context, &run).await {
                Ok((run, _)) => return CallEvent::Asks(Box::new(run)),
                Err(error) => Err(unreadable(&error)),
            },
            ClientOutcome::Ended(outcome) => outcome,
        };
        CallEvent::Ended(self.answered(outcome))
    }

    fn answered(&self, outcome: Result<Value, StepError>) -> ClientAnswer {
        ClientAnswer {
            outcome,
            answer: self.answer.take(&self.context),
        }
    }

    fn begun(&self) -> MutexGuard<'_, Option<BegunRun>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.context.clients.stop_listening(&self.run);
    }
}

fn unreadable(error: &LoadError) -> StepError {
    StepError::new(StepErrorCode::PlanUnavailable, error.to_string())
}
