//! The client of the gateway as the executor of a step: it works elsewhere, and each call it wants
//! goes through the run like that of any other executor.

use super::tool_calls::{CallOutcome, ToolCalls};
use super::wait_until_unwanted;
use crate::context::crash;
use crate::context::{
    BegunCall, BegunRun, CallExecution, ClientCalls, ClientEars, ClientOutcome, ClientWork,
    JointPart, joint_commit,
};
use crate::dispatch::{ReadRun, is_free};
use crate::port::BoxFuture;
use crate::run::child::ChildAnswer;
use crate::run::handle::RunHandle;
use planwright_core::model::WantedCall;
use planwright_core::run::{
    AgentCall, CallEffect, CallFate, CallReport, ClientTerms, StepError, StepErrorCode,
    StoredValue, Wanted,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Lets the client of this session call, until it goes.
pub(crate) async fn serve_client(calls: ToolCalls) -> ChildAnswer {
    let clients = &calls.runs.context.clients;
    let Some(client) = clients.take(&calls.order.plan) else {
        return (settle_left_calls(&calls).await, None);
    };
    let ended = CancellationToken::new();
    let unsettled = Arc::<Unsettled>::default();
    let work = ClientWork {
        calls: Arc::new(SessionCalls {
            calls: calls.clone(),
            unsettled: Arc::clone(&unsettled),
        }),
        _ends: ended.clone().drop_guard(),
    };
    // A client that has gone already drops the work, and so ends it.
    drop(client.send(work));
    tokio::select! {
        biased;
        () = wait_until_unwanted(calls.commands.clone()) => (CallReport::NotMade, None),
        () = ended.cancelled() => (end_session(&calls, &unsettled).await, None),
    }
}

/// The client has gone. A call that waits for a person still does.
async fn end_session(calls: &ToolCalls, unsettled: &Unsettled) -> CallReport {
    if let Err(report) = settle(calls, &unsettled.list()).await {
        return report;
    }
    let said = Value::String("the client ended the session".to_owned());
    CallReport::Succeeded(StoredValue::Inline(Arc::new(said)))
}

/// What is left to do for a client that went with its process: the calls that were under way are
/// brought to an end, or to the person who knows what became of them.
async fn settle_left_calls(calls: &ToolCalls) -> CallReport {
    let turns = calls.order.turns.iter();
    let wanted: Vec<AgentCall> = turns.flat_map(|turn| turn.calls.clone()).collect();
    if let Err(report) = settle(calls, &wanted).await {
        return report;
    }
    let error = StepError::new(
        StepErrorCode::NoExecutor,
        "the client is gone: its session ended with the process that held it",
    );
    CallReport::Failed(error.with_effect(CallEffect::Done))
}

/// Brings calls to an end. An error says which of them cannot be.
async fn settle(calls: &ToolCalls, wanted: &[AgentCall]) -> Result<(), CallReport> {
    for call in wanted {
        calls.make(call, false).await?;
    }
    Ok(())
}

/// The calls of one session.
#[derive(Debug, Clone)]
struct SessionCalls {
    calls: ToolCalls,
    unsettled: Arc<Unsettled>,
}

/// Calls that were decided on and have not ended.
#[derive(Debug, Default)]
struct Unsettled(Mutex<BTreeMap<u32, AgentCall>>);

impl Unsettled {
    fn insert(&self, call: AgentCall) {
        self.calls().insert(call.number, call);
    }

    fn remove(&self, number: u32) {
        self.calls().remove(&number);
    }

    fn list(&self) -> Vec<AgentCall> {
        self.calls().values().cloned().collect()
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<u32, AgentCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionCalls {
    async fn begin_call(
        &self,
        wanted: WantedCall,
        terms: ClientTerms,
        ears: ClientEars,
    ) -> Result<BegunCall, StepError> {
        let calls = &self.calls;
        let wanted = calls.considered(wanted).await.map_err(over)?;
        let reads = only_reads(&wanted);
        if reads {
            self.check_journal()?;
        }
        let (writer, joint) = joint_commit();
        let turn = calls.take_client_turn(wanted, terms, writer, reads).await;
        let call = turn.map_err(over)?.calls.pop();
        let call = call.ok_or_else(|| over(CallReport::NotMade))?;
        let run = match &call.fate {
            CallFate::Refused(error) => {
                // A refusal is on record before it is told.
                let written = joint.append(JointPart::default()).await;
                written.map_err(|_| over(CallReport::NotMade))?;
                return Err(error.clone());
            }
            CallFate::Run(run) => run.clone(),
        };
        self.unsettled.insert(call.clone());
        let clients = &calls.runs.context.clients;
        clients.listen(&run, ears.clone());
        let begun = match calls.child_order(&call, &run, false).await {
            Ok(order) => {
                crash::point("agent: before call");
                if reads && is_free(&call) {
                    let read = Box::pin(calls.runs.read(order, ears, joint));
                    read.await.map_err(over)
                } else {
                    let opened = Box::pin(calls.runs.open_joint_child(&order, joint)).await;
                    opened.map(ReadRun::Executing).map_err(over)
                }
            }
            Err(error) => Err(error),
        };
        if begun.is_err() {
            clients.stop_listening(&run);
        }
        if !matches!(begun, Ok(ReadRun::Executing(_))) {
            self.unsettled.remove(call.number);
        }
        let begun = match begun? {
            ReadRun::Executing(handle) => BegunRun::Executing(Box::new(ExecutedCall {
                session: self.clone(),
                number: call.number,
                run: handle,
            })),
            ReadRun::Ended(outcome) => BegunRun::Ended(outcome),
        };
        Ok(BegunCall { call, run, begun })
    }

    /// Tells a client what came of its call, which is settled then unless it waits for a person.
    fn outcome(&self, number: u32, made: Result<CallOutcome, CallReport>) -> ClientOutcome {
        let ended = match made {
            Ok(CallOutcome::Value(value)) => Ok(value),
            Ok(CallOutcome::Failed(error) | CallOutcome::Refused(error)) => Err(error),
            Err(CallReport::Parked { run }) => return ClientOutcome::Parked(run),
            Err(report) => Err(over(report)),
        };
        self.unsettled.remove(number);
        ClientOutcome::Ended(ended)
    }

    /// Refuses to read while the store does not take the records of what was read before.
    fn check_journal(&self) -> Result<(), StepError> {
        let store = &self.calls.runs.context.ports.grouped;
        let Some(trouble) = store.trouble() else {
            return Ok(());
        };
        let message = format!("nothing is read while the journal cannot be written: {trouble}");
        Err(StepError::new(StepErrorCode::ValueNotStored, message))
    }
}

/// Returns whether the call only reads, as its server says and no policy doubts.
fn only_reads(wanted: &Wanted) -> bool {
    let known = wanted.known.as_ref();
    known.is_ok_and(|known| known.read_only && known.guarded.is_none())
}

impl ClientCalls for SessionCalls {
    fn begin(
        &self,
        wanted: WantedCall,
        terms: ClientTerms,
        ears: ClientEars,
    ) -> BoxFuture<'static, Result<BegunCall, StepError>> {
        let session = self.clone();
        Box::pin(async move { session.begin_call(wanted, terms, ears).await })
    }

    fn resume(&self, call: AgentCall) -> BoxFuture<'static, ClientOutcome> {
        let session = self.clone();
        Box::pin(async move {
            let made = session.calls.make(&call, false).await;
            session.outcome(call.number, made)
        })
    }
}

/// A call whose run this process executes.
#[derive(Debug)]
struct ExecutedCall {
    session: SessionCalls,
    number: u32,
    run: RunHandle,
}

impl CallExecution for ExecutedCall {
    fn follow(self: Box<Self>) -> BoxFuture<'static, ClientOutcome> {
        Box::pin(async move {
            let made = self.session.calls.follow(self.run).await;
            self.session.outcome(self.number, made)
        })
    }
}

fn over(report: CallReport) -> StepError {
    match report {
        CallReport::Failed(error) => error,
        CallReport::Lost { reason } => StepError::new(StepErrorCode::OutcomeUnknown, reason),
        _ => StepError::new(
            StepErrorCode::Stopped,
            "the session is over: nothing is called any more",
        ),
    }
}
