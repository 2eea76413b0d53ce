//! The names by which clients know the tools of the servers: `server__tool`.

use planwright_core::tool::{Catalog, KnownTool, ToolName};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const SEPARATOR: &str = "__";

/// The name of a tool or prompt as clients see it. No name of a plan tool has the separator in it, so
/// no server takes one.
pub(crate) fn offered_name(server: &str, name: &str) -> String {
    format!("{server}{SEPARATOR}{name}")
}

/// The tool that a client means by a name, exactly as it was offered.
pub(super) fn find_offered(catalog: &Catalog, name: &str) -> Option<ToolName> {
    let is_meant = |tool: &ToolName| {
        let rest = name.strip_prefix(tool.server.as_str());
        rest.and_then(|rest| rest.strip_prefix(SEPARATOR)) == Some(tool.tool.as_str())
    };
    let mut meant = catalog.iter().filter(|known| is_meant(&known.name));
    let found = meant.next()?;
    meant.next().is_none().then(|| found.name.clone())
}

/// The server and its own name of a prompt. Nothing if no offered server, or more than one, could be
/// meant.
pub(super) fn split_prompt<'a>(
    servers: &'a BTreeSet<String>,
    name: &'a str,
) -> Option<(&'a str, &'a str)> {
    let mut meant = servers.iter().filter_map(|server| {
        let prompt = name
            .strip_prefix(server.as_str())?
            .strip_prefix(SEPARATOR)?;
        Some((server.as_str(), prompt))
    });
    let found = meant.next()?;
    meant.next().is_none().then_some(found)
}

/// The tools as they are offered, in the order of their names. A name that could mean two tools means
/// none, and is not offered.
pub(super) fn tool_list(catalog: &Catalog) -> Vec<Tool> {
    let mut offered = BTreeMap::<String, Option<&Arc<KnownTool>>>::new();
    for tool in catalog.iter() {
        offered
            .entry(offered_name(&tool.name.server, &tool.name.tool))
            .and_modify(|taken| *taken = None)
            .or_insert(Some(tool));
    }
    let single = offered.into_iter();
    single
        .filter_map(|(name, tool)| Some(define(name, tool?)))
        .collect()
}

fn define(name: String, tool: &KnownTool) -> Tool {
    let definition = &tool.definition;
    let schema = |value: &Value| -> Arc<JsonObject> {
        Arc::new(value.as_object().cloned().unwrap_or_default())
    };
    let hints = &definition.annotations;
    let mut annotations = ToolAnnotations::new();
    annotations.title.clone_from(&definition.title);
    annotations.read_only_hint = hints.read_only_hint;
    annotations.destructive_hint = hints.destructive_hint;
    annotations.idempotent_hint = hints.idempotent_hint;
    annotations.open_world_hint = hints.open_world_hint;
    let description = definition.description.clone().unwrap_or_default();
    let mut offered = Tool::new(name, description, schema(&definition.input_schema))
        .with_annotations(annotations);
    offered.title.clone_from(&definition.title);
    // Clients of the earlier era know no other results than objects.
    let of_objects = |schema: &&Value| schema["type"] == "object";
    offered.output_schema = definition
        .output_schema
        .as_ref()
        .filter(of_objects)
        .map(schema);
    offered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::PlanCall;
    use planwright_core::tool::{EffectClass, ToolDefinition};
    use serde_json::json;

    fn catalog(names: &[(&str, &str)]) -> Catalog {
        Catalog::new(names.iter().map(|(server, tool)| {
            let definition = ToolDefinition::new(server, tool, "", json!({"type": "object"}));
            KnownTool::new(definition, EffectClass::Unsafe)
        }))
    }

    #[test]
    fn a_name_means_one_tool_or_none() {
        let tools = catalog(&[("a", "b__c"), ("a__b", "c"), ("fs", "read"), ("x", "y__z")]);
        assert_eq!(find_offered(&tools, "a__b__c"), None, "two tools have it");
        let found = |name| find_offered(&tools, name).map(|tool| tool.to_string());
        assert_eq!(found("fs__read").as_deref(), Some("fs.read"));
        assert_eq!(found("x__y__z").as_deref(), Some("x.y__z"));
        for other in [
            "fs.read",
            "fs__READ",
            "fs__read ",
            "fs_read",
            "read",
            "",
            "__",
            "fs__",
            "__read",
            "plan_approve",
            "fs__reаd",
            "fs\u{ff3f}_read",
            "mcp__fs__read",
        ] {
            assert_eq!(found(other), None, "{other:?}");
        }
        let listed: Vec<String> = tool_list(&tools)
            .iter()
            .map(|tool| tool.name.to_string())
            .collect();
        assert_eq!(listed, ["fs__read", "x__y__z"]);
    }

    #[test]
    fn no_server_takes_the_name_of_a_plan_tool() {
        // No name of ours has two underscores in a row, so no server can make one.
        for tool in PlanCall::ALL {
            assert!(!tool.as_str().contains(SEPARATOR));
        }
    }
}
