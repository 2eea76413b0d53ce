//! A server's list of tools, page by page, and what of it can be used.

use super::RefusedTool;
use super::connection::{Peer, plain};
use planwright_core::text::sanitize_line;
use planwright_core::tool::{Annotations, ToolDefinition};
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const MAX_PAGES: usize = 100;
const MAX_TOOLS: usize = 1_000;
const MAX_NAME_CHARS: usize = 128;
/// The most bytes the definition of one tool may have.
const MAX_DEFINITION_BYTES: usize = 256 << 10;
/// The number of refused tools that are listed one by one.
const MAX_REFUSED: usize = 200;

/// The tools a server lists.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) definitions: Vec<ToolDefinition>,
    pub(super) refused: Vec<RefusedTool>,
    /// The tools that can only be called as tasks, in the earlier era.
    pub(super) tasks: BTreeSet<String>,
}

impl Listed {
    pub(super) fn refuse(&mut self, server: &str, tool: &str, reason: impl Into<String>) {
        if self.refused.len() < MAX_REFUSED {
            let tool = sanitize_line(tool).chars().take(MAX_NAME_CHARS).collect();
            self.refused.push(RefusedTool {
                server: server.to_owned(),
                tool,
                reason: reason.into(),
            });
        }
    }
}

/// Asks for all pages. The error says why there is no list.
pub(super) async fn list(peer: &Peer, server: &str) -> Result<Listed, String> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    let mut cursors = BTreeSet::new();
    let mut endless = None;
    loop {
        let mut page = page(peer, cursor.take()).await?;
        let Some(Value::Array(listed)) = page.get_mut("tools").map(Value::take) else {
            return Err("its answer to tools/list holds no tools".into());
        };
        tools.extend(listed);
        let Some(next) = page
            .get("nextCursor")
            .and_then(Value::as_str)
            .filter(|next| !next.is_empty())
        else {
            break;
        };
        if tools.len() > MAX_TOOLS
            || cursors.len() + 1 >= MAX_PAGES
            || !cursors.insert(next.to_owned())
        {
            endless = Some(format!(
                "the list does not end: {MAX_TOOLS} tools on {MAX_PAGES} pages are read"
            ));
            break;
        }
        cursor = Some(next.to_owned());
    }
    let mut listed = sift(server, tools);
    if let Some(reason) = endless {
        listed.refuse(server, "(more tools)", reason);
    }
    Ok(listed)
}

async fn page(peer: &Peer, cursor: Option<String>) -> Result<Value, String> {
    let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
    let request = ListToolsRequest {
        params,
        ..ListToolsRequest::default()
    };
    let answer = peer
        .send_request(ClientRequest::ListToolsRequest(request))
        .await;
    answer.map(plain).map_err(|error| {
        format!(
            "it did not list its tools: {}",
            sanitize_line(&error.to_string())
        )
    })
}

/// Tools whose names could be taken for each other are all left out: the approver could not say
/// which one an approval was for.
pub(super) fn sift(server: &str, tools: Vec<Value>) -> Listed {
    let mut listed = Listed::default();
    let mut by_folded_name: BTreeMap<String, usize> = BTreeMap::new();
    let names: Vec<String> = tools
        .iter()
        .map(|tool| {
            tool.get("name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    for name in &names {
        *by_folded_name.entry(name.to_lowercase()).or_default() += 1;
    }
    for (name, tool) in names.iter().zip(tools) {
        if !is_name(name) {
            listed.refuse(
                server,
                name,
                "its name is not 1 to 128 letters, digits, `_`, `.` and `-`",
            );
        } else if by_folded_name[&name.to_lowercase()] > 1 {
            listed.refuse(
                server,
                name,
                "another tool of the server has the same name, but for capital letters",
            );
        } else if listed.definitions.len() == MAX_TOOLS {
            listed.refuse(
                server,
                name,
                format!("only {MAX_TOOLS} tools of a server are read"),
            );
        } else {
            let needs_task = tool["execution"]["taskSupport"] == "required";
            match definition(server, name, tool) {
                Ok(definition) => {
                    listed.tasks.extend(needs_task.then(|| name.clone()));
                    listed.definitions.push(definition);
                }
                Err(reason) => listed.refuse(server, name, reason),
            }
        }
    }
    listed
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_CHARS).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// Returns whether a definition that was read from a file is one that a server could have listed.
pub(super) fn is_usable(server: &str, definition: &ToolDefinition) -> bool {
    let mut schemas = std::iter::once(&definition.input_schema).chain(&definition.output_schema);
    definition.name.server == server
        && is_name(&definition.name.name)
        && schemas.all(|schema| check_schema("its", schema).is_ok())
}

fn definition(server: &str, name: &str, mut tool: Value) -> Result<ToolDefinition, String> {
    if serde_json::to_vec(&tool).map_or(usize::MAX, |text| text.len()) > MAX_DEFINITION_BYTES {
        return Err(format!(
            "its definition is larger than {} KiB",
            MAX_DEFINITION_BYTES >> 10
        ));
    }
    let text = |place: &Value| place.as_str().map(str::to_owned);
    let input = tool["inputSchema"].take();
    check_schema("input", &input)?;
    if input.get("type").is_some_and(|kind| kind != "object") {
        return Err("its input schema is not that of an object".into());
    }
    let output = Some(tool["outputSchema"].take()).filter(|schema| !schema.is_null());
    if let Some(output) = &output {
        check_schema("output", output)?;
    }
    let annotations = tool["annotations"].take();
    let title = text(&tool["title"]).or_else(|| text(&annotations["title"]));
    let mut definition = ToolDefinition::new(server, name, "", input);
    definition.title = title;
    definition.description = text(&tool["description"]);
    definition.output_schema = output;
    // Hints that cannot be read count as absent, which means the dangerous answer.
    definition.annotations = serde_json::from_value::<Annotations>(annotations).unwrap_or_default();
    Ok(definition)
}

fn check_schema(which: &str, schema: &Value) -> Result<(), String> {
    if !schema.is_object() {
        return Err(format!("its {which} schema is not an object"));
    }
    match foreign_reference(schema) {
        Some(target) => {
            let target: String = sanitize_line(target).chars().take(MAX_NAME_CHARS).collect();
            Err(format!(
                "its {which} schema refers to `{target}`, and nothing outside of it is read"
            ))
        }
        None => Ok(()),
    }
}

/// A reference to another document. Messages nest a hundred levels at most, so this does too.
fn foreign_reference(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| match value {
            Value::String(target)
                if matches!(name.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef") =>
            {
                (!target.starts_with('#')).then_some(target.as_str())
            }
            _ => foreign_reference(value),
        }),
        Value::Array(list) => list.iter().find_map(foreign_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
