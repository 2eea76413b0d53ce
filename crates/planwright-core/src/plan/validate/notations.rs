//! References in the notation of another program: they are text here, and would be sent as text.

use crate::json::pointer_token;
use crate::plan::compile::Compiled;
use crate::plan::finding::Findings;
use crate::plan::reference::Meaning;
use crate::plan::{Code, Finding, Step};
use serde_json::Value;

pub(super) fn check(compiled: &Compiled, findings: &mut Findings) {
    for (index, step) in compiled.document.steps.iter().enumerate() {
        if step.skip {
            continue;
        }
        let mut checker = Checker {
            compiled,
            step,
            findings,
        };
        checker.step(&format!("/steps/{index}"));
    }
}

struct Checker<'a> {
    compiled: &'a Compiled,
    step: &'a Step,
    findings: &'a mut Findings,
}

impl Checker<'_> {
    fn step(&mut self, at: &str) {
        let step = self.step;
        for (name, value) in &step.args {
            self.value(value, format!("{at}/args/{}", pointer_token(name)));
        }
        if let Some(undo) = &step.undo {
            for (name, value) in &undo.args {
                self.value(value, format!("{at}/undo/args/{}", pointer_token(name)));
            }
        }
        if let Some(think) = &step.think {
            self.text(&think.prompt, &format!("{at}/think/prompt"));
        }
        if let Some(agent) = &step.agent {
            self.text(&agent.instruction, &format!("{at}/agent/instruction"));
        }
        if let Some(list) = &step.for_each {
            self.value(list, format!("{at}/forEach"));
        }
    }

    fn value(&mut self, value: &Value, at: String) {
        match value {
            Value::String(text) => self.text(text, &at),
            Value::Array(list) => {
                for (index, element) in list.iter().enumerate() {
                    self.value(element, format!("{at}/{index}"));
                }
            }
            Value::Object(map) => {
                for (key, element) in map {
                    self.value(element, format!("{at}/{}", pointer_token(key)));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Reports the first of them in a text.
    fn text(&mut self, text: &str, at: &str) {
        let Some((written, meant)) = self.find(text) else {
            return;
        };
        let message = format!("`{written}` is sent as it is written: it is no reference here");
        let finding = Finding::new(Code::ForeignReference, at, message);
        let finding = finding.of_step(self.step.id.as_ref());
        self.findings
            .add(finding.suggest(Some(format!("write `{meant}`"))));
    }

    fn find(&self, text: &str) -> Option<(String, String)> {
        let notations = [("{{", "}}"), ("<", ">"), ("$", "")];
        notations
            .into_iter()
            .find_map(|(open, close)| self.find_in(text, open, close))
    }

    fn find_in(&self, text: &str, open: &str, close: &str) -> Option<(String, String)> {
        let mut places = text.match_indices(open);
        places.find_map(|(start, _)| {
            let rest = &text[start + open.len()..];
            let inside = match close {
                // Up to where the path ends.
                "" => rest.split(|c: char| !is_of_path(c)).next()?,
                close => rest.split_once(close)?.0,
            };
            let written = format!("{open}{inside}{close}");
            let inside = inside.trim();
            let path = inside.strip_prefix("steps.").unwrap_or(inside);
            let (name, fields) = match path.split_once('.') {
                Some((name, fields)) => (name, Some(fields)),
                // A tag or a shell variable may be called like a step.
                None if open != "{{" => return None,
                None => (path, None),
            };
            if !inside.chars().all(is_of_path) || !self.is_value(name) {
                return None;
            }
            let fields = fields.filter(|fields| !OF_OTHERS.contains(fields));
            let meant = match fields {
                Some(fields) => format!("${{{name}.{fields}}}"),
                None => format!("${{{name}}}"),
            };
            Some((written, meant))
        })
    }

    fn is_value(&self, name: &str) -> bool {
        let meaning = self.compiled.names.meaning(name, &self.compiled.by_id);
        !name.is_empty() && matches!(meaning, Meaning::Step(_) | Meaning::OneOfSeveral)
    }
}

/// The name that other programs have for the value of a step.
const OF_OTHERS: [&str; 4] = ["output", "result", "outputs", "value"];

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']')
}
