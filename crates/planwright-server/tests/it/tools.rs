//! The tools of the tests: the names and classes of those of the program, over files in memory.

use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::FunctionTools;
use planwright_engine::port::{Call, CallError, Outcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The files that the tools write, by path.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryFiles(Arc<Mutex<BTreeMap<String, String>>>);

impl MemoryFiles {
    /// Returns the text of a file; empty if there is none.
    pub(crate) fn read(&self, path: &str) -> String {
        self.get(path).unwrap_or_default()
    }

    fn get(&self, path: &str) -> Option<String> {
        self.0.lock().unwrap().get(path).cloned()
    }

    fn append(&self, path: &str, text: &str) {
        self.0
            .lock()
            .unwrap()
            .entry(path.to_owned())
            .or_default()
            .push_str(text);
    }

    fn write(&self, path: &str, text: &str) {
        self.0
            .lock()
            .unwrap()
            .insert(path.to_owned(), text.to_owned());
    }
}

/// `demo.echo`, `demo.sleep`, and the file tools of `local`.
pub(crate) fn tools(files: &MemoryFiles) -> FunctionTools {
    let appended = files.clone();
    let written = files.clone();
    let read = files.clone();
    FunctionTools::new()
        .with(reading("demo", "echo", &["value"]), |call| async move {
            Ok(call.args["value"].clone())
        })
        .with(reading("demo", "sleep", &["ms"]), sleep)
        .with(reading("local", "list_dir", &[]), |_| async {
            Ok(json!([]))
        })
        .with(reading("local", "read_file", &["path"]), move |call| {
            let path = text(&call, "path");
            let found = read.get(&path).map(Value::String);
            async move { found.ok_or_else(|| CallError::failed(format!("there is no {path}"))) }
        })
        .with(writing("append_file", false), move |call| {
            appended.append(&text(&call, "path"), &text(&call, "content"));
            async { Ok(Value::Null) }
        })
        .with(writing("write_file", true), move |call| {
            written.write(&text(&call, "path"), &text(&call, "content"));
            async { Ok(Value::Null) }
        })
}

async fn sleep(call: Call) -> Outcome {
    let ms = call.args["ms"].as_u64().unwrap_or_default();
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(ms)) => Ok(json!(ms)),
        () = call.cancelled.cancelled() => Err(CallError::Cancelled),
    }
}

fn text(call: &Call, name: &str) -> String {
    call.args[name].as_str().unwrap_or_default().to_owned()
}

fn reading(server: &str, name: &str, required: &[&str]) -> ToolDefinition {
    let schema = json!({ "type": "object", "required": required });
    ToolDefinition::new(server, name, "A tool that changes nothing.", schema)
        .with_annotations(Annotations::read_only())
}

fn writing(name: &str, idempotent: bool) -> ToolDefinition {
    let schema = json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "content": {} },
        "required": ["path", "content"],
        "additionalProperties": false,
    });
    ToolDefinition::new("local", name, "A tool that writes a file.", schema).with_annotations(
        Annotations {
            read_only_hint: Some(false),
            destructive_hint: Some(idempotent),
            idempotent_hint: Some(idempotent),
            open_world_hint: Some(false),
        },
    )
}
