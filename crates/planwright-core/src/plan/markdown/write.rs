//! Writes a plan as Markdown.
//!
//! Everything in it is untrusted text. Scalars of the frontmatter are always quoted, prose is
//! escaped so that it cannot open a section or a tag, and fences are longer than anything inside
//! them.

use super::exact::{write_exact_items, write_list, write_prose};
use super::fence::write_fence;
use super::frontmatter::{PLAN_KEYS, quote_scalar};
use super::section;
use super::step::{Written, write_step};
use super::stored::write_stored;
use super::text::escape_line;
use crate::plan::Document;
use crate::time::Timestamp;
use serde_json::{Map, Value, json};

/// Facts about a plan that its journal has and its document does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownMeta {
    /// Status of the plan.
    pub status: String,
    /// Current version.
    pub version: u64,
    /// Time of the first version.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Id of the last run.
    pub execution_session: Option<String>,
    /// Start of the last run.
    pub execution_started_at: Option<Timestamp>,
    /// End of the last run.
    pub execution_ended_at: Option<Timestamp>,
    /// Summary of the last run.
    pub result_summary: Option<String>,
    /// Rejections, oldest first.
    pub rejections: Vec<MarkdownRejection>,
}

/// One time the plan was sent back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownRejection {
    /// The version that was rejected.
    pub version: u64,
    /// Time of the rejection.
    pub at: Timestamp,
    /// The principal that rejected it.
    pub by: String,
    /// The reason it gave.
    pub reason: String,
}

/// Writes the plan as Markdown. The document is canonical: its steps have ids.
pub fn to_markdown(document: &Document, meta: &MarkdownMeta) -> String {
    let mut page = String::new();
    frontmatter(&mut page, document, meta);
    if let Some(goal) = &document.goal {
        heading(&mut page, "##", section::GOAL);
        write_prose(&mut page, goal);
    }
    steps(&mut page, document);
    let settings = settings(document);
    if !settings.is_empty() {
        heading(&mut page, "##", section::SETTINGS);
        write_fence(&mut page, &settings, "json", "");
    }
    list(
        &mut page,
        "##",
        section::SUCCESS_CRITERIA,
        &document.success_criteria,
    );
    context(&mut page, document);
    list(&mut page, "##", section::RISKS, &document.risks);
    rejections(&mut page, &meta.rejections);
    page
}

fn add(page: &mut String, line: &str) {
    page.push_str(line);
    page.push('\n');
}

/// A heading between blank lines.
fn heading(page: &mut String, mark: &str, name: &str) {
    add(page, &format!("\n{mark} {name}\n"));
}

fn list(page: &mut String, mark: &str, name: &str, items: &[String]) {
    if !items.is_empty() {
        heading(page, mark, name);
        write_list(page, items);
    }
}

fn frontmatter(page: &mut String, document: &Document, meta: &MarkdownMeta) {
    let text = |text: Option<&str>| text.map(quote_scalar);
    let instant = |at: Option<Timestamp>| at.map(|at| quote_scalar(&at.to_string()));
    page.push_str("---\n");
    for key in PLAN_KEYS {
        let value = match key {
            "id" => document.id.as_ref().map(|id| quote_scalar(id.as_str())),
            "title" => text(document.title.as_deref()),
            "status" => Some(quote_scalar(&meta.status)),
            "version" => Some(meta.version.to_string()),
            "created_at" => instant(Some(meta.created_at)),
            "updated_at" => instant(Some(meta.updated_at)),
            "planner_model" => text(document.planner_model.as_deref()),
            "tools_required" => Some(tools(&document.tools_required)),
            "executor_model" => text(document.executor_model.as_deref()),
            "execution_session" => text(meta.execution_session.as_deref()),
            "execution_started_at" => instant(meta.execution_started_at),
            "execution_ended_at" => instant(meta.execution_ended_at),
            "result_summary" => text(meta.result_summary.as_deref()),
            _ => unreachable!("every key of a plan is written"),
        };
        match value {
            None => add(page, &format!("{key}:")),
            Some(list) if list.starts_with('\n') => add(page, &format!("{key}:{list}")),
            Some(value) => add(page, &format!("{key}: {value}")),
        }
    }
    page.push_str("---\n");
}

fn tools(tools: &[String]) -> String {
    if tools.is_empty() {
        return "[]".to_owned();
    }
    tools
        .iter()
        .map(|tool| format!("\n  - {}", quote_scalar(tool)))
        .collect()
}

fn steps(page: &mut String, document: &Document) {
    add(page, &format!("\n## {}", section::STEPS));
    for (index, step) in document.steps.iter().enumerate() {
        let Written { line, block } = write_step(step);
        let mark = format!("{}. ", index + 1);
        add(page, &format!("\n{mark}{line}\n"));
        // The block belongs to the item only if it is indented as far as its text.
        write_fence(page, &block, "json", &" ".repeat(mark.len()));
    }
}

/// The fields that have no place of their own.
fn settings(document: &Document) -> Map<String, Value> {
    let Value::Object(mut settings) = json!(document) else {
        unreachable!("a document is an object")
    };
    let own_place = [
        "id",
        "title",
        "goal",
        "steps",
        "toolsRequired",
        "successCriteria",
        "risks",
        "plannerModel",
        "executorModel",
    ];
    for key in own_place {
        settings.shift_remove(key);
    }
    if let Some(Value::Object(context)) = settings.get_mut("context") {
        for key in ["toolOutputs", "notes", "artifacts"] {
            context.shift_remove(key);
        }
        if let Some(Value::Object(stored)) = context.get_mut("stored") {
            stored.retain(|name, _| {
                document
                    .context
                    .stored
                    .get(name)
                    .is_some_and(|artifact| write_stored(name, artifact).is_none())
            });
        }
        context.retain(|_, value| value.as_object().is_none_or(|part| !part.is_empty()));
        if context.is_empty() {
            settings.shift_remove("context");
        }
    }
    settings
}

fn context(page: &mut String, document: &Document) {
    let context = &document.context;
    let stored: Vec<String> = context
        .stored
        .iter()
        .filter_map(|(name, artifact)| write_stored(name, artifact))
        .collect();
    let has_artifacts = !context.artifacts.is_empty() || !stored.is_empty();
    if context.tool_outputs.is_empty() && context.notes.is_none() && !has_artifacts {
        return;
    }
    add(page, &format!("\n## {}", section::CONTEXT));
    if !context.tool_outputs.is_empty() {
        heading(page, "###", section::TOOL_OUTPUTS);
        write_fence(page, &context.tool_outputs, "json", "");
    }
    if let Some(notes) = &context.notes {
        heading(page, "###", section::NOTES);
        write_prose(page, notes);
    }
    if has_artifacts {
        heading(page, "###", section::ARTIFACTS);
        for line in &stored {
            add(page, &format!("- {line}"));
        }
        for artifact in &context.artifacts {
            add(page, format!("- {}", escape_line(artifact)).trim_end());
        }
        write_exact_items(page, &context.artifacts);
    }
}

fn rejections(page: &mut String, rejections: &[MarkdownRejection]) {
    if rejections.is_empty() {
        return;
    }
    heading(page, "##", section::REJECTIONS);
    for MarkdownRejection {
        version,
        at,
        by,
        reason,
    } in rejections
    {
        let line = format!("version {version}, {at}, {by}: {reason}");
        add(page, &format!("- {}", escape_line(&line)));
    }
}
