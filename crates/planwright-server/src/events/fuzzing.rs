//! A door for the fuzzer: where a stream goes on, from what a client says it received last.

use super::global_id::GlobalId;
use super::routes::last_event_id;
use http::{HeaderMap, HeaderValue};

/// Reads a `Last-Event-ID` as the streams of events do: as the number of an event of one plan, and
/// as a place in the stream of everything, written as the service writes it.
pub fn read_last_event_id(header: &[u8]) -> (Option<u64>, Option<String>) {
    let Ok(value) = HeaderValue::from_bytes(header) else {
        return (None, None);
    };
    let headers = HeaderMap::from_iter([(http::HeaderName::from_static("last-event-id"), value)]);
    let Some(text) = last_event_id(&headers) else {
        return (None, None);
    };
    let place = text.parse::<GlobalId>().ok();
    (text.parse().ok(), place.map(|place| place.to_string()))
}
