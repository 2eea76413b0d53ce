//! The names by which clients know the tools and prompts of the servers: `server__tool`, or `tool`
//! alone where the configuration says so and nothing else has that name.

use crate::prompt::is_ours;
use crate::tool::PlanCall;
use planwright_core::tool::{Catalog, KnownTool, ToolName};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

const SEPARATOR: &str = "__";

/// How tools and prompts of servers are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameStyle {
    /// `server__tool`, always.
    #[default]
    Prefixed,
    /// `tool`, if one server alone has it and it is no name of ours; else `server__tool`.
    Plain,
}

/// The name of a tool or prompt with that of its server. No name of a plan tool has the separator in
/// it, so no server takes one.
pub(crate) fn with_prefix(server: &str, name: &str) -> String {
    format!("{server}{SEPARATOR}{name}")
}

/// What servers offer under the names by which clients see it. A name that could mean two things
/// means none, and is not offered.
fn name_all<'a, T>(
    style: NameStyle,
    items: impl Iterator<Item = (&'a str, &'a str, T)>,
    is_ours: impl Fn(&str) -> bool,
) -> BTreeMap<String, T> {
    let items: Vec<(&str, &str, T)> = items.collect();
    let mut owners = BTreeMap::<&str, usize>::new();
    for (_, name, _) in &items {
        *owners.entry(name).or_default() += 1;
    }
    let is_plain = |name: &str| {
        // With the separator in it, it could be the full name of something else.
        style == NameStyle::Plain
            && owners.get(name) == Some(&1)
            && !is_ours(name)
            && !name.contains(SEPARATOR)
    };
    let named: Vec<String> = items
        .iter()
        .map(|(server, name, _)| match is_plain(name) {
            true => (*name).to_owned(),
            false => with_prefix(server, name),
        })
        .collect();
    let mut offered = BTreeMap::<String, Option<T>>::new();
    for (name, (_, _, item)) in named.into_iter().zip(items) {
        offered
            .entry(name)
            .and_modify(|taken| *taken = None)
            .or_insert(Some(item));
    }
    let single = offered.into_iter();
    single
        .filter_map(|(name, item)| Some((name, item?)))
        .collect()
}

fn named_tools(catalog: &Catalog, style: NameStyle) -> BTreeMap<String, &Arc<KnownTool>> {
    let tools = catalog
        .iter()
        .map(|tool| (tool.name.server.as_str(), tool.name.tool.as_str(), tool));
    name_all(style, tools, |name| PlanCall::from_name(name).is_some())
}

/// The tools of some servers under the names by which clients see them.
#[derive(Debug, Default)]
pub(super) struct OfferedTools(BTreeMap<String, Arc<KnownTool>>);

impl OfferedTools {
    pub(super) fn new(catalog: &Catalog, style: NameStyle) -> Self {
        let named = named_tools(catalog, style).into_iter();
        Self(named.map(|(name, tool)| (name, Arc::clone(tool))).collect())
    }

    /// The tool that a client means by a name, exactly as it was offered.
    pub(super) fn find(&self, name: &str) -> Option<ToolName> {
        self.0.get(name).map(|tool| tool.name.clone())
    }

    /// The definition of a tool as it is offered.
    pub(super) fn definition(&self, name: &str) -> Option<Tool> {
        let found = self.0.get(name)?;
        Some(define(name.to_owned(), found))
    }

    /// The tools as they are offered, in the order of their names.
    pub(super) fn list(&self) -> impl Iterator<Item = Tool> {
        let named = self.0.iter();
        named.map(|(name, tool)| define(name.clone(), tool))
    }
}

/// The tools that are offered, made anew only when the catalog is another one: clients ask with every
/// call.
#[derive(Debug, Default)]
pub(super) struct LatestTools(Mutex<(Catalog, Arc<OfferedTools>)>);

impl LatestTools {
    /// The tools of a catalog, as `offer` makes them.
    pub(super) fn of(
        &self,
        catalog: Catalog,
        offer: impl FnOnce(&Catalog) -> OfferedTools,
    ) -> Arc<OfferedTools> {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !latest.0.is_clone_of(&catalog) {
            let offered = Arc::new(offer(&catalog));
            *latest = (catalog, offered);
        }
        Arc::clone(&latest.1)
    }
}

/// Prompts, each with its server, under the names by which they are offered.
pub(super) fn named_prompts<'a, T>(
    style: NameStyle,
    prompts: impl Iterator<Item = (&'a str, &'a str, T)>,
) -> BTreeMap<String, T> {
    name_all(style, prompts, is_ours)
}

/// The server and its own name of a prompt with a prefix. Nothing if no offered server, or more than
/// one, could be meant.
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
        let style = NameStyle::Prefixed;
        let both = OfferedTools::new(&tools, style).find("a__b__c");
        assert_eq!(both, None, "two tools have it");
        let found = |name| {
            OfferedTools::new(&tools, style)
                .find(name)
                .map(|tool| tool.to_string())
        };
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
        let listed: Vec<String> = OfferedTools::new(&tools, style)
            .list()
            .map(|tool| tool.name.to_string())
            .collect();
        assert_eq!(listed, ["fs__read", "x__y__z"]);
    }

    #[test]
    fn a_plain_name_is_offered_where_one_server_alone_has_it() {
        let tools = catalog(&[
            ("fs", "read"),
            ("git", "log"),
            ("web", "log"),
            ("evil", "plan_approve"),
            ("evil", "git__log"),
        ]);
        let style = NameStyle::Plain;
        let listed: Vec<String> = OfferedTools::new(&tools, style)
            .list()
            .map(|tool| tool.name.to_string())
            .collect();
        assert_eq!(
            listed,
            [
                "evil__git__log",
                "evil__plan_approve",
                "git__log",
                "read",
                "web__log"
            ]
        );
        let found = |name| {
            OfferedTools::new(&tools, style)
                .find(name)
                .map(|tool| tool.to_string())
        };
        assert_eq!(found("read").as_deref(), Some("fs.read"));
        assert_eq!(found("git__log").as_deref(), Some("git.log"));
        for other in ["log", "fs__read", "plan_approve", "READ"] {
            assert_eq!(found(other), None, "{other:?}");
        }
    }

    #[test]
    fn no_server_takes_the_name_of_a_plan_tool() {
        // No name of ours has two underscores in a row, so no server can make one.
        for tool in PlanCall::ALL {
            assert!(!tool.as_str().contains(SEPARATOR));
        }
    }
}
