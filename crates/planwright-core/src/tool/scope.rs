//! The tools that the entries of a scope stand for.
//!
//! An entry is the name of a tool, the name of a server (all its tools), or a pattern such as
//! `odoo.read_*`. A name that is a tool's means that tool and never a server.

use super::{Catalog, KnownTool, ResolveToolError, ToolName};
use crate::plan::bare_name;
use crate::text::Wildcard;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The tool that runs anything: a scope holds it only if it names it, and never by its server or by
/// a pattern.
pub(crate) const RUNS_ANYTHING: &str = "run_command";

/// Returns whether an entry of a scope is a pattern over names.
pub(crate) fn is_pattern(entry: &str) -> bool {
    entry.contains(['*', '?'])
}

impl Catalog {
    /// The tools that an entry of a scope stands for, in the order of their names. None if nothing
    /// here has such a name.
    pub fn scoped_tools(&self, entry: &str) -> Vec<&Arc<KnownTool>> {
        if is_pattern(entry) {
            let pattern = NamePattern::new(entry);
            return self
                .iter()
                .filter(|tool| pattern.covers(&tool.name))
                .collect();
        }
        match self.resolve(entry) {
            Ok(tool) => vec![tool],
            // Which of several tools is meant is not for us to guess.
            Err(ResolveToolError::Ambiguous { .. }) => Vec::new(),
            Err(ResolveToolError::Unknown { .. }) => self
                .iter()
                .filter(|tool| tool.name.server == entry && tool.name.tool != RUNS_ANYTHING)
                .collect(),
        }
    }

    /// Returns whether an entry of a scope names nothing that is here.
    pub fn lacks(&self, entry: &str) -> bool {
        let unknown = matches!(self.resolve(entry), Err(ResolveToolError::Unknown { .. }));
        unknown && self.scoped_tools(entry).is_empty()
    }
}

/// The entries of a scope, looked up without reading the list again for every call.
///
/// It knows no catalog: a server's name holds every tool of the server. Whether a tool was among
/// those that were shown is for the pins of an approval to say.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolScope {
    exact: BTreeSet<String>,
    bare: BTreeSet<String>,
    patterns: Vec<NamePattern>,
}

impl ToolScope {
    pub(crate) fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Self {
        let (patterns, exact): (Vec<String>, Vec<String>) = entries
            .into_iter()
            .map(full)
            .partition(|entry| is_pattern(entry));
        let bare = exact
            .iter()
            .filter_map(|name| bare_name(name))
            .map(str::to_owned)
            .collect();
        Self {
            exact: exact.into_iter().collect(),
            bare,
            patterns: patterns
                .iter()
                .map(|entry| NamePattern::new(entry))
                .collect(),
        }
    }

    /// Returns whether a tool is in the scope. Names match if they are the same text, or one is the
    /// bare name of the other.
    pub(crate) fn holds(&self, name: &str) -> bool {
        let name = full(name);
        if self.exact.contains(&name) || self.bare.contains(&name) {
            return true;
        }
        let Some((server, tool)) = name.split_once('.') else {
            return false;
        };
        let of_server = self.exact.contains(server) && tool != RUNS_ANYTHING;
        let covered = || {
            let name = ToolName {
                server: server.to_owned(),
                tool: tool.to_owned(),
            };
            self.patterns.iter().any(|pattern| pattern.covers(&name))
        };
        self.exact.contains(tool) || of_server || covered()
    }
}

/// A pattern over names: over `server.tool` if it has a dot, else over the names of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamePattern {
    pattern: Wildcard,
    over_full_names: bool,
}

impl NamePattern {
    fn new(entry: &str) -> Self {
        let entry = full(entry);
        Self {
            over_full_names: entry.contains('.'),
            pattern: Wildcard::new(&entry),
        }
    }

    fn covers(&self, name: &ToolName) -> bool {
        let matches = match self.over_full_names {
            true => self.pattern.matches(&name.to_string()),
            false => self.pattern.matches(&name.tool),
        };
        matches && name.tool != RUNS_ANYTHING
    }
}

/// `mcp__server__tool` as `server.tool`.
fn full(name: &str) -> String {
    match name
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"))
    {
        Some((server, tool)) => format!("{server}.{tool}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{EffectClass, ToolDefinition};
    use serde_json::json;

    fn catalog() -> Catalog {
        let names = [
            ("odoo", "read"),
            ("odoo", "write"),
            ("mail", "send"),
            ("mail", "odoo_sync"),
            ("fetch", "fetch"),
            ("fetch", "post"),
            ("local", "read_file"),
            ("local", "run_command"),
        ];
        Catalog::new(names.into_iter().map(|(server, name)| {
            let schema = json!({"type": "object"});
            let definition = ToolDefinition::new(server, name, "", schema);
            KnownTool::new(definition, EffectClass::Unsafe)
        }))
    }

    fn names(entry: &str) -> Vec<String> {
        let catalog = catalog();
        let found = catalog.scoped_tools(entry);
        found.iter().map(|tool| tool.name.to_string()).collect()
    }

    #[test]
    fn an_entry_is_a_tool_a_server_or_a_pattern() {
        assert_eq!(names("odoo"), ["odoo.read", "odoo.write"]);
        assert_eq!(names("odoo.*"), ["odoo.read", "odoo.write"]);
        assert_eq!(names("mcp__odoo__r*"), ["odoo.read"]);
        assert_eq!(names("s?nd"), ["mail.send"]);
        assert_eq!(names("send"), ["mail.send"]);
        assert_eq!(names("nothing"), [""; 0]);
        assert!(catalog().lacks("nothing.*") && catalog().lacks("nothing"));
        assert!(!catalog().lacks("odoo") && !catalog().lacks("send"));
    }

    #[test]
    fn a_name_that_is_a_tool_is_not_read_as_its_server() {
        assert_eq!(names("fetch"), ["fetch.fetch"]);
        assert_eq!(names("fetch.*"), ["fetch.fetch", "fetch.post"]);
    }

    #[test]
    fn what_runs_anything_is_named_or_not_there() {
        assert_eq!(names("local"), ["local.read_file"]);
        assert_eq!(names("local.*"), ["local.read_file"]);
        assert_eq!(names("*"), names("*.*"));
        assert!(!names("*").contains(&"local.run_command".to_owned()));
        assert_eq!(names("run_command"), ["local.run_command"]);
        for entry in ["local", "local.*", "run_*", "*"] {
            assert!(
                !ToolScope::new([entry]).holds("local.run_command"),
                "{entry}"
            );
        }
        assert!(ToolScope::new(["run_command"]).holds("local.run_command"));
    }

    #[test]
    fn a_scope_holds_what_its_entries_stand_for() {
        let scope = ToolScope::new(["odoo", "mail.s*", "mcp__fetch__post"]);
        for held in [
            "odoo.read",
            "mcp__odoo__write",
            "mail.send",
            "fetch.post",
            "post",
        ] {
            assert!(scope.holds(held), "{held}");
        }
        for other in ["mail.odoo_sync", "fetch.fetch", "odoox.read", "read"] {
            assert!(!scope.holds(other), "{other}");
        }
    }
}
