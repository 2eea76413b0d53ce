//! Evaluating expressions: JSON goes in, true or false comes out, and everything else is an error.
//!
//! Expressions and the values they look at may both be hostile. Loops within loops over a long list
//! would take for ever, so the work is estimated before it is begun, and refused if it could be too
//! much.

use super::growth::{Bound, Growth};
use super::parse::Expression;
use crate::plan::read_json_text;
use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

/// Bytes of text and values together that one expression may look at.
const MAX_SIZE: usize = 64 << 20;
/// The bytes that any value is reckoned at, besides its text.
pub(super) const VALUE_SIZE: u64 = 16;
/// The function that reads a text as JSON.
pub(super) const READ_JSON: &str = "json";
/// Bytes by which values may grow on the way, besides becoming twice as large.
const MAX_GROWTH: u64 = 16 << 20;
/// Steps of work that one expression may need, roughly nanoseconds times a hundred.
const MAX_WORK: u64 = 50_000_000;
/// Characters of a message: it may quote the values it is about.
const MAX_MESSAGE: usize = 300;

/// The names an expression can use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope<'a> {
    pub(crate) names: BTreeMap<String, Cow<'a, Value>>,
    /// By id, seen as `steps.<id>`.
    pub(crate) steps: BTreeMap<String, Cow<'a, Value>>,
}

/// The reason an expression is neither true nor false.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EvaluateExpressionError {
    #[error("it is {0}, not true or false")]
    NotBoolean(&'static str),
    #[error("it could take too long on values of this size")]
    TooMuchWork,
    #[error("{0}")]
    Failed(String),
}

impl Expression {
    /// Returns whether the expression is true.
    pub(crate) fn holds(&self, scope: &Scope<'_>) -> Result<bool, EvaluateExpressionError> {
        self.check_work(scope)?;
        let mut context = cel::Context::with_env(environment());
        context
            .add_function(READ_JSON, read_json)
            .map_err(|error| failed(&error.to_string()))?;
        for (name, value) in &scope.names {
            context.add_variable_from_value(name.as_str(), cel_value(value)?);
        }
        if !scope.steps.is_empty() {
            let steps =
                cel::to_value(Steps(&scope.steps)).map_err(|error| failed(&error.to_string()))?;
            context.add_variable_from_value("steps", steps);
        }
        // The library is not ours: a bug in it costs the step, never the run.
        let resolved = catch_unwind(AssertUnwindSafe(|| {
            cel::Value::resolve(self.tree(), &context)
        }));
        match resolved {
            Ok(Ok(cel::Value::Bool(decided))) => Ok(decided),
            Ok(Ok(other)) => Err(EvaluateExpressionError::NotBoolean(kind(&other))),
            Ok(Err(error)) => Err(failed(&error.to_string())),
            Err(_) => Err(failed("it cannot be evaluated")),
        }
    }

    fn check_work(&self, scope: &Scope<'_>) -> Result<(), EvaluateExpressionError> {
        let mut extent = Extent::default();
        for value in scope.names.values().chain(scope.steps.values()) {
            extent.add(value);
        }
        let shape = Shape::of(self.tree());
        let largest = self.largest_values(scope);
        if extent.size > MAX_SIZE || largest.size > 2 * extent.size as u64 + MAX_GROWTH {
            return Err(EvaluateExpressionError::TooMuchWork);
        }
        // Adding lists makes longer ones.
        let longest = (extent.longest + shape.longest) as u64 * (1 + shape.additions);
        let longest = longest.max(largest.longest);
        let read = shape.reads * (extent.text as u64 / 8);
        let each = shape.nodes + extent.text as u64 / 64 + longest / 16 + read;
        let work = longest
            .checked_pow(shape.loops)
            .and_then(|times| times.checked_mul(each));
        if work.is_none_or(|work| work > MAX_WORK && shape.loops > 0) {
            return Err(EvaluateExpressionError::TooMuchWork);
        }
        Ok(())
    }

    /// The size that values can reach on the way.
    fn largest_values(&self, scope: &Scope<'_>) -> Bound {
        let mut growth = Growth::default();
        let mut elements = 0;
        for (name, value) in &scope.names {
            let mut extent = Extent::default();
            extent.add(value);
            elements = elements.max(extent.elements_in_text);
            growth.note(name, extent.bound());
        }
        let mut steps = Extent::default();
        scope.steps.values().for_each(|value| steps.add(value));
        growth.note("steps", steps.bound());
        growth.note_elements(elements.max(steps.elements_in_text) as u64);
        growth.largest(self.tree())
    }
}

/// The standard functions. Made once: that takes longer than most expressions do.
fn environment() -> Arc<cel::Env> {
    static ENVIRONMENT: LazyLock<Arc<cel::Env>> = LazyLock::new(|| Arc::new(cel::Env::stdlib()));
    Arc::clone(&ENVIRONMENT)
}

/// `json(text)`: the object or list that a text is. A value that is one already stays as it is, so
/// that an expression holds for servers that answer with text and for those that do not.
fn read_json(value: cel::Value) -> Result<cel::Value, cel::ExecutionError> {
    let problem = |words: &str| cel::ExecutionError::function_error(READ_JSON, words);
    if let cel::Value::String(text) = &value {
        let read = read_json_text(text).ok_or_else(|| problem("the text is no JSON"))?;
        return cel_value(&read).map_err(|error| problem(&error.to_string()));
    }
    if matches!(value, cel::Value::List(_) | cel::Value::Map(_)) {
        return Ok(value);
    }
    Err(problem(&format!("{} is no JSON", kind(&value))))
}

fn failed(message: &str) -> EvaluateExpressionError {
    let mut short: String = message.chars().take(MAX_MESSAGE).collect();
    if short.len() < message.len() {
        short.push('…');
    }
    EvaluateExpressionError::Failed(short)
}

fn kind(value: &cel::Value) -> &'static str {
    match value {
        cel::Value::Null => "null",
        cel::Value::Bool(_) => "a boolean",
        cel::Value::Int(_) | cel::Value::UInt(_) | cel::Value::Float(_) => "a number",
        cel::Value::String(_) => "text",
        cel::Value::Bytes(_) => "bytes",
        cel::Value::List(_) => "a list",
        cel::Value::Map(_) => "an object",
        cel::Value::Function(..) | cel::Value::Opaque(_) | cel::Value::Struct(_) => {
            "something else"
        }
    }
}

fn cel_value(value: &Value) -> Result<cel::Value, EvaluateExpressionError> {
    cel::to_value(Plain(value)).map_err(|error| failed(&error.to_string()))
}

/// JSON as the library should see it: whole numbers are signed ones, so that they can be reckoned
/// with.
struct Plain<'a>(&'a Value);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => serializer.serialize_i64(number),
                (None, Some(number)) => serializer.serialize_u64(number),
                (None, None) => serializer.serialize_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(list) => {
                let mut sequence = serializer.serialize_seq(Some(list.len()))?;
                for element in list {
                    sequence.serialize_element(&Plain(element))?;
                }
                sequence.end()
            }
            Value::Object(map) => {
                let mut entries = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map {
                    entries.serialize_entry(key, &Plain(value))?;
                }
                entries.end()
            }
        }
    }
}

struct Steps<'a>(&'a BTreeMap<String, Cow<'a, Value>>);

impl Serialize for Steps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entries = serializer.serialize_map(Some(self.0.len()))?;
        for (id, value) in self.0 {
            entries.serialize_entry(id, &Plain(value))?;
        }
        entries.end()
    }
}

/// The size of the values an expression looks at.
#[derive(Debug, Default)]
struct Extent {
    size: usize,
    /// The longest list or object.
    longest: usize,
    /// The longest text.
    text: usize,
    /// The most elements that a list in one of the texts can have: one more than it has commas.
    elements_in_text: usize,
}

impl Extent {
    fn bound(&self) -> Bound {
        Bound {
            size: self.size as u64,
            longest: self.longest as u64,
        }
    }

    fn add(&mut self, value: &Value) {
        self.size = self.size.saturating_add(VALUE_SIZE as usize);
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => {
                self.size = self.size.saturating_add(text.len());
                self.text = self.text.max(text.len());
                let commas = text.bytes().filter(|byte| *byte == b',').count();
                self.elements_in_text = self.elements_in_text.max(commas + 1);
            }
            Value::Array(list) => {
                self.longest = self.longest.max(list.len());
                list.iter().for_each(|element| self.add(element));
            }
            Value::Object(map) => {
                self.longest = self.longest.max(map.len());
                for (key, element) in map {
                    self.size = self.size.saturating_add(key.len());
                    self.text = self.text.max(key.len());
                    self.add(element);
                }
            }
        }
    }
}

/// The work of an expression.
#[derive(Debug, Default, Clone, Copy)]
struct Shape {
    nodes: u64,
    /// Loops within each other.
    loops: u32,
    /// The longest list or object that is written in it.
    longest: usize,
    additions: u64,
    /// The number of times a text is read as JSON.
    reads: u64,
}

impl Shape {
    fn of(expression: &IdedExpr) -> Self {
        let mut shape = Self {
            nodes: 1,
            ..Self::default()
        };
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Call(call) => {
                shape.additions = u64::from(call.func_name == "_+_");
                shape.reads = u64::from(call.func_name == READ_JSON);
                call.target
                    .as_deref()
                    .into_iter()
                    .chain(&call.args)
                    .for_each(|part| shape.join(part));
            }
            Expr::List(list) => {
                shape.longest = list.elements.len();
                list.elements.iter().for_each(|part| shape.join(part));
            }
            Expr::Map(map) => shape.entries(&map.entries),
            Expr::Struct(structure) => shape.entries(&structure.entries),
            Expr::Select(select) => shape.join(&select.operand),
            Expr::Comprehension(parts) => {
                for part in [&parts.loop_cond, &parts.loop_step, &parts.result] {
                    shape.join(part);
                }
                shape.loops += 1;
                shape.join(&parts.iter_range);
                shape.join(&parts.accu_init);
            }
        }
        shape
    }

    fn join(&mut self, part: &IdedExpr) {
        let part = Self::of(part);
        self.nodes += part.nodes;
        self.loops = self.loops.max(part.loops);
        self.longest = self.longest.max(part.longest);
        self.additions += part.additions;
        self.reads += part.reads;
    }

    fn entries(&mut self, entries: &[IdedEntryExpr]) {
        self.longest = self.longest.max(entries.len());
        for entry in entries {
            match &entry.expr {
                EntryExpr::StructField(field) => self.join(&field.value),
                EntryExpr::MapEntry(entry) => {
                    self.join(&entry.key);
                    self.join(&entry.value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn decide(source: &str, names: &Value) -> Result<bool, EvaluateExpressionError> {
        let mut scope = Scope::default();
        for (name, value) in names.as_object().unwrap() {
            scope.names.insert(name.clone(), Cow::Borrowed(value));
        }
        Expression::parse(source).unwrap().holds(&scope)
    }

    #[test]
    fn json_means_in_an_expression_what_people_expect() {
        let names = json!({
            "n": 3, "f": 2.5, "big": u64::MAX, "t": "text", "l": [1, 2, 3], "o": {"a": {"b": null}}, "no": null,
        });
        for source in [
            "n == 3",
            "n + 1 == 4",
            "n > f",
            "big > 0",
            "n - 5 < 0",
            "t.startsWith('te') && t.size() == 4",
            "t.matches('^t.*t$')",
            "l.all(x, x < 4) && 2 in l && l[0] == 1 && size(l) == n",
            "l.map(x, x * 2) == [2, 4, 6]",
            "l.filter(x, x > 1).size() == 2",
            "has(o.a) && !has(o.c) && o.a.b == null",
            "no == null",
            "o['a'].b == null",
            "n == 3 ? true : false",
        ] {
            assert_eq!(decide(source, &names), Ok(true), "{source}");
        }
        assert_eq!(decide("n > 3", &names), Ok(false));
    }

    #[test]
    fn text_that_is_json_can_be_looked_into() {
        let names = json!({
            "t": "{\"rows\": [[\"north\", 3], [\"south\", 4]]}",
            "o": { "rows": [] }, "plain": "rows", "number": 3,
        });
        for source in [
            "json(t).rows.size() == 2",
            "json(t).rows.all(row, row[1] > 2)",
            "json(o).rows == []",
            "t.startsWith('{') && json(t).rows[0][0] == 'north'",
        ] {
            assert_eq!(decide(source, &names), Ok(true), "{source}");
        }
        for source in ["json(plain) == 1", "json(number) == 3", "json(t).none == 1"] {
            assert!(decide(source, &names).is_err(), "{source}");
        }
        let long = format!("[{}1]", "1,".repeat(400_000));
        let nested = decide(
            "json(l).all(x, json(l).all(y, x == y))",
            &json!({ "l": long }),
        );
        assert_eq!(nested, Err(EvaluateExpressionError::TooMuchWork));
    }

    #[test]
    fn what_is_not_true_or_false_is_an_error() {
        let names = json!({"n": 3, "o": {}, "no": null});
        for source in [
            "n",
            "o.missing",
            "no.field",
            "nobody",
            "n / 0 == 1",
            "n + 'x' == 1",
            "o",
            "size(n) > 0",
        ] {
            assert!(decide(source, &names).is_err(), "{source}");
        }
    }

    #[test]
    fn work_without_end_is_refused_before_it_is_begun() {
        let long: Vec<u32> = (0..20_000).collect();
        let names = json!({"l": long});
        assert_eq!(decide("l.all(x, x >= 0)", &names), Ok(true));
        let nested = decide("l.all(x, l.all(y, x + y >= 0))", &names);
        assert_eq!(nested, Err(EvaluateExpressionError::TooMuchWork));
        let list = format!("[{}1]", "1,".repeat(200));
        let written = format!("{list}.all(a, {list}.all(b, {list}.all(c, {list}.all(d, true))))");
        assert_eq!(
            decide(&written, &json!({})),
            Err(EvaluateExpressionError::TooMuchWork)
        );
    }

    #[test]
    fn values_that_double_with_every_loop_are_refused_before_they_are_made() {
        let doubled = ".map(x, x + x)".repeat(30);
        for source in [
            format!("[[1, 2]]{doubled} == []"),
            format!("['ab']{doubled} == []"),
            format!("l{doubled} == []"),
            // A million elements, looked at a million times.
            format!(
                "[l{0}[0]].all(a, a.all(b, a.all(c, b == c)))",
                ".map(x, x + x)".repeat(14)
            ),
            format!("l{}.size() == 0", ".map(x, [x, x, x, x])".repeat(18)),
            format!("l{}.size() == 0", ".map(x, {'a': x, 'b': x})".repeat(30)),
        ] {
            let decided = decide(&source, &json!({"l": [[1], [2]]}));
            assert_eq!(
                decided,
                Err(EvaluateExpressionError::TooMuchWork),
                "{source}"
            );
        }
        let items: Vec<Value> = (0..200)
            .map(|n| json!({"id": n, "parent": n / 2, "name": "n".repeat(40)}))
            .collect();
        let names = json!({"items": items, "allowed": ["a", "b"]});
        for source in [
            "items.map(i, i.name + ': ' + i.name).filter(n, n in allowed) == []",
            "items.filter(i, items.exists(j, j.id == i.parent)).size() == 200",
            "items.map(i, i.id).map(n, [n, n]).all(p, p[0] == p[1])",
        ] {
            assert_eq!(decide(source, &names), Ok(true), "{source}");
        }
        let text = json!({"text": "x".repeat(20 << 20)});
        assert_eq!(decide("text + text != text", &text), Ok(true));
    }

    #[test]
    fn a_message_does_not_repeat_a_whole_value() {
        let Err(EvaluateExpressionError::Failed(message)) =
            decide("t.x == 1", &json!({"t": "x".repeat(9_000)}))
        else {
            panic!("text has no fields")
        };
        assert!(message.chars().count() <= MAX_MESSAGE + 1);
    }
}
