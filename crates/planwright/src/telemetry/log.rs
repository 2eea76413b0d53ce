//! Writes events to stderr.

use super::line::{Fields, Line};
use super::{LogFormat, redaction, stderr};
use planwright_engine::memory::SystemClock;
use planwright_engine::port::Clock as _;
use serde_json::{Map, Value};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Spans carry ids under this name and with this beginning; they go onto every line below them.
const TRACE: &str = "trace_id";
const OURS: &str = "planwright.";

#[derive(Debug)]
pub(super) struct LogLayer {
    format: LogFormat,
    clock: SystemClock,
}

impl LogLayer {
    pub(super) fn new(format: LogFormat) -> Self {
        Self {
            format,
            clock: SystemClock::default(),
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = match fields.0.shift_remove("message") {
            Some(Value::String(message)) => message,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let trace = inherit(event, &context, &mut fields.0);
        let line = Line {
            timestamp: self.clock.now().to_string(),
            level: *event.metadata().level(),
            target: event.metadata().target(),
            trace,
            message,
            fields: fields.0,
        };
        let redactor = redaction().map(|redaction| redaction.redactor());
        let text = line.render(self.format, redactor.as_deref());
        stderr::write(&text);
    }
}

/// Adds the ids of the spans around an event, and finds its trace.
fn inherit<S: Subscriber + for<'a> LookupSpan<'a>>(
    event: &Event<'_>,
    context: &Context<'_, S>,
    fields: &mut Map<String, Value>,
) -> Option<String> {
    let mut trace = None;
    for span in context.event_scope(event).into_iter().flatten() {
        let extensions = span.extensions();
        let Some(Fields(around)) = extensions.get::<Fields>() else {
            continue;
        };
        if let (None, Some(Value::String(found))) = (&trace, around.get(TRACE)) {
            trace = Some(found.clone());
        }
        for (name, value) in around.iter().filter(|(name, _)| name.starts_with(OURS)) {
            fields.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    trace
}
