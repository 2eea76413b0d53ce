//! A step as a line and a block: `1. Title (tool)`, and JSON with the rest.
//!
//! The line says the title and what is done: the tool, `tool: operation` of an agent, or the kind
//! of action. The block holds what the line does not say. A line without a block is an instruction
//! for an agent.

use super::text::{escape_label, escape_line, read_line, shown_line, unescape};
use crate::plan::{Action, Step};
use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// A step as it is written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) line: String,
    pub(super) block: Object,
}

/// The line and the block of a step.
pub(super) fn write_step(step: &Step) -> Written {
    let title = step.title.as_deref().map(escape_line).unwrap_or_default();
    let label = escape_label(&label(step));
    let line = format!("{title} ({label})").trim_start().to_owned();
    let Value::Object(whole) = json!(step) else {
        unreachable!("a step is an object")
    };
    let block = without_what_the_line_says(whole.clone());
    // What the line cannot say, such as a title with a line break, stays in the block.
    let is_enough = read_step(&line, Some(block.clone())).value == whole;
    Written {
        line,
        block: if is_enough { block } else { whole },
    }
}

/// Returns the text in parentheses at the end of the line.
fn label(step: &Step) -> String {
    if let Some(Action::Agent(agent)) = step.action()
        && let (Some(tool), Some(operation)) = (&agent.tool, &agent.operation)
    {
        return format!("{tool}: {operation}");
    }
    step.action_label().to_owned()
}

fn without_what_the_line_says(mut step: Object) -> Object {
    let title = step.remove("title");
    step.remove("tool");
    if let Some(Value::Object(agent)) = step.get_mut("agent") {
        if agent.get("instruction") == title.as_ref() {
            agent.remove("instruction");
        }
        if agent.contains_key("tool") && agent.contains_key("operation") {
            agent.remove("tool");
            agent.remove("operation");
        }
        if agent.is_empty() {
            step.remove("agent");
        }
    }
    step
}

/// A step as it was read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) value: Object,
    /// Keys of the block that the line contradicts. The line was taken.
    pub(super) contradicted: Vec<&'static str>,
}

/// Reads a line and its block together.
pub(super) fn read_step(raw: &str, block: Option<Object>) -> Read {
    let Some(value) = block else {
        return Read {
            value: instruction(raw),
            contradicted: Vec::new(),
        };
    };
    let mut read = Read {
        value,
        contradicted: Vec::new(),
    };
    let (title, label) = split_label(raw);
    let title = if read.takes_label(label.as_deref()) {
        title
    } else {
        read_line(raw)
    };
    read.take_title(&title);
    read.take_label(&title, label.as_deref());
    read
}

impl Read {
    /// Returns whether what stands in parentheses is the action, or the end of the title.
    fn takes_label(&self, label: Option<&str>) -> bool {
        let kind = ["think", "input", "plan"]
            .into_iter()
            .find(|kind| self.value.contains_key(*kind));
        match kind {
            Some(kind) if !self.value.contains_key("tool") => label == Some(kind),
            _ => label.is_some(),
        }
    }

    fn take_title(&mut self, title: &str) {
        match self.value.get("title") {
            Some(Value::String(exact)) if title.is_empty() || shown_line(exact) == title => {}
            Some(_) => {
                self.value.insert("title".to_owned(), title.into());
                self.contradicted.push("title");
            }
            None if title.is_empty() => {}
            None => {
                self.value.insert("title".to_owned(), title.into());
            }
        }
    }

    fn take_label(&mut self, title: &str, label: Option<&str>) {
        if let Some(tool) = self.value.get("tool") {
            let is_same = |label| tool.as_str().is_some_and(|tool| shown_line(tool) == label);
            if let Some(label) = label.filter(|label| !is_same(*label)) {
                self.value.insert("tool".to_owned(), label.into());
                self.contradicted.push("tool");
            }
        } else if self.value.contains_key("agent") {
            self.complete_agent(title, label);
        } else if !["think", "input", "plan"]
            .iter()
            .any(|kind| self.value.contains_key(*kind))
        {
            self.take_action(title, label);
        }
    }

    /// A block without an action: the line says it all.
    fn take_action(&mut self, title: &str, label: Option<&str>) {
        let Some(label) = label.filter(|label| *label != "?") else {
            return;
        };
        if !self.value.contains_key("args") && (label == "agent" || operation(label).is_some()) {
            self.value.insert("agent".to_owned(), json!({}));
            self.complete_agent(title, Some(label));
        } else {
            self.value.insert("tool".to_owned(), label.into());
        }
    }

    /// The title is the instruction, and the parentheses name the tool, unless the block says
    /// otherwise.
    fn complete_agent(&mut self, title: &str, label: Option<&str>) {
        let exact_title = self.value.get("title").cloned();
        let Some(Value::Object(agent)) = self.value.get_mut("agent") else {
            return;
        };
        if !agent.contains_key("instruction") {
            agent.insert(
                "instruction".to_owned(),
                exact_title.unwrap_or_else(|| title.into()),
            );
        }
        let Some((tool, operation)) = label.and_then(operation) else {
            return;
        };
        let said = |key: &str| agent.get(key).and_then(Value::as_str).map(str::to_owned);
        let before = said("tool").zip(said("operation"));
        if before.as_ref().is_some_and(|(tool, operation)| {
            Some(shown_line(&format!("{tool}: {operation}")).as_str()) == label
        }) {
            return;
        }
        if before.is_some() {
            self.contradicted.push("agent");
        }
        agent.insert("tool".to_owned(), tool.into());
        agent.insert("operation".to_owned(), operation.into());
    }
}

/// A line without a block. The list it stands in says the order, so its id and what it waits for
/// come later.
fn instruction(raw: &str) -> Object {
    let (title, label) = split_label(raw);
    let named = label.as_deref().and_then(operation);
    let whole = read_line(raw);
    let mut step = Object::new();
    let mut agent = Object::new();
    let said = match named {
        Some((tool, operation)) => {
            agent.insert("tool".to_owned(), tool.into());
            agent.insert("operation".to_owned(), operation.into());
            title
        }
        None if label.as_deref() == Some("agent") => title,
        None => whole,
    };
    agent.insert("instruction".to_owned(), said.as_str().into());
    step.insert("title".to_owned(), said.into());
    step.insert("agent".to_owned(), Value::Object(agent));
    step
}

/// `tool: operation`. A tool's name has no spaces, so that `(see: the other page)` is one and `(as
/// I said: no)` is not.
fn operation(label: &str) -> Option<(&str, &str)> {
    let (tool, operation) = label.split_once(": ")?;
    let is_name = !tool.is_empty() && !tool.contains(char::is_whitespace);
    (is_name && !operation.is_empty()).then_some((tool, operation))
}

/// The title, and what stands in parentheses at the end of the line.
fn split_label(raw: &str) -> (String, Option<String>) {
    let raw = raw.trim_end();
    let whole = || (read_line(raw), None);
    let unescaped = |at: usize| {
        let backslashes = raw[..at]
            .bytes()
            .rev()
            .take_while(|byte| *byte == b'\\')
            .count();
        backslashes % 2 == 0
    };
    if !raw.ends_with(')') || !unescaped(raw.len() - 1) {
        return whole();
    }
    let Some((open, _)) = raw.match_indices('(').rev().find(|(at, _)| unescaped(*at)) else {
        return whole();
    };
    let before = &raw[..open];
    if !before.is_empty() && !before.ends_with(char::is_whitespace) {
        return whole();
    }
    let label = unescape(raw[open + 1..raw.len() - 1].trim());
    (read_line(before), Some(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(value: Value) -> Step {
        serde_json::from_value(value).unwrap()
    }

    fn written(value: Value) -> (String, Value) {
        let Written { line, block } = write_step(&step(value.clone()));
        let read = read_step(&line, Some(block.clone()));
        assert_eq!(Value::Object(read.value), value, "{line}");
        assert!(read.contradicted.is_empty(), "{line}");
        (line, Value::Object(block))
    }

    #[test]
    fn the_line_says_the_title_and_the_tool() {
        let (line, block) =
            written(json!({"id": "a", "title": "Look (twice)", "tool": "local.list_dir"}));
        assert_eq!(
            (line.as_str(), block),
            ("Look (twice) (local.list_dir)", json!({"id": "a"}))
        );
    }

    #[test]
    fn an_agents_line_says_its_tool_and_its_operation() {
        let agent = json!({"instruction": "Fetch it", "tool": "odoo-toolbox", "operation": "read"});
        let (line, block) = written(json!({"id": "1", "title": "Fetch it", "agent": agent}));
        assert_eq!(
            (line.as_str(), block),
            ("Fetch it (odoo-toolbox: read)", json!({"id": "1"}))
        );
        assert_eq!(
            Value::Object(read_step(&line, None).value),
            json!({"title": "Fetch it", "agent": agent})
        );
    }

    #[test]
    fn what_a_line_cannot_say_stays_in_the_block() {
        for title in ["a\nb", " a", "a\u{200b}", "", "\u{0}"] {
            let (_, block) = written(json!({"id": "a", "title": title, "tool": "t"}));
            assert_eq!(block["title"], title);
        }
        for tool in ["a: b", "agent", "?", "a\u{202e}", " x "] {
            let (_, block) = written(json!({"id": "a", "title": "t", "tool": tool}));
            assert_eq!(block["tool"], tool);
        }
        written(json!({"id": "a", "tool": "x) (y"}));
        written(json!({"id": "a", "title": "x (y)", "think": {"prompt": "p"}}));
        written(json!({"id": "a", "title": "x (y)"}));
        written(
            json!({"id": "a", "title": "x", "agent": {"instruction": "x", "tool": "a b: c", "operation": "d"}}),
        );
        written(json!({"id": "a", "title": "x", "agent": {"instruction": "y", "tool": "t"}}));
    }

    #[test]
    fn an_edit_of_the_line_is_taken() {
        let block = json!({"id": "a", "title": "old\nname", "tool": "odd\u{200b}"});
        let block = block.as_object().cloned();
        let read = read_step("new name (local.other)", block.clone());
        assert_eq!(
            Value::Object(read.value),
            json!({"id": "a", "title": "new name", "tool": "local.other"})
        );
        assert_eq!(read.contradicted, ["title", "tool"]);
        let read = read_step("old name (odd)", block);
        assert_eq!(read.value["title"], "old\nname");
    }

    #[test]
    fn parentheses_that_name_no_operation_belong_to_the_instruction() {
        let read = read_step("Call Bob (urgent)", None);
        assert_eq!(read.value["agent"]["instruction"], "Call Bob (urgent)");
        let read = read_step("Call Bob (as I said: no)", None);
        assert_eq!(read.value["title"], "Call Bob (as I said: no)");
    }
}
