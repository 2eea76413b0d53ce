//! Events as they are sent.

use planwright_core::event::{CloudEvent, PlanEvent};
use serde_json::Value;
use std::fmt::{Display, Write as _};
use std::sync::Arc;

/// How the data of an event is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    #[default]
    Plain,
    /// In the envelope of CloudEvents 1.0.
    CloudEvents,
}

/// An event and its JSON, written once for all listeners.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) event: Arc<PlanEvent>,
    data: Arc<str>,
}

impl Frame {
    pub(super) fn new(event: PlanEvent) -> Self {
        let data = serde_json::to_string(&event)
            .expect("events have only string keys")
            .into();
        Self {
            event: Arc::new(event),
            data,
        }
    }

    pub(super) fn seq(&self) -> u64 {
        self.event.seq
    }

    pub(super) fn bytes(&self) -> usize {
        self.data.len()
    }

    pub(super) fn write(&self, out: &mut String, id: impl Display, format: Format) {
        match format {
            Format::Plain => write(out, Some(&id), self.event.event.as_str(), &self.data),
            Format::CloudEvents => {
                let data = serde_json::to_string(&CloudEvent::new(&self.event));
                write(
                    out,
                    Some(&id),
                    self.event.event.as_str(),
                    &data.expect("envelopes have only string keys"),
                );
            }
        }
    }

    pub(super) fn value(&self, format: Format) -> Value {
        let value = match format {
            Format::Plain => serde_json::to_value(&*self.event),
            Format::CloudEvents => serde_json::to_value(CloudEvent::new(&self.event)),
        };
        value.expect("events have only string keys")
    }
}

/// Writes one event of a stream. JSON on one line holds no line breaks, so that nothing in it can
/// pass for another field.
pub(crate) fn write(out: &mut String, id: Option<&dyn Display>, name: &str, data: &str) {
    if let Some(id) = id {
        writeln!(out, "id: {id}").expect("writing to a text cannot fail");
    }
    write!(out, "event: {name}\ndata: {data}\n\n").expect("writing to a text cannot fail");
}
