//! An executor that is a program of its own: it gets the instruction, and a gateway to the plan's
//! tools. What it calls there goes through the run like everything else; what it does by itself
//! the run does not see.

use super::messages::tools_in_scope;
use super::tool_calls::{CallOutcome, ToolCalls};
use super::wait_until_unwanted;
use crate::port::{BoxFuture, DelegateError, Delegation, Gateway, GatewayTool, ProgressSink};
use crate::run::child::ChildAnswer;
use planwright_core::model::WantedCall;
use planwright_core::run::{
    CallEffect, CallFate, CallReport, StepError, StepErrorCode, StoredValue,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

/// Hands the step over and waits for the result.
pub(crate) async fn delegate(
    calls: ToolCalls,
    executor: String,
    progress: ProgressSink,
) -> ChildAnswer {
    let order = Arc::clone(&calls.order);
    let cancelled = CancellationToken::new();
    let called = Arc::new(AtomicBool::new(order.has_called()));
    let results: Map<String, Value> = order.assignment.results.iter().cloned().collect();
    let delegation = Delegation {
        executor,
        instruction: order.assignment.instruction.clone(),
        context: json!({
            "goal": order.assignment.goal,
            "tool": order.definition.agent.as_deref().and_then(|agent| agent.tool.clone()),
            "operation": order.definition.agent.as_deref().and_then(|agent| agent.operation.clone()),
            "target": order.assignment.target,
            "context": order.assignment.context,
            "results": results,
        }),
        scope: order.tools.clone(),
        plan: order.plan.clone(),
        run: order.place.run.clone(),
        step: order.step.clone(),
        attempt: order.attempt,
        gateway: Arc::new(StepGateway {
            calls: calls.clone(),
            called: Arc::clone(&called),
        }),
        progress,
        cancelled: cancelled.clone(),
    };
    let working = calls.runs.context.ports.executors.delegate(delegation);
    tokio::pin!(working);
    let delegated = tokio::select! {
        biased;
        delegated = &mut working => delegated,
        () = wait_until_unwanted(calls.commands.clone()) => {
            cancelled.cancel();
            working.await
        }
    };
    if let Some(used) = delegated.used {
        // A step that is over meanwhile has nothing to note any more.
        drop(calls.take_turn("", Vec::new(), Some(used)).await);
    }
    let could_call = !order.tools.is_empty() && order.may_call();
    let only_a_word = delegated.only_calls && could_call && !called.load(Ordering::Acquire);
    let value = match delegated.outcome {
        Ok(_) if only_a_word => {
            let error = StepError::nothing_done().with_effect(CallEffect::None);
            return (CallReport::Failed(error), None);
        }
        Ok(value) if StoredValue::can_keep(&value) => value,
        Ok(_) => {
            return (
                failed(
                    StepErrorCode::ValueTooDeep,
                    "the result nests too deep".to_owned(),
                    CallEffect::Done,
                ),
                None,
            );
        }
        Err(error) => return (refused(&error), None),
    };
    match calls.store_result(value).await {
        Ok(stored @ StoredValue::Inline(_)) => (CallReport::Succeeded(stored), None),
        Ok(stored @ StoredValue::Artifact(_)) => {
            let large = calls.value(&stored).await.ok().map(Arc::new);
            (CallReport::Succeeded(stored), large)
        }
        // It did its work, and what it said cannot be recorded: it must not be taken for failed.
        Err(_) => (
            CallReport::Lost {
                reason: "the result could not be stored".to_owned(),
            },
            None,
        ),
    }
}

fn failed(code: StepErrorCode, message: String, effect: CallEffect) -> CallReport {
    CallReport::Failed(StepError::new(code, message).with_effect(effect))
}

fn refused(error: &DelegateError) -> CallReport {
    match error {
        DelegateError::Unknown(_) => failed(
            StepErrorCode::NoExecutor,
            error.to_string(),
            CallEffect::None,
        ),
        DelegateError::Failed(_) => failed(
            StepErrorCode::ExecutorFailed,
            error.to_string(),
            CallEffect::Unknown,
        ),
        DelegateError::NotStarted(_) => failed(
            StepErrorCode::ExecutorNotStarted,
            error.to_string(),
            CallEffect::None,
        ),
        DelegateError::Lost(_) | DelegateError::Cancelled => CallReport::Lost {
            reason: error.to_string(),
        },
    }
}

/// The gateway of one attempt.
#[derive(Debug)]
struct StepGateway {
    calls: ToolCalls,
    /// A call was made.
    called: Arc<AtomicBool>,
}

impl Gateway for StepGateway {
    fn tools(&self) -> Vec<GatewayTool> {
        let catalog = self.calls.runs.context.catalog();
        let tools = tools_in_scope(&catalog, &self.calls.order.tools);
        tools
            .into_iter()
            .map(|tool| GatewayTool::new(tool))
            .collect()
    }

    fn call(&self, tool: String, args: Value) -> BoxFuture<'static, Result<Value, StepError>> {
        let calls = self.calls.clone();
        let called = Arc::clone(&self.called);
        Box::pin(async move {
            let wanted = WantedCall {
                id: String::new(),
                name: tool,
                args,
            };
            let over = |answer| match answer {
                CallReport::Failed(error) => error,
                _ => StepError::new(
                    StepErrorCode::Stopped,
                    "the step is over: nothing is called any more",
                ),
            };
            let turn = calls
                .take_turn("", vec![wanted], None)
                .await
                .map_err(over)?;
            let Some(call) = turn.calls.first() else {
                return Err(StepError::new(
                    StepErrorCode::Stopped,
                    "the step is over: nothing is called any more",
                ));
            };
            if matches!(call.fate, CallFate::Run(_)) {
                called.store(true, Ordering::Release);
            }
            // The program waits, so the call does: for a person too, as long as the step may take.
            match calls.make(call, true).await.map_err(over)? {
                CallOutcome::Value(value) => Ok(value),
                CallOutcome::Failed(error) | CallOutcome::Refused(error) => Err(error),
            }
        })
    }
}
