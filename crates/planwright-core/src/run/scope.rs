//! The tools a plan says it uses, looked up without reading the list again for every call.

use crate::plan::{Document, bare_name};
use std::collections::BTreeSet;

/// A plan's scope. Names match if they are the same text, or one is the bare name of the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    exact: BTreeSet<String>,
    bare: BTreeSet<String>,
}

impl Scope {
    pub(super) fn of(document: &Document) -> Self {
        Self::of_names(document.tools_required.iter().map(String::as_str))
    }

    /// What the executors of `agent` steps may call.
    pub(super) fn of_agents(document: &Document) -> Self {
        Self::of_names(document.agent_tools())
    }

    fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let exact: BTreeSet<String> = names.into_iter().map(full).collect();
        let bare = exact
            .iter()
            .filter_map(|name| bare_name(name))
            .map(str::to_owned)
            .collect();
        Self { exact, bare }
    }

    /// Returns whether a tool, by its full name, is in the scope.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.exact.contains(name)
            || bare_name(name).is_some_and(|bare| self.exact.contains(bare))
            || self.bare.contains(name)
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
