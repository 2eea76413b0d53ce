//! Describes the change between two definitions of a tool, for the person whose approval pinned the
//! first.

use super::ToolDefinition;
use crate::json::pointer_token;
use serde_json::{Value, json};

/// A long list of changes says no more than a short one.
const MAX_CHANGES: usize = 8;
const MAX_TEXT: usize = 60;

/// Describes the changes field by field, in few words. Equal definitions differ in the origin of
/// the tool.
pub fn describe_change(before: &ToolDefinition, after: &ToolDefinition) -> String {
    let mut changes = Vec::new();
    let fields = |definition: &ToolDefinition| {
        json!({
            "name": definition.tool_name().to_string(),
            "title": definition.title,
            "description": definition.description,
            "inputSchema": definition.input_schema,
            "outputSchema": definition.output_schema,
            "annotations": definition.annotations,
        })
    };
    collect_changes("", &fields(before), &fields(after), &mut changes);
    if changes.is_empty() {
        return "its definition is the same, but it comes from another server or launch line"
            .to_owned();
    }
    let more = changes.len().saturating_sub(MAX_CHANGES);
    changes.truncate(MAX_CHANGES);
    if more > 0 {
        changes.push(format!("and {more} more"));
    }
    changes.join("; ")
}

fn collect_changes(at: &str, before: &Value, after: &Value, changes: &mut Vec<String>) {
    if before == after {
        return;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        let place = at.trim_start_matches('/');
        changes.push(match (before.is_null(), after.is_null()) {
            (true, _) => format!("{place} added: {}", excerpt(after)),
            (_, true) => format!("{place} removed: {}", excerpt(before)),
            (false, false) => format!("{place}: {} → {}", excerpt(before), excerpt(after)),
        });
        return;
    };
    let names = old
        .keys()
        .chain(new.keys().filter(|name| !old.contains_key(*name)));
    for name in names {
        let place = format!("{at}/{}", pointer_token(name));
        let of =
            |map: &serde_json::Map<String, Value>| map.get(name).cloned().unwrap_or(Value::Null);
        collect_changes(&place, &of(old), &of(new), changes);
    }
}

fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= MAX_TEXT {
        return text;
    }
    let start: String = text.chars().take(MAX_TEXT).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(description: &str, schema: Value) -> ToolDefinition {
        ToolDefinition::new("s", "t", description, schema)
    }

    #[test]
    fn changes_are_named_by_their_place() {
        let before = tool("reads", json!({"properties": {"a": {"type": "string"}}}));
        let after = tool(
            "deletes",
            json!({"properties": {"a": {"type": "integer"}, "b": true}}),
        );
        assert_eq!(
            describe_change(&before, &after),
            "description: \"reads\" → \"deletes\"; inputSchema/properties/a/type: \"string\" → \"integer\"; \
             inputSchema/properties/b added: true"
        );
    }

    #[test]
    fn a_difference_is_short_whatever_changed() {
        let many = |n: i32| {
            json!(
                (0..1000)
                    .map(|i| (format!("k{i}"), json!(n)))
                    .collect::<serde_json::Map<_, _>>()
            )
        };
        let words = describe_change(&tool("a", many(1)), &tool(&"b".repeat(10_000), many(2)));
        assert!(words.len() < 1_500 && words.ends_with("more"), "{words}");
    }
}
