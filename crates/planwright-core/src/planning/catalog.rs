//! The tools as a planner is told them: everything about the most relevant ones, a line about the
//! rest, in a stable order.

use super::budget::estimate_tokens;
use super::quote::quote_text;
use super::signature::{SignatureDetail, write_arguments, write_result};
use super::tool_schema::simplify_schema;
use crate::plan::{Code, Document, Finding, Step};
use crate::tool::{Catalog, Keywords, KnownTool, score_relevance};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

const MAX_DESCRIPTION: usize = 300;
const SHORT_DESCRIPTION: usize = 80;
const MAX_NAME: usize = 200;
/// The characters for what results looked like.
const MAX_SEEN: usize = 600;
const MAX_SEEN_SHORT: usize = 120;

/// Tokens for the tools.
#[derive(Debug, Clone, Copy)]
pub(super) struct CatalogBudget {
    /// For those that everything is told about.
    pub(super) detailed: usize,
    /// For all of them.
    pub(super) all: usize,
}

/// The tools that are offered to a planner, and what it is told about them.
#[derive(Debug)]
pub(super) struct ToolOffer {
    pub(super) tools: Vec<Arc<KnownTool>>,
    pub(super) text: String,
    /// Tools that did not fit.
    pub(super) left_out: usize,
}

/// What is told about one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    LeftOut,
    Name,
    Short,
    Long,
}

/// Tells as much as fits: everything about the most relevant tools, then a little about all others,
/// then their names, then the names of the most relevant.
pub(super) fn offer_tools(
    tools: &[Arc<KnownTool>],
    asks: &BTreeSet<String>,
    goal: &str,
    budget: CatalogBudget,
) -> ToolOffer {
    let writer = LineWriter { tools, asks };
    let order = rank_tools(tools, goal);
    let mut lines = vec![Line::LeftOut; tools.len()];
    let mut left = budget.all;
    writer.raise(&order, &mut lines, Line::Long, budget.detailed, &mut left);
    let rest: Vec<usize> = order
        .into_iter()
        .filter(|&index| lines[index] == Line::LeftOut)
        .collect();
    let cost = |line: Line| -> usize {
        let texts = rest.iter().map(|&index| writer.write(index, line));
        texts.map(|text| estimate_tokens(&text)).sum()
    };
    let line = match cost(Line::Short) <= left {
        true => Line::Short,
        false => Line::Name,
    };
    // Room for the line that says what is missing.
    let limit = left.saturating_sub(if rest.is_empty() { 0 } else { 20 });
    writer.raise(&rest, &mut lines, line, limit, &mut left);
    writer.offer(&lines)
}

/// Tools that are told again when they were called wrongly.
const MAX_RETOLD: usize = 5;

/// Tells everything about the tools whose arguments did not fit.
pub fn describe_failed_tools(
    findings: &[Finding],
    document: &Document,
    catalog: &Catalog,
) -> String {
    let mut failed = BTreeSet::new();
    for finding in findings {
        let of_step = |step: &&Step| step.id.is_some() && step.id == finding.step;
        let step = document.steps.iter().find(of_step);
        if finding.code == Code::InvalidArgs {
            failed.extend(step.and_then(|step| step.tool.as_deref()));
        }
    }
    let tools = failed.iter().filter_map(|name| catalog.resolve(name).ok());
    let tools: Vec<Arc<KnownTool>> = tools.take(MAX_RETOLD).cloned().collect();
    if tools.is_empty() {
        return String::new();
    }
    let writer = LineWriter {
        tools: &tools,
        asks: &BTreeSet::new(),
    };
    let lines = (0..tools.len()).map(|index| writer.write(index, Line::Long));
    format!("What these tools take:\n{}", lines.collect::<String>())
}

/// The positions of the tools, those that fit the goal best first.
fn rank_tools(tools: &[Arc<KnownTool>], goal: &str) -> Vec<usize> {
    let goal = Keywords::of(goal);
    let mut ranked: Vec<(Reverse<usize>, usize)> = tools
        .iter()
        .enumerate()
        .map(|(index, tool)| (Reverse(score_relevance(&goal, &tool.definition)), index))
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, index)| index).collect()
}

struct LineWriter<'a> {
    tools: &'a [Arc<KnownTool>],
    /// Tools that a person has to agree to.
    asks: &'a BTreeSet<String>,
}

impl LineWriter<'_> {
    /// Gives the tools this line in their order, as far as `limit` tokens and what is left of all
    /// of them go.
    fn raise(
        &self,
        order: &[usize],
        lines: &mut [Line],
        line: Line,
        limit: usize,
        left: &mut usize,
    ) {
        let mut limit = limit.min(*left);
        for &index in order {
            let cost = estimate_tokens(&self.write(index, line));
            if cost <= limit {
                lines[index] = line;
                limit -= cost;
                *left -= cost;
            }
        }
    }

    fn offer(&self, lines: &[Line]) -> ToolOffer {
        let mut text = String::new();
        let mut offered = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            if *line != Line::LeftOut {
                text.push_str(&self.write(index, *line));
                offered.push(Arc::clone(&self.tools[index]));
            }
        }
        let left_out = self.tools.len() - offered.len();
        if self.tools.is_empty() {
            "(none)\n".clone_into(&mut text);
        }
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
    fn write(&self, index: usize, line: Line) -> String {
        let tool = &self.tools[index];
        let definition = &tool.definition;
        let description = definition
            .description
            .as_deref()
            .or(definition.title.as_deref())
            .unwrap_or_default();
        let (detail, most) = match line {
            Line::LeftOut => return String::new(),
            Line::Name => (SignatureDetail::Names, 0),
            Line::Short => (SignatureDetail::Kinds, SHORT_DESCRIPTION),
            Line::Long => (SignatureDetail::Full, MAX_DESCRIPTION),
        };
        let args = write_arguments(&shown_schema(&definition.input_schema, detail), detail);
        let returns = definition
            .output_schema
            .as_ref()
            .filter(|_| line != Line::Name)
            .and_then(|schema| write_result(&shown_schema(schema, detail), detail))
            .map(|result| format!(" -> {result}"))
            .or_else(|| write_seen(tool, line))
            .unwrap_or_default();
        let about = match most {
            0 => String::new(),
            most => format!(": {}", quote_text(description, most)),
        };
        let name = quote_text(&tool.name.to_string(), MAX_NAME);
        format!("- {name} {args}{returns}{}{about}\n", self.marks(tool))
    }

    fn marks(&self, tool: &KnownTool) -> &'static str {
        match (
            tool.is_read_only(),
            self.asks.contains(&tool.name.to_string()),
        ) {
            (true, false) => " [only reads]",
            (true, true) => " [only reads, asks]",
            (false, true) => " [asks]",
            (false, false) => "",
        }
    }
}

/// Describes earlier results of a tool, if its server does not say what they are.
fn write_seen(tool: &KnownTool, line: Line) -> Option<String> {
    let most = match line {
        Line::LeftOut | Line::Name => return None,
        Line::Short => MAX_SEEN_SHORT,
        Line::Long => MAX_SEEN,
    };
    let seen = tool.seen_shape()?.write(most)?;
    Some(format!(" -> (as seen) {seen}"))
}

/// Names and kinds are there as they are: only a full signature needs a schema that is fit to be shown,
/// unless too much of it would be lost.
fn shown_schema(schema: &Value, detail: SignatureDetail) -> Value {
    let has_properties = schema.get("properties").is_some();
    if has_properties && detail != SignatureDetail::Full {
        return schema.clone();
    }
    let simple = simplify_schema(schema);
    match has_properties && simple.get("properties").is_none() {
        true => schema.clone(),
        false => simple,
    }
}
