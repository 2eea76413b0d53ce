//! The tools as a planner is told them: all of them in a stable order, or those that fit, the most
//! relevant first.

use super::budget::estimate_tokens;
use super::quote::quote_text;
use super::relevance::{Keywords, score_relevance};
use super::tool_schema::simplify_schema;
use crate::tool::KnownTool;
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::sync::Arc;

const MAX_DESCRIPTION: usize = 400;
const SHORT_DESCRIPTION: usize = 100;
/// Schemas longer than this are shown as the names of the arguments.
const MAX_SCHEMA_BYTES: usize = 3_000;

/// The amount of text about one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Its description and the schema of its arguments.
    Long,
    /// One line, and the names of its arguments.
    Short,
}

/// The tools that are offered to a planner, and what it is told about them.
#[derive(Debug)]
pub(super) struct ToolOffer {
    pub(super) tools: Vec<Arc<KnownTool>>,
    pub(super) text: String,
    /// Tools that did not fit.
    pub(super) left_out: usize,
}

/// Tells as much as fits: everything about all tools, a little about all, a little about the most
/// relevant.
pub(super) fn offer_tools(tools: &[Arc<KnownTool>], goal: &str, budget: usize) -> ToolOffer {
    let all = |text| ToolOffer {
        tools: tools.to_vec(),
        text,
        left_out: 0,
    };
    if let Some(text) = join_all(
        tools.iter().map(|tool| tool_line(tool, Detail::Long)),
        budget,
    ) {
        return all(text);
    }
    let short: Vec<String> = tools
        .iter()
        .map(|tool| tool_line(tool, Detail::Short))
        .collect();
    match join_all(&short, budget) {
        Some(text) => all(text),
        None => offer_relevant(tools, &short, goal, budget),
    }
}

/// The lines of all tools, if they fit.
fn join_all<L: AsRef<str>>(lines: impl IntoIterator<Item = L>, budget: usize) -> Option<String> {
    let mut text = String::new();
    for line in lines {
        text.push_str(line.as_ref());
        if estimate_tokens(&text) > budget {
            return None;
        }
    }
    if text.is_empty() {
        Some("(none)\n".to_owned())
    } else {
        Some(text)
    }
}

fn offer_relevant(
    tools: &[Arc<KnownTool>],
    lines: &[String],
    goal: &str,
    budget: usize,
) -> ToolOffer {
    let goal = Keywords::of(goal);
    let mut ranked: Vec<(Reverse<usize>, usize)> = tools
        .iter()
        .enumerate()
        .map(|(index, tool)| (Reverse(score_relevance(&goal, &tool.definition)), index))
        .collect();
    ranked.sort_unstable();
    let mut offered = Vec::new();
    let mut text = String::new();
    // Room for the line that says what is missing.
    let budget = budget.saturating_sub(20);
    for (_, index) in ranked {
        let line = &lines[index];
        if estimate_tokens(&text) + estimate_tokens(line) > budget {
            continue;
        }
        text.push_str(line);
        offered.push(Arc::clone(&tools[index]));
    }
    let left_out = tools.len() - offered.len();
    if left_out > 0 {
        text = format!("{text}({left_out} more tools do not fit here and cannot be used)\n");
    }
    ToolOffer {
        tools: offered,
        text,
        left_out,
    }
}

/// One line: nothing that a server says about its tool can end it.
fn tool_line(tool: &KnownTool, detail: Detail) -> String {
    let definition = &tool.definition;
    let most = if detail == Detail::Long {
        MAX_DESCRIPTION
    } else {
        SHORT_DESCRIPTION
    };
    let description = definition
        .description
        .as_deref()
        .or(definition.title.as_deref())
        .unwrap_or_default();
    let name = quote_text(&tool.name.to_string(), 200);
    let args = match detail {
        Detail::Long => {
            let schema = simplify_schema(&definition.input_schema);
            let long = schema
                .get("properties")
                .map(ToString::to_string)
                .unwrap_or_else(|| "{}".to_owned());
            if long.len() <= MAX_SCHEMA_BYTES {
                append_required(&schema, long)
            } else {
                describe_arguments(&schema)
            }
        }
        // Names and types are there as they are: the rest need not be made fit to be shown.
        Detail::Short if definition.input_schema.get("properties").is_some() => {
            describe_arguments(&definition.input_schema)
        }
        Detail::Short => describe_arguments(&simplify_schema(&definition.input_schema)),
    };
    let returns = definition
        .output_schema
        .as_ref()
        .map(|schema| describe_arguments(&simplify_schema(schema)));
    let returns = returns
        .filter(|names| names != "{}")
        .map(|names| format!(" returns {names}"));
    let returns = returns.unwrap_or_default();
    let effect = if tool.is_read_only() {
        " (only reads)"
    } else {
        ""
    };
    format!(
        "- {name}{effect}: {} args {args}{returns}\n",
        quote_text(description, most)
    )
}

fn append_required(schema: &Value, properties: String) -> String {
    match schema.get("required") {
        Some(required) => format!("{properties} required {required}"),
        None => properties,
    }
}

/// The names of the arguments with their types; those that are required are marked.
fn describe_arguments(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|list| list.iter().any(|entry| entry == name));
    let named: Map<String, Value> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .take(40)
        .map(|(name, property)| {
            let kind = property
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or("any");
            let mark = if is_required(name) { "" } else { "?" };
            (name.clone(), Value::String(format!("{kind}{mark}")))
        })
        .collect();
    Value::Object(named).to_string()
}
