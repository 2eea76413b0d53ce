//! Gemini's `generateContent` and `streamGenerateContent`.

use super::Event;
use super::http::RecordedRequest;
use super::reply::{ScriptedReply, halves};
use serde_json::{Value, json};

fn forced(asked: &RecordedRequest) -> Option<&str> {
    asked.body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"][0].as_str()
}

fn chunk(parts: &[Value], finish: Option<&str>, usage: Option<Value>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    let mut chunk = json!({"candidates": [candidate], "modelVersion": "model"});
    if let Some(usage) = usage {
        chunk["usageMetadata"] = usage;
    }
    chunk
}

fn usage(reply: &ScriptedReply) -> Option<Value> {
    let (input, output, cached) = reply.usage?;
    Some(json!({
        "promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output,
        "cachedContentTokenCount": cached,
    }))
}

/// Gemini's calls have no ids.
fn calls(reply: &ScriptedReply, asked: &RecordedRequest) -> Vec<Value> {
    let calls = reply.calls_with(forced(asked)).into_iter();
    calls
        .map(|(name, args)| json!({"functionCall": {"name": name, "args": args}}))
        .collect()
}

fn finish(reply: &ScriptedReply) -> &'static str {
    if reply.length { "MAX_TOKENS" } else { "STOP" }
}

pub(super) fn events(reply: &ScriptedReply, asked: &RecordedRequest) -> Vec<Event> {
    let mut events: Vec<Event> = halves(reply.text_with(forced(asked)))
        .into_iter()
        .map(|piece| Event::data(&chunk(&[json!({"text": piece})], None, None)))
        .collect();
    let calls = calls(reply, asked);
    if !calls.is_empty() {
        events.push(Event::data(&chunk(&calls, None, None)));
    }
    events.push(Event::data(&chunk(
        &[json!({"text": ""})],
        Some(finish(reply)),
        usage(reply),
    )));
    events
}

pub(super) fn whole(reply: &ScriptedReply, asked: &RecordedRequest) -> Value {
    let mut parts = vec![json!({"text": reply.text_with(forced(asked))})];
    parts.extend(calls(reply, asked));
    chunk(&parts, Some(finish(reply)), usage(reply))
}
