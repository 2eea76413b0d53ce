//! The body of a webhook: thin, with what happened and where to look.

use planwright_core::id::PlanId;
use planwright_core::secret::Redactor;
use planwright_engine::webhooks::Notice;
use serde_json::{Map, Value, json};

/// The format of a notice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// `{"type", "timestamp", "data"}`, as Standard Webhooks has it.
    #[default]
    Standard,
    /// CloudEvents 1.0, structured mode.
    CloudEvents,
}

impl Format {
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Standard => "application/json",
            Self::CloudEvents => "application/cloudevents+json",
        }
    }
}

/// The body, with everything that is known to be secret masked.
pub(super) fn body(
    format: Format,
    notice: &Notice,
    service_url: Option<&str>,
    redactor: &Redactor,
) -> Vec<u8> {
    let mut data = serde_json::to_value(&notice.about).expect("ids and texts");
    if let (Some(url), Some(plan), Value::Object(data)) =
        (service_url, &notice.about.plan_id, &mut data)
    {
        data.insert("url".to_owned(), Value::String(link(url, plan)));
    }
    let mut body = match format {
        Format::Standard => json!({ "type": notice.kind, "timestamp": notice.at, "data": data }),
        Format::CloudEvents => cloud_event(notice, service_url, data),
    };
    redactor.value(&mut body);
    serde_json::to_vec(&body).expect("keys are texts")
}

fn cloud_event(notice: &Notice, service_url: Option<&str>, data: Value) -> Value {
    let mut event = Map::new();
    let mut put = |key: &str, value: Value| drop(event.insert(key.to_owned(), value));
    put("specversion", json!("1.0"));
    put("id", json!(notice.id));
    put("source", json!(service_url.unwrap_or("/planwright")));
    put("type", json!(format!("dev.planwright.{}.v1", notice.kind)));
    put("time", json!(notice.at));
    put("datacontenttype", json!("application/json"));
    if let Some(plan) = &notice.about.plan_id {
        put("subject", json!(plan));
        put("planid", json!(plan));
    }
    if let Some(run) = &notice.about.run_id {
        put("runid", json!(run));
    }
    put("data", data);
    Value::Object(event)
}

fn link(service_url: &str, plan: &PlanId) -> String {
    format!("{}/plan/{plan}", service_url.trim_end_matches('/'))
}
