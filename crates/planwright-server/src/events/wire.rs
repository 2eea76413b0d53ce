//! What the routes of events take and answer.

use super::frame::Format;
use http::HeaderMap;
use http::header::ACCEPT;
use planwright_core::event::PlanEvent;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// The most events of one answer in JSON.
pub(super) const MAX_LIMIT: usize = 10_000;

/// Events as one answer.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventList {
    /// Oldest first.
    #[schema(value_type = Vec<Object>)]
    pub(super) events: Vec<Value>,
    /// Ask for what comes after this to go on; absent when this is all there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

/// Which events of a plan are wanted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct PlanQuery {
    /// Only events with a higher number. The header `Last-Event-ID` wins over it.
    #[param(minimum = 0)]
    pub(super) after: Option<u64>,
    /// The most events of an answer in JSON.
    #[param(minimum = 1, maximum = 10_000)]
    pub(super) limit: Option<usize>,
    /// Stay when the run is over, for what happens to the plan later.
    pub(super) follow: Option<bool>,
    /// `cloudevents` puts every event into the envelope of CloudEvents 1.0.
    #[param(inline)]
    pub(super) format: Option<Format>,
    /// Only events of these names, separated by commas. `run.*` stands for all that begin so.
    pub(super) types: Option<String>,
    /// Only events of this run.
    #[param(max_length = 64)]
    pub(super) run: Option<String>,
    /// Instead of a token, for clients that can send no headers. Made by `POST /tickets`, for
    /// one use.
    ticket: Option<String>,
}

/// Which events of all plans are wanted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct GlobalQuery {
    /// Only events behind this id. The header `Last-Event-ID` wins over it. Without either a
    /// stream begins now.
    #[param(pattern = r"^[0-9]{1,19}(\.[0-9]{1,9})?$")]
    pub(super) after: Option<String>,
    /// The most events of an answer in JSON.
    #[param(minimum = 1, maximum = 10_000)]
    pub(super) limit: Option<usize>,
    /// `cloudevents` puts every event into the envelope of CloudEvents 1.0.
    #[param(inline)]
    pub(super) format: Option<Format>,
    /// Only events of these names, separated by commas. `run.*` stands for all that begin so.
    pub(super) types: Option<String>,
    /// Instead of a token, for clients that can send no headers. Made by `POST /tickets`, for
    /// one use.
    ticket: Option<String>,
}

/// Names of events that are wanted, all if none is named, and the run they have to be of.
#[derive(Debug, Clone, Default)]
pub(super) struct Types {
    names: Vec<String>,
    run: Option<String>,
}

impl Types {
    pub(super) fn parse(text: Option<&str>) -> Self {
        let names = text
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        Self {
            names: names.map(str::to_owned).collect(),
            run: None,
        }
    }

    /// Only those of this run, if one is named.
    pub(super) fn of_run(self, run: Option<String>) -> Self {
        Self { run, ..self }
    }

    /// Returns whether an event is wanted.
    pub(super) fn include_event(&self, event: &PlanEvent) -> bool {
        let is_of_run = |run: &String| {
            let of = event.run_id.as_ref();
            of.is_some_and(|of| of.as_str() == run)
        };
        self.run.as_ref().is_none_or(is_of_run) && self.include(event.event.as_str())
    }

    /// Returns whether what is told of this run in passing is wanted.
    pub(super) fn include_passing(&self, name: &str, run: &str) -> bool {
        self.run.as_ref().is_none_or(|wanted| wanted == run) && self.include(name)
    }

    pub(super) fn include(&self, name: &str) -> bool {
        let fits = |wanted: &String| match wanted.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => wanted == name,
        };
        self.names.is_empty() || self.names.iter().any(fits)
    }
}

/// The form in which events are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Stream,
    List,
}

/// A stream if it is asked for by its name, else a list if the caller takes JSON. A caller that
/// takes anything is never left with an answer that does not end.
pub(crate) fn negotiate_format(headers: &HeaderMap) -> Option<Wanted> {
    let texts = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let accepted: Vec<String> = texts
        .flat_map(|text| text.split(','))
        .filter_map(|part| part.split(';').next())
        .map(|kind| kind.trim().to_ascii_lowercase())
        .collect();
    let accepts = |kinds: &[&str]| accepted.iter().any(|kind| kinds.contains(&kind.as_str()));
    if accepts(&["text/event-stream"]) {
        return Some(Wanted::Stream);
    }
    let list = accepted.is_empty() || accepts(&["application/json", "application/*", "*/*"]);
    list.then_some(Wanted::List)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn accept(text: &'static str) -> Option<Wanted> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(text));
        negotiate_format(&headers)
    }

    #[test]
    fn a_stream_is_sent_to_those_who_ask_for_one() {
        assert_eq!(accept("text/event-stream"), Some(Wanted::Stream));
        assert_eq!(
            accept("application/json, Text/Event-Stream;q=0.5"),
            Some(Wanted::Stream)
        );
        assert_eq!(accept("application/json"), Some(Wanted::List));
        assert_eq!(accept("*/*"), Some(Wanted::List));
        assert_eq!(negotiate_format(&HeaderMap::new()), Some(Wanted::List));
        assert_eq!(accept("text/html"), None);
    }

    #[test]
    fn types_are_names_or_beginnings_of_names() {
        let types = Types::parse(Some("plan.step, run.*"));
        assert!(types.include("plan.step") && types.include("run.failed"));
        assert!(!types.include("plan.created"));
        assert!(Types::parse(None).include("plan.created"));
    }
}
