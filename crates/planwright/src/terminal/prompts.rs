//! Asking a person at the terminal for values that a step or a tool's server wants.
//!
//! The texts are those of plans and servers: they are shown, and nothing in them is obeyed.

use crate::exit::Failure;
use crate::terminal::printer::{BOLD, DIM, Printer, block, line};
use crate::workspace::app::App;
use planwright_core::json::parse_strict;
use planwright_core::plan::StepIx;
use planwright_core::run::{Asked, Question, Reply, Run, StepState};
use serde_json::{Map, Value};
use std::io::{self, BufRead as _, Read as _, Write as _};

/// The longest line that is read: longer answers are given with `--value`.
const MAX_LINE: u64 = 64 << 10;
/// The number of times one value is asked for again before the question is left for later.
const MAX_TRIES: usize = 3;

/// What a step waits for, if it waits for values.
pub(crate) fn pending_question(run: &Run, ix: StepIx) -> Option<&Asked> {
    run.step(ix).question()
}

/// Who asks: the step itself, or the server of its tool.
pub(crate) fn question_origin(app: &App, run: &Run, ix: StepIx) -> String {
    let id = run.step_id(ix);
    if let StepState::AwaitingInput { attempt: None, .. } = run.step(ix) {
        return format!("step {id} asks");
    }
    let tool = run.definition(ix).action_label();
    match app.engine.catalog().resolve(tool) {
        Ok(tool) => {
            format!(
                "server {} asks, for step {id} [{}]",
                line(&tool.name.server),
                line(&tool.name.to_string())
            )
        }
        Err(_) => format!("the tool of step {id} asks [{}]", line(tool)),
    }
}

/// Asks every question. Nothing means that the person wants to answer later.
pub(crate) fn ask_questions(
    printer: Printer,
    origin: &str,
    asked: &Asked,
) -> Result<Option<Vec<Reply>>, Failure> {
    printer.talk(&format!(
        "{}  (Ctrl-D leaves it for later)",
        printer.err(BOLD, &line(origin))
    ));
    let mut replies = Vec::with_capacity(asked.questions.len());
    for question in &asked.questions {
        match ask_question(printer, question)? {
            Some(reply) => replies.push(reply),
            None => return Ok(None),
        }
    }
    Ok(Some(replies))
}

fn ask_question(printer: Printer, question: &Question) -> Result<Option<Reply>, Failure> {
    if !question.message.is_empty() {
        printer.talk(&block(&question.message));
    }
    if let Some(url) = &question.url {
        return ask_page(printer, url);
    }
    let values = match flat_fields(&question.schema) {
        Some(fields) => ask_fields(printer, &fields)?,
        None => ask_json(printer, &question.schema)?,
    };
    Ok(values.map(Reply::Values))
}

/// The page is opened by the person, never by the program.
fn ask_page(printer: Printer, url: &str) -> Result<Option<Reply>, Failure> {
    printer.talk(&format!("open this page if you trust it: {}", line(url)));
    let answer = read_line(printer, "Done? [y = done, n = decline, empty = later]")?;
    Ok(match answer.as_deref().map(str::trim) {
        Some("y" | "yes") => Some(Reply::Values(Map::new())),
        Some("n" | "no") => Some(Reply::Decline),
        Some(_) | None => None,
    })
}

/// One value that is asked for on a line of its own.
#[derive(Debug, PartialEq)]
struct Field<'a> {
    name: &'a str,
    kind: &'a str,
    schema: &'a Value,
    required: bool,
}

/// The fields of a flat object, or nothing if the schema is anything else.
fn flat_fields(schema: &Value) -> Option<Vec<Field<'_>>> {
    let properties = schema.get("properties")?.as_object()?;
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
    properties
        .iter()
        .map(|(name, schema)| {
            let kind = schema.get("type").and_then(Value::as_str);
            let texts = schema.get("enum").and_then(Value::as_array);
            let only_texts = texts.is_some_and(|texts| texts.iter().all(Value::is_string));
            let kind = kind.or_else(|| only_texts.then_some("string"))?;
            let simple = matches!(kind, "string" | "number" | "integer" | "boolean");
            simple.then(|| Field {
                name,
                kind,
                schema,
                required: is_required(name),
            })
        })
        .collect()
}

fn ask_fields(
    printer: Printer,
    fields: &[Field<'_>],
) -> Result<Option<Map<String, Value>>, Failure> {
    let mut values = Map::new();
    for field in fields {
        if let Some(text) = field.schema.get("description").and_then(Value::as_str) {
            printer.talk(&printer.err(DIM, &line(text)));
        }
        let mut tries = 0;
        let value = loop {
            let Some(text) = read_line(printer, &field_prompt(field))? else {
                return Ok(None);
            };
            match read_field(field, &text) {
                Ok(value) => break value,
                Err(problem) => printer.talk(&problem),
            }
            tries += 1;
            if tries == MAX_TRIES {
                return Ok(None);
            }
        };
        if let Some(value) = value {
            values.insert(field.name.to_owned(), value);
        }
    }
    Ok(Some(values))
}

fn field_prompt(field: &Field<'_>) -> String {
    let mut words = vec![field.kind.to_owned()];
    if let Some(choices) = field.schema.get("enum").and_then(Value::as_array) {
        let shown: Vec<String> = choices.iter().map(format_value).collect();
        words.push(format!("one of {}", shown.join(", ")));
    }
    match field.schema.get("default") {
        Some(default) => words.push(format!("empty for {}", format_value(default))),
        None if !field.required => words.push("may be empty".to_owned()),
        None => {}
    }
    format!("{} ({}):", line(field.name), words.join("; "))
}

fn format_value(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| line(&value.to_string()), line)
}

/// The value of a line; nothing if it is left out.
fn read_field(field: &Field<'_>, text: &str) -> Result<Option<Value>, String> {
    if text.trim().is_empty() {
        return match field.schema.get("default") {
            Some(default) => Ok(Some(default.clone())),
            None if !field.required => Ok(None),
            None => Err("a value is needed here".to_owned()),
        };
    }
    let value = match field.kind {
        "string" => Value::String(text.to_owned()),
        "boolean" => match text.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => return Err("say yes or no".to_owned()),
        },
        _ => match parse_strict(text.trim().as_bytes()) {
            Ok(number @ Value::Number(_)) => number,
            Ok(_) | Err(_) => return Err("that is not a number".to_owned()),
        },
    };
    let choices = field.schema.get("enum").and_then(Value::as_array);
    if choices.is_some_and(|choices| !choices.contains(&value)) {
        return Err("that is none of the choices".to_owned());
    }
    Ok(Some(value))
}

/// Asks for JSON, which a person can write for every schema.
fn ask_json(printer: Printer, schema: &Value) -> Result<Option<Map<String, Value>>, Failure> {
    printer.talk(&format!("schema: {}", line(&schema.to_string())));
    for _ in 0..MAX_TRIES {
        let Some(text) = read_line(printer, "JSON:")? else {
            return Ok(None);
        };
        match parse_strict(text.as_bytes()) {
            Ok(value) => return Ok(Some(as_values(value))),
            Err(error) => printer.talk(&error.to_string()),
        }
    }
    Ok(None)
}

/// A value that is no object is given under the name `value`, as it is asked for.
pub(crate) fn as_values(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(values) => values,
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => Map::from_iter([("value".to_owned(), other)]),
    }
}

/// One line without its end; nothing at the end of the input.
fn read_line(printer: Printer, prompt: &str) -> Result<Option<String>, Failure> {
    let failed = |error: io::Error| Failure::refused(format!("cannot ask: {error}"));
    let mut err = io::stderr().lock();
    write!(err, "{} ", printer.err(BOLD, prompt))
        .and_then(|()| err.flush())
        .map_err(failed)?;
    drop(err);
    let mut text = String::new();
    let read = io::stdin()
        .lock()
        .take(MAX_LINE)
        .read_line(&mut text)
        .map_err(failed)?;
    if read == 0 {
        printer.talk("");
        return Ok(None);
    }
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_flat_object_is_asked_field_by_field_and_anything_else_as_json() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string"}, "b": {"type": "integer", "default": 3}, "c": {"enum": ["x", "y"]},
        }});
        let fields = flat_fields(&schema).unwrap();
        let asked: Vec<String> = fields.iter().map(field_prompt).collect();
        assert_eq!(
            asked,
            [
                "a (string):",
                "b (integer; empty for 3):",
                "c (string; one of x, y; may be empty):"
            ]
        );
        for other in [
            json!({"type": "object", "properties": {"a": {"type": "object"}}}),
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            json!({"type": "object"}),
            json!(true),
        ] {
            assert_eq!(flat_fields(&other), None, "{other}");
        }
    }

    #[test]
    fn a_line_becomes_the_value_its_field_wants() {
        let schema = json!({"required": ["s", "n"], "properties": {
            "s": {"type": "string"}, "n": {"type": "number"}, "b": {"type": "boolean", "default": true},
            "e": {"type": "string", "enum": ["x", "y"]},
        }});
        let fields = flat_fields(&schema).unwrap();
        let read = |at: usize, text: &str| read_field(&fields[at], text);
        assert_eq!(read(0, "5"), Ok(Some(json!("5"))));
        assert_eq!(read(1, " 2.5 "), Ok(Some(json!(2.5))));
        assert_eq!(read(2, ""), Ok(Some(json!(true))));
        assert_eq!(read(2, "no"), Ok(Some(json!(false))));
        assert_eq!(read(3, ""), Ok(None));
        assert_eq!(read(3, "y"), Ok(Some(json!("y"))));
        for (at, text) in [(0, ""), (1, "many"), (1, "\"5\""), (2, "perhaps"), (3, "z")] {
            assert!(read(at, text).is_err(), "{text:?}");
        }
    }
}
