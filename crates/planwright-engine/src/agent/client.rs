//! The client of the gateway as the executor of a step: it works elsewhere, and each call it wants
//! goes through the run like that of any other executor.

use super::tool_calls::{CallOutcome, ToolCalls};
use super::wait_until_unwanted;
use crate::context::{ClientCalls, ClientOutcome, ClientWork};
use crate::port::BoxFuture;
use crate::run::child::ChildAnswer;
use planwright_core::model::WantedCall;
use planwright_core::run::{
    AgentCall, CallEffect, CallFate, CallReport, ClientTerms, StepError, StepErrorCode, StoredValue,
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
#[derive(Debug)]
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

impl ClientCalls for SessionCalls {
    fn decide(
        &self,
        wanted: WantedCall,
        terms: ClientTerms,
    ) -> BoxFuture<'static, Result<AgentCall, StepError>> {
        let calls = self.calls.clone();
        let unsettled = Arc::clone(&self.unsettled);
        Box::pin(async move {
            let mut turn = calls.take_client_turn(wanted, terms).await.map_err(over)?;
            let call = turn.calls.pop();
            let call = call.ok_or_else(|| over(CallReport::NotMade))?;
            if let CallFate::Refused(error) = call.fate {
                return Err(error);
            }
            unsettled.insert(call.clone());
            Ok(call)
        })
    }

    fn make(&self, call: AgentCall) -> BoxFuture<'static, ClientOutcome> {
        let calls = self.calls.clone();
        let unsettled = Arc::clone(&self.unsettled);
        Box::pin(async move {
            let ended = match calls.make(&call, false).await {
                Ok(CallOutcome::Value(value)) => Ok(value),
                Ok(CallOutcome::Failed(error) | CallOutcome::Refused(error)) => Err(error),
                Err(CallReport::Parked { run }) => return ClientOutcome::Parked(run),
                Err(report) => Err(over(report)),
            };
            unsettled.remove(call.number);
            ClientOutcome::Ended(ended)
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
