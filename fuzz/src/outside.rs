//! What servers say.

use planwright_adapters::mcp::fuzzing::{read_frames as read_messages, read_tools};
use planwright_core::digest::Digest;
use planwright_core::json::check_against_schema;
use planwright_core::plan::{Bounds, Document, validate};
use planwright_core::planning::simplify_schema;
use planwright_core::tool::{Catalog, KnownTool, describe_change};
use serde_json::{Value, json};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Reads the lines of an MCP server, during a handshake and after it.
pub(crate) fn read_frames(input: &[u8]) {
    let during = finish(read_messages(input, true));
    let after = finish(read_messages(input, false));
    assert_eq!(during, after, "a message is one at any time");
}

/// Polls what never waits: everything to read is in memory.
fn finish<T>(reading: impl Future<Output = T>) -> T {
    match pin!(reading).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("reading from memory waits for nothing"),
    }
}

/// Reads the tools of a server, and values that their schemas are about. The input is JSON: a list
/// of tools, then values, one after the other.
pub(crate) fn read_tool_schemas(input: &[u8]) {
    let mut documents = serde_json::Deserializer::from_slice(input).into_iter::<Value>();
    let Some(Ok(Value::Array(tools))) = documents.next() else {
        return;
    };
    let values: Vec<Value> = documents.map_while(Result::ok).take(4).collect();
    let definitions = read_tools("outside", tools);
    let empty = json!({});
    for definition in &definitions {
        simplify_schema(&definition.input_schema);
        for value in values.iter().chain([&empty]) {
            drop(check_against_schema(&definition.input_schema, value));
        }
        if let Some(first) = definitions.first() {
            describe_change(first, definition);
        }
    }
    let origin = Digest::of_bytes(b"outside");
    let known = definitions
        .into_iter()
        .map(|definition| KnownTool::from_server(definition, &origin, false));
    let catalog = Catalog::new(known);
    let step =
        |tool: &KnownTool, args: &Value| json!({"tool": tool.name.to_string(), "args": args});
    let steps: Vec<Value> = catalog
        .iter()
        .take(16)
        .flat_map(|tool| {
            tool.output_validator().err();
            let values = values.iter().filter(|value| value.is_object());
            values.map(|value| step(tool, value)).collect::<Vec<_>>()
        })
        .collect();
    let bounds = Bounds::for_untrusted();
    if let Ok(document) = Document::from_json(json!({"steps": steps}), &bounds) {
        validate(document, &catalog, &bounds);
    }
}
