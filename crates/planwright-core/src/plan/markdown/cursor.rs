//! `*.plan.md` files: a name, an overview and todos in the frontmatter, free text below.
//!
//! Every open todo is an instruction for an agent. Todos that are completed or cancelled are left
//! out. Without declared dependencies they are done in their order.

use super::blocks::Blocks;
use super::frontmatter::{CURSOR_KEYS, Frontmatter, Todo, quote_scalar};
use super::read::Reading;
use super::sections::refuse;
use super::tasks::left_out;
use super::text::{escape_prose, read_prose};
use crate::id::StepId;
use crate::plan::{Bounds, Document, ReadPlanError};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn read_cursor(
    frontmatter: Frontmatter,
    keys: &[String],
    blocks: &Blocks<'_>,
    bounds: &Bounds,
) -> Result<Reading, ReadPlanError> {
    let todos = frontmatter.todos.unwrap_or_default();
    let all = todos.len();
    let mut open = Vec::with_capacity(all);
    for todo in todos {
        if is_open(&todo)? {
            open.push(todo);
        }
    }
    let mut notices = left_out(all - open.len());
    let known = |key: &&String| !CURSOR_KEYS.contains(&key.as_str());
    notices.extend(
        keys.iter()
            .filter(known)
            .map(|key| format!("the key `{key}` of the frontmatter was left out")),
    );
    let ids = ids(&open);
    let declares = open.iter().any(|todo| todo.dependencies.is_some());
    let places: BTreeMap<&str, &String> = open
        .iter()
        .zip(&ids)
        .filter_map(|(todo, id)| Some((todo.id.as_deref()?, id)))
        .rev()
        .collect();
    let steps: Vec<Value> = open
        .iter()
        .zip(&ids)
        .map(|(todo, id)| step(todo, id, &places))
        .collect();
    let mut plan = json!({ "steps": steps });
    for (key, value) in [("title", frontmatter.name), ("goal", frontmatter.overview)] {
        if let Some(value) = value {
            plan[key] = value.into();
        }
    }
    let body = read_prose(blocks.source);
    if !body.is_empty() {
        plan["context"] = json!({ "notes": body });
    }
    let mut document = Document::from_json(plan, bounds)
        .map_err(|error| refuse(1, error.to_string(), "correct the todos"))?;
    if !declares {
        for index in 0..document.steps.len() {
            document.wait_for_the_one_before(index);
        }
    }
    Ok(Reading { document, notices })
}

fn is_open(todo: &Todo) -> Result<bool, ReadPlanError> {
    match todo.status.as_deref() {
        None | Some("pending" | "in_progress") => Ok(true),
        Some("completed" | "cancelled") => Ok(false),
        Some(other) => {
            let hint = "a todo is pending, in_progress, completed or cancelled";
            Err(refuse(
                2,
                format!("the status `{other}` of a todo is unknown"),
                hint,
            ))
        }
    }
}

/// The ids of the steps: those of the todos where they can be, else the number of the place or the
/// next that is free.
fn ids(todos: &[Todo]) -> Vec<String> {
    let taken: BTreeSet<&str> = todos.iter().filter_map(|todo| todo.id.as_deref()).collect();
    let mut seen = BTreeSet::new();
    let mut next = 1;
    let mut ids = Vec::with_capacity(todos.len());
    for (index, todo) in todos.iter().enumerate() {
        let own = todo
            .id
            .as_deref()
            .filter(|id| id.parse::<StepId>().is_ok() && seen.insert(*id));
        if let Some(own) = own {
            ids.push(own.to_owned());
            continue;
        }
        // The numbers only grow, so that no number is tried twice.
        next = next.max(index + 1);
        while taken.contains(next.to_string().as_str()) {
            next += 1;
        }
        ids.push(next.to_string());
        next += 1;
    }
    ids
}

fn step(todo: &Todo, id: &str, places: &BTreeMap<&str, &String>) -> Value {
    let content = todo.content.trim();
    let title = content.lines().next().unwrap_or_default();
    // What it waits for may be done, and left out, already.
    let dependencies = todo.dependencies.iter().flatten();
    let dependencies: Vec<&&String> = dependencies
        .filter_map(|dependency| places.get(dependency.as_str()))
        .collect();
    json!({ "id": id, "title": title, "agent": { "instruction": content }, "dependsOn": dependencies })
}

/// Writes the plan as a `*.plan.md` file. It says what is to be done, not how: arguments and
/// options are not in it.
pub fn to_cursor(document: &Document, done: &BTreeSet<StepId>) -> String {
    let mut page = String::from("---\n");
    let mut line = |line: &str| {
        page.push_str(line);
        page.push('\n');
    };
    line(&format!(
        "name: {}",
        quote_scalar(document.title.as_deref().unwrap_or_default())
    ));
    line(&format!(
        "overview: {}",
        quote_scalar(document.goal.as_deref().unwrap_or_default())
    ));
    line(if document.steps.is_empty() {
        "todos: []"
    } else {
        "todos:"
    });
    for step in &document.steps {
        let id = step.id.as_ref();
        let is_done = id.is_some_and(|id| done.contains(id));
        line(&format!(
            "  - id: {}",
            quote_scalar(id.map(StepId::as_str).unwrap_or_default())
        ));
        line(&format!(
            "    content: {}",
            quote_scalar(step.title.as_deref().unwrap_or_else(|| step.action_label()))
        ));
        line(&format!(
            "    status: {}",
            if is_done { "completed" } else { "pending" }
        ));
        if !step.depends_on.is_empty() {
            line("    dependencies:");
            for dependency in &step.depends_on {
                line(&format!("      - {}", quote_scalar(dependency.as_str())));
            }
        }
    }
    line("isProject: false");
    line("---");
    if let Some(notes) = &document.context.notes {
        page.push('\n');
        page.push_str(escape_prose(notes).trim_matches('\n'));
        page.push('\n');
    }
    page
}
