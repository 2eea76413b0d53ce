//! Anthropic's messages.

use super::Event;
use super::http::RecordedRequest;
use super::reply::{ScriptedReply, halves, written};
use serde_json::{Value, json};

fn forced(asked: &RecordedRequest) -> Option<&str> {
    asked.body["tool_choice"]["name"].as_str()
}

/// How far the conversation is: clients tell answers and calls apart by their ids.
fn turn(asked: &RecordedRequest) -> usize {
    asked.body["messages"].as_array().map_or(0, Vec::len)
}

fn finish(reply: &ScriptedReply, calls: bool) -> &'static str {
    if reply.length {
        "max_tokens"
    } else if calls {
        "tool_use"
    } else {
        "end_turn"
    }
}

/// What was read before is counted apart from the rest of the input.
fn usage(reply: &ScriptedReply) -> Value {
    match reply.usage {
        Some((input, output, cached)) => json!({
            "input_tokens": input - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0,
            "output_tokens": output,
        }),
        None => Value::Null,
    }
}

fn event(name: &'static str, mut data: Value) -> Event {
    data["type"] = json!(name);
    Event {
        name: Some(name),
        data: data.to_string(),
    }
}

pub(super) fn events(reply: &ScriptedReply, asked: &RecordedRequest) -> Vec<Event> {
    let message = json!({
        "id": format!("msg_{}", turn(asked)), "type": "message", "role": "assistant", "model": asked.body["model"], "content": [],
        "stop_reason": null, "usage": usage(reply),
    });
    let mut events = vec![
        event("message_start", json!({"message": message})),
        event("ping", json!({})),
    ];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        events.push(event(
            "content_block_start",
            json!({"index": index, "content_block": start}),
        ));
        for delta in deltas {
            events.push(event(
                "content_block_delta",
                json!({"index": index, "delta": delta}),
            ));
        }
        events.push(event("content_block_stop", json!({"index": index})));
        index += 1;
    };
    let text = reply.text_with(forced(asked));
    if !text.is_empty() {
        let deltas = halves(text)
            .into_iter()
            .map(|piece| json!({"type": "text_delta", "text": piece}));
        block(json!({"type": "text", "text": ""}), deltas.collect());
    }
    let calls = reply.calls_with(forced(asked));
    for (at, (name, args)) in calls.iter().enumerate() {
        let args = written(args);
        let deltas = halves(&args)
            .into_iter()
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        let start = json!({"type": "tool_use", "id": format!("toolu_{}_{at}", turn(asked)), "name": name, "input": {}});
        block(start, deltas.collect());
    }
    let end =
        json!({"delta": {"stop_reason": finish(reply, !calls.is_empty())}, "usage": usage(reply)});
    events.extend([
        event("message_delta", end),
        event("message_stop", json!({})),
    ]);
    events
}

pub(super) fn whole(reply: &ScriptedReply, asked: &RecordedRequest) -> Value {
    let calls = reply.calls_with(forced(asked));
    let mut content = vec![json!({"type": "text", "text": reply.text_with(forced(asked))})];
    content.extend(calls.iter().enumerate().map(|(at, (name, args))| {
        json!({"type": "tool_use", "id": format!("toolu_{}_{at}", turn(asked)), "name": name, "input": args})
    }));
    json!({
        "id": format!("msg_{}", turn(asked)), "type": "message", "role": "assistant", "model": asked.body["model"], "content": content,
        "stop_reason": finish(reply, !calls.is_empty()), "usage": usage(reply),
    })
}
