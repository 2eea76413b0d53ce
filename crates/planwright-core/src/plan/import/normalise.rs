//! Brings a JSON value in one of the dialects into the canonical spelling.

use super::ReadPlanError;
use super::dialect::{self, Aliases};
use crate::json::{pointer_token, with_whole_numbers};
use crate::plan::Code;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

type Object = Map<String, Value>;

/// A plan in the canonical spelling.
pub(super) struct CanonicalPlan {
    pub(super) object: Object,
    /// Instructions that say nothing about their order: each is carried out after the one before
    /// it, as in a list that people write.
    pub(super) in_order: Vec<usize>,
}

/// The canonical object of a plan, unwrapped from its envelope.
pub(super) fn plan(value: Value) -> Result<CanonicalPlan, ReadPlanError> {
    let (object, at) = unwrap(value)?;
    let mut plan = rename(object, dialect::PLAN, &at)?;
    for key in dialect::PLAN_RUNTIME {
        plan.remove(*key);
    }
    if let Some(context) = plan.get_mut("context") {
        context_object(context, &format!("{at}/context"))?;
        no_lists(
            context.as_object(),
            &["toolOutputs", "template"],
            &format!("{at}/context"),
        )?;
    }
    no_lists(
        Some(&plan),
        &["context", "limits", "variables", "outputs"],
        &at,
    )?;
    if let Some(Value::Object(limits)) = plan.get_mut("limits") {
        *limits = rename(
            std::mem::take(limits),
            dialect::NONE,
            &format!("{at}/limits"),
        )?;
        no_lists(Some(limits), &["budget"], &format!("{at}/limits"))?;
        if let Some(Value::Object(budget)) = limits.get_mut("budget") {
            *budget = rename(
                std::mem::take(budget),
                dialect::NONE,
                &format!("{at}/limits/budget"),
            )?;
        }
    }
    whole_numbers(&mut plan, &["limits"]);
    if let Some(Value::Object(context)) = plan.get_mut("context") {
        whole_numbers(context, &["template", "stored"]);
    }
    let mut in_order = Vec::new();
    if let Some(Value::Array(steps)) = plan.get_mut("steps") {
        for (index, step) in steps.iter_mut().enumerate() {
            let at = format!("{at}/steps/{index}");
            match step {
                Value::Object(object) => {
                    let has_operation = object.contains_key("operation");
                    *object = self::step(std::mem::take(object), &at)?;
                    if has_operation && is_unordered(object) {
                        in_order.push(index);
                    }
                }
                Value::Array(_) => return Err(ReadPlanError::at(Code::Shape, at, NO_LIST)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
    }
    Ok(CanonicalPlan {
        object: plan,
        in_order,
    })
}

/// Returns whether an instruction neither names the steps it waits for nor uses their values.
fn is_unordered(step: &Object) -> bool {
    let refers = |value: &Value| value.as_str().is_some_and(|text| text.contains("${"));
    let agent = step.get("agent").and_then(Value::as_object);
    agent.is_some_and(|agent| !agent.values().any(refers)) && !step.contains_key("dependsOn")
}

/// Takes a plan out of `{"plan": …, "traceId": …}`, and makes one of a bare list of steps.
fn unwrap(value: Value) -> Result<(Object, String), ReadPlanError> {
    let not_a_plan = || {
        ReadPlanError::at(
            Code::Shape,
            "",
            "a plan is a JSON object, or a list of steps",
        )
    };
    let mut object = match value {
        Value::Array(steps) => {
            return Ok((
                Object::from_iter([("steps".to_owned(), Value::Array(steps))]),
                String::new(),
            ));
        }
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(not_a_plan());
        }
    };
    if object.contains_key("steps") || !object.get("plan").is_some_and(Value::is_object) {
        return Ok((object, String::new()));
    }
    let inner = object.remove("plan");
    if let Some(key) = object
        .keys()
        .find(|key| !dialect::PLAN_RUNTIME.contains(&camel_case(key).as_str()))
    {
        let message = format!("the key `{key}` beside `plan` is unknown");
        return Err(ReadPlanError::at(
            Code::Shape,
            format!("/{}", pointer_token(key)),
            message,
        ));
    }
    match inner {
        Some(Value::Object(plan)) => Ok((plan, "/plan".to_owned())),
        _ => Err(not_a_plan()),
    }
}

fn step(object: Object, at: &str) -> Result<Object, ReadPlanError> {
    let mut step = rename(
        millis_to_seconds(object, "timeoutMs", "timeoutSeconds", at)?,
        dialect::STEP,
        at,
    )?;
    for key in dialect::STEP_RUNTIME {
        step.remove(*key);
    }
    // A result that is an object is what came out of the step, not the name it goes by.
    if step.get("result").is_some_and(Value::is_object) {
        step.remove("result");
    }
    if let Some(id) = step.get_mut("id") {
        integer_to_text(id);
    }
    if let Some(dependencies) = step.get_mut("dependsOn") {
        if !dependencies.is_array() {
            *dependencies = Value::Array(vec![dependencies.take()]);
        }
        dependencies
            .as_array_mut()
            .into_iter()
            .flatten()
            .for_each(integer_to_text);
    }
    if let Some(timeout) = step.get_mut("timeoutSeconds") {
        duration(timeout, &format!("{at}/timeoutSeconds"))?;
    }
    instruction(&mut step);
    for (key, field) in [
        ("think", "prompt"),
        ("agent", "instruction"),
        ("plan", "id"),
    ] {
        if let Some(action) = step.get_mut(key) {
            wrap_text(action, field, &format!("{at}/{key}"))?;
        }
    }
    if let Some(input) = step.get_mut("input") {
        wrap_schema(input);
    }
    if let Some(value) = step.get_mut("retry") {
        retry(value, &format!("{at}/retry"))?;
    }
    if let Some(Value::Object(undo)) = step.get_mut("undo") {
        *undo = rename(std::mem::take(undo), dialect::UNDO, &format!("{at}/undo"))?;
    }
    no_lists(
        Some(&step),
        &["args", "think", "agent", "input", "plan", "retry", "undo"],
        at,
    )?;
    whole_numbers(&mut step, &["maxParallel", "retry"]);
    if let Some(Value::Object(agent)) = step.get_mut("agent") {
        whole_numbers(agent, &["maxTurns", "maxCalls", "maxTokens"]);
    }
    Ok(step)
}

/// Writes counts as integers, also those that came as `5.0`. What a step sends stays as it is.
fn whole_numbers(object: &mut Object, keys: &[&str]) {
    for key in keys {
        if let Some(value) = object.get_mut(*key) {
            *value = with_whole_numbers(value.take());
        }
    }
}

const NO_LIST: &str = "this is an object with named fields, not a list";

/// Fields that are objects are never written as lists: serde would fill their fields in order.
fn no_lists(object: Option<&Object>, keys: &[&str], at: &str) -> Result<(), ReadPlanError> {
    match keys
        .iter()
        .find(|key| object.is_some_and(|object| object.get(**key).is_some_and(Value::is_array)))
    {
        Some(key) => Err(ReadPlanError::at(
            Code::Shape,
            format!("{at}/{key}"),
            NO_LIST,
        )),
        None => Ok(()),
    }
}

/// Gives every key its canonical spelling. Keys without a value are as good as absent.
///
/// The same thing said twice is accepted if both say the same.
fn rename(object: Object, aliases: Aliases, at: &str) -> Result<Object, ReadPlanError> {
    let mut renamed = Object::new();
    // Sorted, so that the same two spellings are always blamed the same way round.
    for (key, value) in object.into_iter().collect::<BTreeMap<_, _>>() {
        if value.is_null() {
            continue;
        }
        let camel = camel_case(&key);
        let alias = aliases.iter().find(|(from, _)| *from == camel);
        let name = alias.map_or(camel, |(_, to)| (*to).to_owned());
        match renamed.get(&name) {
            Some(known) if *known != value => {
                let message = format!(
                    "the key `{key}` means `{name}`, which is given under another spelling too"
                );
                return Err(ReadPlanError::at(
                    Code::Shape,
                    format!("{at}/{}", pointer_token(&key)),
                    message,
                ));
            }
            Some(_) => {}
            None => {
                renamed.insert(name, value);
            }
        }
    }
    Ok(renamed)
}

/// `depends_on` → `dependsOn`. A key that is no plain snake_case stays as it is, and is refused
/// under its own name.
fn camel_case(key: &str) -> String {
    if key.starts_with('_') || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return key.to_owned();
    }
    let mut camel = String::with_capacity(key.len());
    let mut words = key.split('_');
    camel.push_str(words.next().unwrap_or_default());
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

fn integer_to_text(value: &mut Value) {
    if let Value::Number(number) = value
        && (number.is_u64() || number.is_i64())
    {
        *value = Value::String(number.to_string());
    }
}

/// A step that names an operation of a tool, and no arguments, is an instruction for an agent.
fn instruction(step: &mut Object) {
    if !step.contains_key("operation") || step.contains_key("args") || step.contains_key("agent") {
        return;
    }
    let mut agent = Object::new();
    for key in ["tool", "operation", "target"] {
        if let Some(value) = step.remove(key) {
            agent.insert(key.to_owned(), value);
        }
    }
    let said = || {
        let parts = ["tool", "operation", "target"]
            .into_iter()
            .filter_map(|key| agent.get(key)?.as_str());
        let words: Vec<&str> = parts.collect();
        Value::String(words.join(" "))
    };
    let instruction = step.get("title").cloned().unwrap_or_else(said);
    agent.insert("instruction".to_owned(), instruction);
    step.insert("agent".to_owned(), Value::Object(agent));
}

fn wrap_text(action: &mut Value, field: &str, at: &str) -> Result<(), ReadPlanError> {
    match action {
        Value::String(_) => *action = json!({ field: action.take() }),
        Value::Object(object) => *object = rename(std::mem::take(object), dialect::NONE, at)?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
    }
    Ok(())
}

/// `input` may be the schema itself.
fn wrap_schema(input: &mut Value) {
    let looks_like_a_schema = ["type", "properties", "$schema", "$ref"]
        .iter()
        .any(|key| input.get(key).is_some());
    if looks_like_a_schema && input.get("schema").is_none() {
        *input = json!({ "schema": input.take() });
    }
}

fn context_object(context: &mut Value, at: &str) -> Result<(), ReadPlanError> {
    match context {
        Value::String(_) => *context = json!({ "notes": context.take() }),
        Value::Object(object) => *object = rename(std::mem::take(object), dialect::NONE, at)?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
    }
    Ok(())
}

/// `retry: 3` is three retries.
fn retry(value: &mut Value, at: &str) -> Result<(), ReadPlanError> {
    if value.is_u64() {
        *value = json!({ "max": value.take() });
    }
    let Value::Object(object) = value else {
        return Ok(());
    };
    let seconds = millis_to_seconds(std::mem::take(object), "backoffMs", "backoff", at)?;
    *object = rename(seconds, dialect::RETRY, at)?;
    match object.get_mut("backoff") {
        Some(backoff) => duration(backoff, &format!("{at}/backoff")),
        None => Ok(()),
    }
}

/// Replaces `key`, in milliseconds, by `canonical`, in seconds.
fn millis_to_seconds(
    mut object: Object,
    key: &str,
    canonical: &str,
    at: &str,
) -> Result<Object, ReadPlanError> {
    let Some(spelling) = object.keys().find(|name| camel_case(name) == key).cloned() else {
        return Ok(object);
    };
    let Some(millis) = object.remove(&spelling).as_ref().and_then(Value::as_f64) else {
        let message = format!("`{spelling}` is a number of milliseconds");
        return Err(ReadPlanError::at(
            Code::Shape,
            format!("{at}/{spelling}"),
            message,
        ));
    };
    if object.contains_key(canonical) {
        let message = format!(
            "the key `{spelling}` means `{canonical}`, which is given under another spelling too"
        );
        return Err(ReadPlanError::at(
            Code::Shape,
            format!("{at}/{spelling}"),
            message,
        ));
    }
    object.insert(canonical.to_owned(), json!(millis / 1_000.0));
    Ok(object)
}

/// Turns `"500ms"`, `"2s"` and `"1m"` into seconds.
fn duration(value: &mut Value, at: &str) -> Result<(), ReadPlanError> {
    let Value::String(text) = value else {
        return Ok(());
    };
    let unit_at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit.trim() {
        "ms" => Some(0.001),
        "" | "s" | "sec" | "seconds" => Some(1.0),
        "m" | "min" | "minutes" => Some(60.0),
        "h" | "hours" => Some(3_600.0),
        _ => None,
    };
    let number = number
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite());
    match number.zip(scale) {
        Some((number, scale)) => *value = json!(number * scale),
        None => {
            let message = format!("{text:?} is no duration");
            let mut refused = ReadPlanError::at(Code::Shape, at, message);
            refused.suggestion =
                Some("write seconds as a number, or text such as \"500ms\", \"2s\", \"1m\"".into());
            return Err(refused);
        }
    }
    Ok(())
}
