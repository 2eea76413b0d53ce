//! The spans of a run for tracing systems: one for the run, one for each call below it.
//!
//! Without a subscriber it costs nothing: a span that no subscriber wants is never filled in. The
//! names follow OpenTelemetry's conventions for agents and MCP.

use crate::port::{Call, CallError, Outcome};
use crate::redaction::known_secrets::Redaction;
use planwright_core::run::Run;
use planwright_core::run::StepErrorCode;
use planwright_core::status::RunStatus;
use planwright_core::trace::{TraceId, TraceParent};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::Span;
use tracing::field::Empty;

/// Knows the places of spans in traces that go beyond this process.
pub trait Propagation: Send + Sync {
    /// Returns where this span is, for those who are told to go on below it.
    fn place(&self, span: &Span) -> Option<TraceParent>;

    /// Puts a span below a place that another process told of. Only for spans that have not been
    /// entered yet.
    fn adopt(&self, span: &Span, parent: &TraceParent);
}

/// There is one subscriber in a process, and one who knows the ids it gives to spans.
static PROPAGATION: OnceLock<Box<dyn Propagation>> = OnceLock::new();
static CONTENT: AtomicBool = AtomicBool::new(false);

/// Says who knows the places of spans. The first one stays.
pub fn install(propagation: Box<dyn Propagation>) {
    drop(PROPAGATION.set(propagation));
}

/// Whether spans carry the arguments and results of calls, masked. Off unless the operator wants
/// it.
pub fn with_content(wanted: bool) {
    CONTENT.store(wanted, Ordering::Relaxed);
}

/// Returns whether spans carry what is said in calls and to models.
pub fn content_wanted() -> bool {
    CONTENT.load(Ordering::Relaxed)
}

/// The place of a span; `None` if no subscriber records it.
pub fn place(span: &Span) -> Option<TraceParent> {
    if span.is_disabled() {
        None
    } else {
        PROPAGATION.get()?.place(span)
    }
}

/// Puts a span that has not been entered yet below this place.
pub fn adopt(span: &Span, parent: &TraceParent) {
    if let Some(propagation) = PROPAGATION.get().filter(|_| !span.is_disabled()) {
        propagation.adopt(span, parent);
    }
}

/// The span of a run. It begins a tree of its own, so that it may outlive the span of its order;
/// its place is below the span that orders it now, or in the trace of the order that the run belongs
/// to, if that is another one.
pub(crate) fn run_span(run: &Run) -> Span {
    let plan = run.plan();
    let trace = run.start().trace;
    let here = place(&Span::current());
    let parent = here
        .filter(|here| trace.is_none_or(|trace| trace == here.trace))
        .or_else(|| {
            let mut ordered = TraceParent::of_name(trace?, run.id().as_str());
            ordered.sampled = true;
            Some(ordered)
        });
    let template = || {
        plan.document()
            .context
            .template
            .as_ref()
            .map_or("plan", |template| template.id.as_str())
    };
    let span = tracing::info_span!(
        parent: None,
        "invoke_workflow",
        otel.name = %format_args!("invoke_workflow {}", template()),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "invoke_workflow",
        gen_ai.workflow.name = template(),
        planwright.plan.id = %plan.id(),
        planwright.plan.version = run.start().version,
        planwright.plan.digest = %run.start().digest,
        planwright.run.id = %run.id(),
        planwright.run.status = Empty,
        trace_id = Empty,
    );
    if let Some(parent) = &parent {
        adopt(&span, parent);
    }
    if !span.is_disabled()
        && let Some(place) = place(&span).or(parent)
    {
        span.record("trace_id", tracing::field::display(place.trace));
    }
    span
}

/// Notes how a run was left.
pub(crate) fn run_left(span: &Span, run: &Run) {
    span.record("planwright.run.status", run.status().as_str());
    if matches!(
        run.status(),
        RunStatus::Failed | RunStatus::CompletedWithFailures
    ) {
        span.record("otel.status_code", "ERROR");
    }
    tracing::info!(parent: span, status = run.status().as_str(), "the run was left");
}

/// Returns where a call is: at its span, or at a place of its own in the trace of the order.
pub(crate) fn call_place(span: &Span, trace: Option<TraceId>, call: &Call) -> Option<TraceParent> {
    place(span).or_else(|| Some(TraceParent::of_name(trace?, &call.idempotency_key)))
}

/// The span of one call. What only the adapter knows of it is filled in there.
pub(crate) fn call_span(call: &Call, redaction: &Redaction) -> Span {
    let span = tracing::info_span!(
        "execute_tool",
        otel.name = %format_args!("execute_tool {}", call.tool),
        otel.kind = "internal",
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = %call.tool,
        gen_ai.tool.call.id = %call.idempotency_key,
        gen_ai.tool.type = "function",
        gen_ai.tool.call.arguments = Empty,
        gen_ai.tool.call.result = Empty,
        mcp.method.name = Empty,
        mcp.protocol.version = Empty,
        network.transport = Empty,
        jsonrpc.request.id = Empty,
        rpc.response.status_code = Empty,
        error.type = Empty,
        planwright.plan.id = %call.plan,
        planwright.run.id = %call.run,
        planwright.step.id = %call.step,
        planwright.attempt = call.attempt,
    );
    if !span.is_disabled() && content_wanted() {
        let mut args = serde_json::Value::Object(call.args.clone());
        redaction.redactor().value(&mut args);
        span.record("gen_ai.tool.call.arguments", tracing::field::display(args));
    }
    span
}

/// Notes what came of a call, after it was masked. Why a call was stopped is known to the code
/// that stopped it.
pub(crate) fn call_ended(span: &Span, outcome: &Outcome, stopped: bool) {
    if span.is_disabled() {
        return;
    }
    match outcome {
        Ok(value) if content_wanted() => {
            span.record("gen_ai.tool.call.result", tracing::field::display(value));
        }
        Ok(_) | Err(CallError::InputRequired(_) | CallError::AskedMidway(_)) => {}
        Err(CallError::Failed { code, .. }) => call_failed(span, code.as_str()),
        Err(CallError::Unavailable(_)) => {
            call_failed(span, StepErrorCode::ToolUnavailable.as_str());
        }
        Err(CallError::Cancelled | CallError::Lost(_)) if stopped => {}
        Err(CallError::Cancelled) => call_failed(span, StepErrorCode::Cancelled.as_str()),
        Err(CallError::Lost(_)) => call_failed(span, StepErrorCode::OutcomeLost.as_str()),
    }
}

/// Notes why a call came to nothing.
pub(crate) fn call_failed(span: &Span, code: &str) {
    span.record("error.type", code);
    span.record("otel.status_code", "ERROR");
}
