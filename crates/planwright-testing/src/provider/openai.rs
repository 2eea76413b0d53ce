//! OpenAI's chat completions.

use super::Event;
use super::http::RecordedRequest;
use super::reply::{ScriptedReply, halves, written};
use serde_json::{Value, json};

fn forced(asked: &RecordedRequest) -> Option<&str> {
    asked.body["tool_choice"]["function"]["name"].as_str()
}

fn usage(reply: &ScriptedReply) -> Option<Value> {
    let (input, output, cached) = reply.usage?;
    Some(json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }))
}

fn finish(reply: &ScriptedReply, calls: bool) -> &'static str {
    if reply.length {
        "length"
    } else if calls {
        "tool_calls"
    } else {
        "stop"
    }
}

pub(super) fn events(reply: &ScriptedReply, asked: &RecordedRequest) -> Vec<Event> {
    let chunk = |delta: Value, finish: Option<&str>| {
        Event::data(&json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": asked.body["model"],
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }))
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": null}), None)];
    for piece in halves(reply.text_with(forced(asked))) {
        events.push(chunk(json!({"content": piece}), None));
    }
    let calls = reply.calls_with(forced(asked));
    for (index, (name, args)) in calls.iter().enumerate() {
        let head = json!({
            "index": index, "id": format!("call_{name}_{index}"), "type": "function",
            "function": {"name": name, "arguments": ""},
        });
        events.push(chunk(json!({"tool_calls": [head]}), None));
        for piece in halves(&written(args)) {
            let piece = json!({"index": index, "function": {"arguments": piece}});
            events.push(chunk(json!({"tool_calls": [piece]}), None));
        }
    }
    events.push(chunk(json!({}), Some(finish(reply, !calls.is_empty()))));
    if let Some(usage) = usage(reply) {
        events.push(Event::data(
            &json!({"id": "chatcmpl-1", "choices": [], "usage": usage}),
        ));
    }
    events.push(Event {
        name: None,
        data: "[DONE]".to_owned(),
    });
    events
}

pub(super) fn whole(reply: &ScriptedReply, asked: &RecordedRequest) -> Value {
    let calls = reply.calls_with(forced(asked));
    let called: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, args))| {
            let function = json!({"name": name, "arguments": written(args)});
            json!({"id": format!("call_{name}_{index}"), "type": "function", "function": function})
        })
        .collect();
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": asked.body["model"],
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": reply.text_with(forced(asked)), "tool_calls": called},
            "finish_reason": finish(reply, !calls.is_empty()),
        }],
        "usage": usage(reply),
    })
}
