//! Lists of tasks: `- [ ] what to do`.
//!
//! Every open task is an instruction for an agent. They are done in the order of the list, the
//! tasks within a task before it. Done ones are left out; the rest of the text becomes the notes.

use super::blocks::{Block, BlockKind, Blocks, Item};
use super::frontmatter::Frontmatter;
use super::read::Reading;
use super::sections::refuse;
use super::text::{read_line, read_prose, unescape};
use crate::plan::{Bounds, Document, ReadPlanError};
use serde_json::{Value, json};

pub(super) fn read_tasks(
    frontmatter: Frontmatter,
    blocks: &Blocks<'_>,
    bounds: &Bounds,
) -> Result<Reading, ReadPlanError> {
    let mut tasks = Tasks::default();
    let mut others = Vec::new();
    let mut title = frontmatter.title;
    for block in &blocks.list {
        match &block.kind {
            BlockKind::List(items) if items.iter().any(is_task) => tasks.take(items),
            BlockKind::Heading(1, text) if title.is_none() => title = Some(unescape(text)),
            BlockKind::Heading(..)
            | BlockKind::Fence(_)
            | BlockKind::List(_)
            | BlockKind::Html
            | BlockKind::Text => others.push(block),
        }
    }
    if tasks.steps.is_empty() && tasks.done == 0 {
        let hint = "write tasks as `- [ ] what to do`, or a section `## Steps` with `1. What to do (tool: operation)`";
        return Err(refuse(1, "there is no task and no step in it", hint));
    }
    let mut plan = json!({ "steps": tasks.steps });
    let texts = [
        ("id", frontmatter.id),
        ("title", title),
        ("plannerModel", frontmatter.planner_model),
    ];
    let more = [
        ("executorModel", frontmatter.executor_model),
        ("notes", notes(&others, blocks)),
    ];
    for (key, value) in texts.into_iter().chain(more) {
        match value {
            Some(value) if key == "notes" => plan["context"] = json!({ "notes": value }),
            Some(value) => plan[key] = value.into(),
            None => {}
        }
    }
    plan["toolsRequired"] = json!(frontmatter.tools_required.unwrap_or_default());
    let mut document = Document::from_json(plan, bounds).map_err(|error| {
        let message = error.to_string();
        refuse(1, message, "shorten or correct the list")
    })?;
    for index in 0..document.steps.len() {
        document.wait_for_the_one_before(index);
    }
    Ok(Reading {
        document,
        notices: left_out(tasks.done),
    })
}

/// Returns a notice about tasks that are done.
pub(super) fn left_out(done: usize) -> Vec<String> {
    match done {
        0 => Vec::new(),
        1 => vec!["1 task is done, so it was left out".to_owned()],
        many => vec![format!("{many} tasks are done, so they were left out")],
    }
}

fn is_task(item: &Item) -> bool {
    item.done.is_some() || item.children.iter().any(is_task)
}

#[derive(Default)]
struct Tasks {
    steps: Vec<Value>,
    done: usize,
}

impl Tasks {
    fn take(&mut self, items: &[Item]) {
        for item in items {
            if item.done == Some(true) {
                // What is within a task that is done is done with it.
                self.done += 1;
                continue;
            }
            let has_tasks = item.children.iter().any(is_task);
            if has_tasks {
                self.take(&item.children);
            }
            // An item without a box among tasks only groups what is below it.
            if item.done.is_none() && has_tasks {
                continue;
            }
            let said = read_line(&item.text);
            let details: Vec<String> = item.rest.iter().map(|(_, text)| read_prose(text)).collect();
            let plain = item
                .children
                .iter()
                .filter(|_| !has_tasks)
                .map(|child| format!("- {}", read_line(&child.text)));
            let fences = item
                .fences
                .iter()
                .map(|fence| fence.content.trim().to_owned());
            let parts = std::iter::once(said.clone())
                .chain(details)
                .chain(plain)
                .chain(fences);
            let instruction = parts.collect::<Vec<_>>().join("\n");
            self.steps
                .push(json!({ "title": said, "agent": { "instruction": instruction } }));
        }
    }
}

/// The text around the tasks, as it is written.
fn notes(others: &[&Block], blocks: &Blocks<'_>) -> Option<String> {
    let says_something = |block: &&&Block| !matches!(block.kind, BlockKind::Heading(..));
    others.iter().find(says_something)?;
    let texts: Vec<&str> = others
        .iter()
        .map(|block| blocks.source[block.range.clone()].trim())
        .collect();
    Some(read_prose(&texts.join("\n\n")))
}
