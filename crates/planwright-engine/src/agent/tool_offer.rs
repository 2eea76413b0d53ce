//! Which tools a model is told of in full: all of them if they are few. Of many those that seem to be
//! meant, those it called or looked for, and a tool that finds the others.
//!
//! A model that is told of hundreds of tools in every turn reads little else, and pays for it.

use crate::port::offer_tool;
use planwright_core::model::OfferedTool;
use planwright_core::tool::{Keywords, KnownTool, score_relevance};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of the tool that finds others. No server has it: their tools' names have a point.
pub(super) const FIND_TOOLS: &str = "find_tools";
/// The bytes of definitions up to which all tools are offered.
const MAX_BYTES: usize = 32 << 10;
/// The bytes of those that seem to be meant.
const RELEVANT_BYTES: usize = 12 << 10;
/// The tools that one search finds.
const MAX_FOUND: usize = 8;
/// Letters of a description in what a search says: the definition is offered besides.
const MAX_ABOUT: usize = 300;
/// Names that a prompt lists one by one.
const MAX_NAMED: usize = 60;

/// What one executor was offered so far. It only grows, within its size: what a model was told of does
/// not vanish while it thinks of using it.
#[derive(Debug, Default)]
pub(super) struct ToolOffer {
    /// The names of tools that were called, found or seemed to be meant, in that order of time.
    opened: Vec<String>,
}

impl ToolOffer {
    /// The tools for the next question. `words` are what the model is asked to do.
    pub(super) fn offer(&mut self, tools: &[&Arc<KnownTool>], words: &str) -> Vec<OfferedTool> {
        let all: usize = tools.iter().map(|tool| size(tool)).sum();
        if all <= MAX_BYTES {
            return tools.iter().map(|tool| offer_tool(tool)).collect();
        }
        for tool in most_relevant(tools, words, RELEVANT_BYTES) {
            self.open(&tool.name.to_string());
        }
        self.forget_oldest(tools);
        let is_opened = |tool: &&&Arc<KnownTool>| self.opened.contains(&tool.name.to_string());
        let mut offered: Vec<OfferedTool> = tools
            .iter()
            .filter(is_opened)
            .map(|tool| offer_tool(tool))
            .collect();
        let hidden = tools.len() - offered.len();
        offered.push(finding_tool(hidden));
        offered
    }

    /// A tool that is offered from now on. The latest are kept longest.
    pub(super) fn open(&mut self, name: &str) {
        self.opened.retain(|known| known != name);
        self.opened.push(name.to_owned());
    }

    /// Finds tools by what they do, and offers them from now on.
    pub(super) fn find(&mut self, tools: &[&Arc<KnownTool>], query: &str) -> Value {
        let mut found = rank(tools, query);
        found.truncate(MAX_FOUND);
        for tool in &found {
            self.open(&tool.name.to_string());
        }
        let described = found.iter().map(|tool| {
            let about = tool.definition.description.as_deref().unwrap_or_default();
            let about: String = about.chars().take(MAX_ABOUT).collect();
            json!({ "name": tool.name.to_string(), "description": about,
                "arguments": tool.definition.input_schema.get("properties") })
        });
        let described: Vec<Value> = described.collect();
        match described.is_empty() {
            true => json!({ "found": [], "hint": "no tool has these words: try others" }),
            false => json!({ "found": described }),
        }
    }

    /// Keeps the offer within its size.
    fn forget_oldest(&mut self, tools: &[&Arc<KnownTool>]) {
        let sizes: BTreeMap<String, usize> = tools
            .iter()
            .map(|tool| (tool.name.to_string(), size(tool)))
            .collect();
        let mut left = MAX_BYTES;
        let mut kept = Vec::new();
        for name in self.opened.drain(..).rev() {
            let Some(size) = sizes.get(&name) else {
                continue;
            };
            if let Some(rest) = left.checked_sub(*size) {
                left = rest;
                kept.push(name);
            }
        }
        kept.reverse();
        self.opened = kept;
    }
}

/// The tools that have most to do with these words, as many as fit.
fn most_relevant<'a>(
    tools: &[&'a Arc<KnownTool>],
    words: &str,
    bytes: usize,
) -> Vec<&'a Arc<KnownTool>> {
    let mut left = bytes;
    let ranked = rank(tools, words).into_iter();
    ranked
        .take_while(|tool| match left.checked_sub(size(tool)) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
        .collect()
}

/// The tools that have words in common with these, those with most of them first.
fn rank<'a>(tools: &[&'a Arc<KnownTool>], words: &str) -> Vec<&'a Arc<KnownTool>> {
    let words = Keywords::of(words);
    let mut ranked: Vec<(Reverse<usize>, &'a Arc<KnownTool>)> = tools
        .iter()
        .map(|tool| (Reverse(score_relevance(&words, &tool.definition)), *tool))
        .filter(|(Reverse(score), _)| *score > 0)
        .collect();
    ranked.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.name.cmp(&other.name)));
    ranked.into_iter().map(|(_, tool)| tool).collect()
}

/// About the bytes of a tool in a request.
fn size(tool: &Arc<KnownTool>) -> usize {
    let about = tool.definition.description.as_deref().unwrap_or_default();
    about.len() + tool.definition.input_schema.to_string().len() + 60
}

fn finding_tool(hidden: usize) -> OfferedTool {
    OfferedTool {
        name: FIND_TOOLS.to_owned(),
        description: format!(
            "Finds tools by what they do. {hidden} more tools can be called than are listed here. Returns up to {MAX_FOUND} of \
             them with their arguments; from then on they are listed."
        ),
        schema: json!({
            "type": "object",
            "properties": { "query": { "type": "string", "description": "What the tool should do, in a few words." } },
            "required": ["query"],
            "additionalProperties": false,
        }),
    }
}

/// The names of tools as a prompt lists them; of many, how many each server has.
pub(super) fn name_tools(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    if names.len() <= MAX_NAMED {
        return names.join(", ");
    }
    let mut servers: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        let server = name
            .split_once('.')
            .map_or(name.as_str(), |(server, _)| server);
        *servers.entry(server).or_default() += 1;
    }
    let servers: Vec<String> = servers
        .into_iter()
        .map(|(server, count)| format!("{server} ({count})"))
        .collect();
    format!(
        "those of the servers {}. Not all of them are listed: {FIND_TOOLS} finds the others",
        servers.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_core::tool::{EffectClass, ToolDefinition};

    fn tool(server: &str, name: &str, about: &str) -> Arc<KnownTool> {
        let schema = json!({ "type": "object", "properties": { "x": { "type": "string", "description": "y".repeat(400) } } });
        let definition = ToolDefinition::new(server, name, about, schema);
        Arc::new(KnownTool::new(definition, EffectClass::Safe))
    }

    fn many() -> Vec<Arc<KnownTool>> {
        let mut tools: Vec<_> = (0..300)
            .map(|n| tool("big", &format!("filler{n}"), "Something else entirely."))
            .collect();
        tools.push(tool("mail", "send_message", "Sends a message to a person."));
        tools.push(tool("crm", "list_invoices", "Lists invoices of customers."));
        tools
    }

    fn names(offered: &[OfferedTool]) -> Vec<&str> {
        offered.iter().map(|tool| tool.name.as_str()).collect()
    }

    #[test]
    fn few_tools_are_all_offered() {
        let tools = [tool("a", "one", "x"), tool("a", "two", "y")];
        let tools: Vec<&Arc<KnownTool>> = tools.iter().collect();
        let offered = ToolOffer::default().offer(&tools, "anything");
        assert_eq!(names(&offered), ["a.one", "a.two"]);
    }

    #[test]
    fn of_many_those_are_offered_that_are_meant_found_or_called() {
        let tools = many();
        let tools: Vec<&Arc<KnownTool>> = tools.iter().collect();
        let mut offer = ToolOffer::default();
        let first = offer.offer(&tools, "send a message to Ada");
        assert_eq!(names(&first), ["mail.send_message", FIND_TOOLS]);
        assert!(first[1].description.starts_with("Finds tools"));
        let found = offer.find(&tools, "invoices");
        assert_eq!(found["found"][0]["name"], "crm.list_invoices");
        offer.open("big.filler7");
        let next = offer.offer(&tools, "send a message to Ada");
        let next = names(&next);
        for name in [
            "mail.send_message",
            "crm.list_invoices",
            "big.filler7",
            FIND_TOOLS,
        ] {
            assert!(next.contains(&name), "{name}: {next:?}");
        }
        assert_eq!(offer.find(&tools, "zebra")["found"], json!([]));
    }

    #[test]
    fn an_offer_has_a_size() {
        let tools = many();
        let tools: Vec<&Arc<KnownTool>> = tools.iter().collect();
        let mut offer = ToolOffer::default();
        for n in 0..300 {
            offer.open(&format!("big.filler{n}"));
        }
        let offered = offer.offer(&tools, "nothing of it");
        let bytes: usize = offered
            .iter()
            .map(|tool| tool.schema.to_string().len())
            .sum();
        assert!(bytes <= MAX_BYTES, "{bytes}");
        assert!(names(&offered).contains(&"big.filler299"));
        assert!(!names(&offered).contains(&"big.filler0"));
    }

    #[test]
    fn many_names_are_told_by_their_servers() {
        let names: Vec<String> = (0..100).map(|n| format!("big.t{n}")).collect();
        assert!(name_tools(&names).starts_with("those of the servers big (100)."));
        assert_eq!(name_tools(&names[..2]), "big.t0, big.t1");
        assert_eq!(name_tools(&[]), "none");
    }
}
