//! A plan as a Markdown file: frontmatter for programs, sections for people.
//!
//! Everything in it was written by somebody else. Scalars of the frontmatter are always quoted, prose is escaped so
//! that it cannot open a section or a tag, and fences are longer than anything inside them.

use super::printable::is_invisible;
use super::{Document, Plan, Step, printable};
use crate::time::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// What the journal knows about a plan and its document does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownMeta {
    pub status: String,
    pub version: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub execution_session: Option<String>,
    pub execution_started_at: Option<Timestamp>,
    pub execution_ended_at: Option<Timestamp>,
    pub result_summary: Option<String>,
    pub rejections: Vec<MarkdownRejection>,
}

/// One time the plan was sent back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownRejection {
    pub version: u64,
    pub at: Timestamp,
    pub by: String,
    pub reason: String,
}

/// Writes the plan as Markdown.
pub fn to_markdown(plan: &Plan, meta: &MarkdownMeta) -> String {
    let mut page = Page { text: String::new() };
    frontmatter(&mut page, plan, meta);
    let document = plan.document();
    if let Some(goal) = &document.goal {
        page.heading("## Goal");
        page.line(&prose(goal));
    }
    steps(&mut page, plan);
    let settings = settings(document);
    if !settings.is_empty() {
        page.heading("## Settings");
        page.fence(&settings, "");
    }
    page.list("## Success Criteria", &document.success_criteria);
    context(&mut page, document);
    page.list("## Risks", &document.risks);
    let rejections: Vec<String> = meta
        .rejections
        .iter()
        .map(|rejection| {
            let MarkdownRejection { version, at, by, reason } = rejection;
            format!("version {version}, {at}, {by}: {reason}")
        })
        .collect();
    page.list("## Rejections", &rejections);
    page.text
}

struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A line between blank lines.
    fn heading(&mut self, heading: &str) {
        self.line("");
        self.line(heading);
        self.line("");
    }

    fn list(&mut self, heading: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.heading(heading);
        for item in items {
            self.line(&format!("- {}", escape(&printable(item))));
        }
    }

    /// JSON in a fence that nothing inside can close.
    fn fence(&mut self, value: &impl Serialize, indent: &str) {
        let json = serde_json::to_string_pretty(value).expect("plans have only string keys");
        let longest = json.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat((longest + 1).max(3));
        self.line(&format!("{indent}{fence}json"));
        for line in json.lines() {
            self.line(&format!("{indent}{line}"));
        }
        self.line(&format!("{indent}{fence}"));
    }

    fn key(&mut self, key: &str, value: Option<&str>) {
        match value {
            Some(value) => self.line(&format!("{key}: {}", yaml(value))),
            None => self.line(&format!("{key}:")),
        }
    }
}

fn frontmatter(page: &mut Page, plan: &Plan, meta: &MarkdownMeta) {
    let document = plan.document();
    let instant = |at: Option<Timestamp>| at.map(|at| at.to_string());
    page.line("---");
    page.key("id", Some(plan.id().as_str()));
    page.key("title", document.title.as_deref());
    page.key("status", Some(&meta.status));
    page.line(&format!("version: {}", meta.version));
    page.key("created_at", Some(&meta.created_at.to_string()));
    page.key("updated_at", Some(&meta.updated_at.to_string()));
    page.key("planner_model", document.planner_model.as_deref());
    if document.tools_required.is_empty() {
        page.line("tools_required: []");
    } else {
        page.line("tools_required:");
        for tool in &document.tools_required {
            page.line(&format!("  - {}", yaml(tool)));
        }
    }
    page.key("executor_model", document.executor_model.as_deref());
    page.key("execution_session", meta.execution_session.as_deref());
    page.key("execution_started_at", instant(meta.execution_started_at).as_deref());
    page.key("execution_ended_at", instant(meta.execution_ended_at).as_deref());
    page.key("result_summary", meta.result_summary.as_deref());
    page.line("---");
}

fn steps(page: &mut Page, plan: &Plan) {
    page.line("");
    page.line("## Steps");
    for (number, ix) in plan.indices().enumerate() {
        let step = plan.step(ix);
        let title = step.title.as_deref().unwrap_or_default();
        let label = escape(&printable(step.action_label()));
        page.heading(&format!("{}. {} ({label})", number + 1, escape(&printable(title))));
        page.fence(&step_fields(step, title), "   ");
    }
}

/// What the line above does not say. The title is repeated only where the line had to change it.
fn step_fields(step: &Step, title: &str) -> Step {
    let mut fields = step.clone();
    if printable(title) == title {
        fields.title = None;
    }
    fields
}

/// The fields that have no section of their own.
fn settings(document: &Document) -> Map<String, Value> {
    let whole = json!(document);
    let keys = ["inputs", "variables", "limits", "estimatedDuration"];
    keys.into_iter().filter_map(|key| Some((key.to_owned(), whole.get(key)?.clone()))).collect()
}

fn context(page: &mut Page, document: &Document) {
    let context = &document.context;
    if context.tool_outputs.is_empty() && context.notes.is_none() && context.artifacts.is_empty() {
        return;
    }
    page.line("");
    page.line("## Context");
    if !context.tool_outputs.is_empty() {
        page.heading("### Tool Outputs");
        page.fence(&context.tool_outputs, "");
    }
    if let Some(notes) = &context.notes {
        page.heading("### Notes");
        page.line(&prose(notes));
    }
    page.list("### Artifacts", &context.artifacts);
}

/// A YAML scalar in double quotes, whatever is in it.
fn yaml(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if c.is_control() || is_invisible(c) => {
                write!(quoted, "\\U{:08X}", u32::from(c)).expect("writing to a string cannot fail");
            }
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Text within a line: nothing in it is Markdown.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '~') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Several lines of text: paragraphs and lists stay readable, but no line opens a section, a fence, a rule or a tag.
fn prose(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = printable(line);
        let start = line.trim_start();
        let opens =
            ["#", "```", "~~~", "---", "===", "***", "___"].iter().any(|mark| start.starts_with(mark));
        let escaped = start.replace('<', "\\<").replace("](", "]\\(").replace("![", "\\![");
        let indent = &line[..line.len() - start.len()];
        // Four spaces would make a code block of it.
        let indent = &indent[..indent.len().min(3)];
        if opens { format!("{indent}\\{escaped}") } else { format!("{indent}{escaped}") }
    });
    lines.collect::<Vec<_>>().join("\n")
}
