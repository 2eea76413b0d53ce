//! One line of a server as a message. Nothing in it is believed, and what it may cost is checked
//! before it is read.

use super::outline::{Outline, OutlineReader};
use rmcp::model::{
    CustomRequest, CustomResult, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
    ServerRequest, ServerResult,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// The most bytes of one message that are read.
pub(super) const MAX_BYTES: usize = 16 << 20;
/// A value takes many times the memory of the text `1,`, so values are counted too.
const MAX_VALUES: usize = 1_000_000;
const MAX_DEPTH: usize = 100;
/// Up to here a message cannot cost much, regardless of its content: the parser itself stops at 128
/// levels.
const SMALL: usize = 16 << 10;
/// The notifications something is done about.
const NOTIFICATIONS: [&str; 2] = ["notifications/progress", "notifications/tools/list_changed"];
/// A message of the server's log. Only a small one is read.
const LOG: &str = "notifications/message";
/// The code of answers that cannot be read. Ours: no server can mean anything else by it.
pub(super) const MALFORMED: ErrorCode = ErrorCode(i32::MIN);
/// The code of answers that are too large to be read. Ours, too.
pub(super) const TOO_LARGE: ErrorCode = ErrorCode(i32::MIN + 1);

/// A line that was read, by its kind.
#[derive(Debug)]
pub(super) enum Heard {
    Message(Box<ServerJsonRpcMessage>),
    /// Nothing that can be made sense of.
    Garbage,
    /// A message that would cost too much to read, and why. Only whose it is was looked at.
    TooLarge(Outline, &'static str),
}

/// The outside of a message. Reading it costs nothing and works for messages whose inside is
/// broken.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

/// Returns whether a line is a message of the server's log that would be read.
pub(super) fn is_log(line: &[u8]) -> bool {
    let may_be = |text: &str| text.contains(LOG);
    line.len() <= SMALL
        && std::str::from_utf8(line).is_ok_and(may_be)
        && serde_json::from_slice::<Envelope>(line)
            .is_ok_and(|outside| outside.id.is_none() && outside.method.as_deref() == Some(LOG))
}

/// Reads a line. During a handshake answers are read as what a handshake knows; later as plain
/// values, since only the caller knows what it asked for.
pub(super) fn read(line: &[u8], handshake: bool) -> Heard {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return Heard::Garbage;
    }
    if line.len() > SMALL
        && let Err(why) = measure(line)
    {
        let mut reader = OutlineReader::default();
        reader.read(line);
        return Heard::TooLarge(reader.outline(), why);
    }
    let Ok(envelope) = serde_json::from_slice::<Envelope>(line) else {
        return Heard::Garbage;
    };
    let Envelope {
        id,
        method,
        result,
        error,
    } = envelope;
    // Nothing is done about most notifications, so a flood of them is not even read.
    let is_read =
        |method: &str| NOTIFICATIONS.contains(&method) || method == LOG && line.len() <= SMALL;
    if id.is_none() && !method.as_deref().is_some_and(is_read) {
        return Heard::Garbage;
    }
    match (serde_json::from_slice::<Value>(line), id, method) {
        (Ok(value), Some(id), None) if result.is_some() != error.is_some() => {
            answer(id, value, handshake)
        }
        (_, Some(id), None) => malformed(id),
        (Ok(value), Some(id), Some(method)) => request(id, method, value),
        (Err(_), Some(id), Some(method)) => custom(id, method, None),
        (Ok(value), None, _) => serde_json::from_value(value)
            .map_or(Heard::Garbage, |message| Heard::Message(Box::new(message))),
        (Err(_), None, _) => Heard::Garbage,
    }
}

fn answer(id: RequestId, mut value: Value, handshake: bool) -> Heard {
    let part =
        |value: &mut Value, name: &str| value.get_mut(name).map(Value::take).unwrap_or_default();
    if value.get("error").is_some() {
        let error = part(&mut value, "error");
        return error_answer(id, &error);
    }
    let result = part(&mut value, "result");
    let result = if handshake {
        serde_json::from_value(result)
            .unwrap_or(ServerResult::CustomResult(CustomResult(Value::Null)))
    } else {
        ServerResult::CustomResult(CustomResult(result))
    };
    Heard::Message(Box::new(ServerJsonRpcMessage::response(result, id)))
}

/// An error keeps the parts of it that can be read: that it is one is what counts.
fn error_answer(id: RequestId, error: &Value) -> Heard {
    let code = error
        .get("code")
        .and_then(Value::as_i64)
        .and_then(|code| i32::try_from(code).ok());
    let message = error
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or("it gave no message")
        .to_owned();
    let code = code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    let error = ErrorData::new(code, message, error.get("data").cloned());
    Heard::Message(Box::new(ServerJsonRpcMessage::error(error, Some(id))))
}

fn request(id: RequestId, method: String, mut value: Value) -> Heard {
    let params = value.get("params").cloned();
    if let Value::Object(fields) = &mut value {
        fields.retain(|name, _| matches!(name.as_str(), "jsonrpc" | "id" | "method" | "params"));
    }
    match serde_json::from_value(value) {
        Ok(message @ ServerJsonRpcMessage::Request(_)) => Heard::Message(Box::new(message)),
        Ok(_) | Err(_) => custom(id, method, params),
    }
}

/// A request that fits no known method is passed on all the same: every request is answered.
fn custom(id: RequestId, method: String, params: Option<Value>) -> Heard {
    let request = ServerRequest::CustomRequest(CustomRequest::new(method, params));
    Heard::Message(Box::new(ServerJsonRpcMessage::request(request, id)))
}

/// The answer to a request that takes the place of one that is too large.
pub(super) fn too_large(id: RequestId, why: String) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(TOO_LARGE, why, None), Some(id))
}

/// A request that is too large is answered like one with an unknown method.
pub(super) fn too_large_request(id: RequestId) -> ServerJsonRpcMessage {
    let request = CustomRequest::new("(a request that is too large)", None);
    ServerJsonRpcMessage::request(ServerRequest::CustomRequest(request), id)
}

fn malformed(id: RequestId) -> Heard {
    let error = ErrorData::new(MALFORMED, "the answer cannot be read", None);
    Heard::Message(Box::new(ServerJsonRpcMessage::error(error, Some(id))))
}

/// Checks what a text would become as values, without making them.
pub(super) fn measure(text: &[u8]) -> Result<(), &'static str> {
    let mut depth = 0usize;
    let mut values = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    for byte in text {
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                values += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err("it nests deeper than 100 levels");
        }
        if values > MAX_VALUES {
            return Err("it has more than a million values");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(line: &[u8]) -> ServerJsonRpcMessage {
        match read(line, false) {
            Heard::Message(message) => *message,
            other => panic!("{other:?}"),
        }
    }

    fn code(line: &[u8]) -> i32 {
        match message(line) {
            ServerJsonRpcMessage::Error(error) => error.error.code.0,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_one_all_the_same() {
        assert_eq!(
            code(br#"{"jsonrpc":"2.0","id":1,"result":{"a":"\ud800"}}"#),
            MALFORMED.0
        );
        assert_eq!(
            code(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}"),
            MALFORMED.0
        );
        assert_eq!(
            code(br#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}"#),
            MALFORMED.0
        );
        assert_eq!(code(br#"{"jsonrpc":"2.0","id":1}"#), MALFORMED.0);
    }

    #[test]
    fn an_error_keeps_what_can_be_read_of_it() {
        assert_eq!(
            code(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#),
            -32602
        );
        assert_eq!(
            code(br#"{"jsonrpc":"2.0","id":1,"error":"no"}"#),
            ErrorCode::INTERNAL_ERROR.0
        );
    }

    #[test]
    fn a_result_stays_a_plain_value() {
        let ServerJsonRpcMessage::Response(response) =
            message(br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[1]}}"#)
        else {
            panic!("a response")
        };
        assert!(matches!(response.result, ServerResult::CustomResult(_)));
    }

    #[test]
    fn every_request_is_passed_on() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":"x"}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"made/up","params":[1]}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"made/up","params":{"a":"\udc00"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":1}"#,
        ] {
            assert!(
                matches!(message(line.as_bytes()), ServerJsonRpcMessage::Request(_)),
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_no_message_is_garbage() {
        for line in [
            "",
            "hello",
            "[1]",
            "{",
            r#"{"jsonrpc":"2.0"}"#,
            "null",
            "\u{0}{}",
        ] {
            assert!(
                matches!(read(line.as_bytes(), false), Heard::Garbage),
                "{line:?}"
            );
        }
    }

    #[test]
    fn costly_texts_are_not_read() {
        let deep = format!("{{\"a\":{}", "[".repeat(20_000));
        assert!(matches!(read(deep.as_bytes(), false), Heard::TooLarge(..)));
        let wide = format!("{{\"a\":[{}1]}}", "1,".repeat(1_000_001));
        assert!(matches!(read(wide.as_bytes(), false), Heard::TooLarge(..)));
        assert!(measure(br#"{"a":"[[[\"[[["}"#).is_ok());
    }
}
