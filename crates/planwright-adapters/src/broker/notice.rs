//! Notices as messages: JSON with a version, of ids and nothing else.

use planwright_core::id::{AttemptNo, RunId, StepId};
use planwright_core::trace::TraceParent;
use planwright_engine::port::{BrokerError, StepNotice};
use serde::{Deserialize, Serialize};

const VERSION: u32 = 1;
/// Larger messages are not ours.
pub(super) const MAX_NOTICE_BYTES: usize = 4096;
const MAX_CAPABILITY_BYTES: usize = 128;

#[derive(Serialize, Deserialize)]
struct Message {
    v: u32,
    capability: String,
    run: RunId,
    step: StepId,
    attempt: AttemptNo,
    key: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    traceparent: Option<String>,
}

/// Only the version, so that a newer message is told from junk.
#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

/// Refuses a name that cannot be part of a queue's.
pub(super) fn check_capability(capability: &str) -> Result<(), BrokerError> {
    let is_usable = !capability.is_empty()
        && capability.len() <= MAX_CAPABILITY_BYTES
        && !capability.contains(char::is_control);
    match is_usable {
        true => Ok(()),
        false => Err(BrokerError::Refused(format!(
            "a capability with a queue has 1 to {MAX_CAPABILITY_BYTES} bytes without control characters"
        ))),
    }
}

/// Refuses to receive for capabilities that can have no queue, or for none.
pub(super) fn check_capabilities(capabilities: &[String]) -> Result<(), BrokerError> {
    if capabilities.is_empty() {
        let reason = "a worker without capabilities receives no notices".to_owned();
        return Err(BrokerError::Refused(reason));
    }
    let mut capabilities = capabilities.iter();
    capabilities.try_for_each(|capability| check_capability(capability))
}

pub(super) fn encode(notice: &StepNotice) -> Result<Vec<u8>, BrokerError> {
    check_capability(&notice.capability)?;
    let message = Message {
        v: VERSION,
        capability: notice.capability.clone(),
        run: notice.run.clone(),
        step: notice.step.clone(),
        attempt: notice.attempt,
        key: notice.idempotency_key.clone(),
        traceparent: notice.trace.map(|trace| trace.to_string()),
    };
    let bytes = serde_json::to_vec(&message).map_err(|error| unreadable(&error.to_string()))?;
    match bytes.len() <= MAX_NOTICE_BYTES {
        true => Ok(bytes),
        false => Err(BrokerError::Refused(format!(
            "a notice may have {MAX_NOTICE_BYTES} bytes, and this one has {}",
            bytes.len()
        ))),
    }
}

/// Reads what arrived in the queue of a capability. Errors name a place and never the content.
pub(super) fn decode(capability: &str, bytes: &[u8]) -> Result<StepNotice, BrokerError> {
    if bytes.len() > MAX_NOTICE_BYTES {
        return Err(unreadable("it is too large"));
    }
    let versioned: Versioned =
        serde_json::from_slice(bytes).map_err(|_| unreadable("it is no JSON with a version"))?;
    if versioned.v != VERSION {
        return Err(unreadable("it is of another version of planwright"));
    }
    let message: Message =
        serde_json::from_slice(bytes).map_err(|_| unreadable("a part is missing or wrong"))?;
    if message.capability != capability {
        return Err(unreadable("it is for another capability"));
    }
    // Where a trace cannot be read, the notice still says where to look.
    let trace = message.traceparent.as_deref();
    let trace = trace.and_then(|text| text.parse::<TraceParent>().ok());
    Ok(StepNotice {
        capability: message.capability,
        run: message.run,
        step: message.step,
        attempt: message.attempt,
        idempotency_key: message.key,
        trace,
    })
}

fn unreadable(reason: &str) -> BrokerError {
    BrokerError::Unreadable(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice() -> StepNotice {
        StepNotice {
            capability: "gpu".to_owned(),
            run: RunId::mint(7),
            step: "train".parse().unwrap(),
            attempt: 2,
            idempotency_key: "k".repeat(64),
            trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
                .parse()
                .ok(),
        }
    }

    #[test]
    fn a_notice_is_read_as_it_was_written() {
        let bytes = encode(&notice()).unwrap();
        assert_eq!(decode("gpu", &bytes), Ok(notice()));
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.contains("00-0af7651916cd43dd8448eb211c80319c"),
            "{text}"
        );
    }

    #[test]
    fn what_is_not_ours_is_an_error_that_does_not_repeat_it() {
        let ours = String::from_utf8(encode(&notice()).unwrap()).unwrap();
        for junk in [
            String::new(),
            "hunter2".to_owned(),
            "{\"v\":\"hunter2\"}".to_owned(),
            ours.replace("\"v\":1", "\"v\":2"),
            ours.replace("\"gpu\"", "\"cpu\""),
            ours.replace("\"train\"", "\"hunter2 ../\""),
            format!("{ours}{}", " ".repeat(MAX_NOTICE_BYTES)),
        ] {
            let error = decode("gpu", junk.as_bytes()).unwrap_err().to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_notice_that_is_too_large_is_not_sent() {
        let large = StepNotice {
            idempotency_key: "k".repeat(MAX_NOTICE_BYTES),
            ..notice()
        };
        assert!(encode(&large).is_err());
        for name in ["", "a\nb", &"x".repeat(200)] {
            assert!(check_capability(name).is_err(), "{name:?}");
        }
    }
}
