//! Changes to a JSON document: RFC 6902 (operations) and RFC 7396 (merge).

use super::problem::{Problem, ProblemCode};
use serde::Deserialize;
use serde_json::{Map, Value};

/// More operations than this are a new document.
const MAX_OPERATIONS: usize = 1_000;

/// One operation of a JSON Patch. Members that an operation does not know are ignored, as the
/// standard wants it.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Operation {
    Add { path: String, value: Value },
    Remove { path: String },
    Replace { path: String, value: Value },
    Move { from: String, path: String },
    Copy { from: String, path: String },
    Test { path: String, value: Value },
}

/// Applies a JSON Patch, all of it or nothing.
pub(crate) fn json_patch(
    document: &mut Value,
    patch: Value,
    max_bytes: usize,
) -> Result<(), Problem> {
    let operations: Vec<Operation> = serde_json::from_value(patch).map_err(|error| {
        Problem::of(
            ProblemCode::BadPatch,
            format!("this is no JSON Patch: {error}"),
        )
    })?;
    if operations.len() > MAX_OPERATIONS {
        return Err(Problem::of(
            ProblemCode::BadPatch,
            format!("a patch has at most {MAX_OPERATIONS} operations"),
        ));
    }
    let mut budget = Budget(max_bytes.saturating_mul(4));
    for (index, operation) in operations.into_iter().enumerate() {
        apply(document, operation, &mut budget).map_err(|wrong| wrong.problem(index))?;
    }
    Ok(())
}

/// Applies a merge patch: what it names is replaced, null removes.
pub(crate) fn merge_patch(document: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *document = patch;
        return;
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Some(object) = document.as_object_mut() else {
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            object.shift_remove(&key);
        } else {
            merge_patch(object.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// Bytes that copies may still add: a patch that doubles a value many times is a bomb.
struct Budget(usize);

impl Budget {
    fn take(&mut self, value: &Value) -> Result<(), Wrong> {
        let size = serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len());
        self.0 = self.0.checked_sub(size).ok_or(Wrong::TooLarge)?;
        Ok(())
    }
}

#[derive(Debug)]
enum Wrong {
    Pointer(String),
    Missing(String),
    Test(String),
    Inside,
    TooLarge,
}

impl Wrong {
    fn problem(self, index: usize) -> Problem {
        let (code, words) = match self {
            Self::Pointer(path) => (
                ProblemCode::BadPatch,
                format!("`{path}` is no JSON pointer"),
            ),
            Self::Missing(path) => (
                ProblemCode::PatchPathMissing,
                format!("there is no `{path}`"),
            ),
            Self::Test(path) => (
                ProblemCode::PatchTestFailed,
                format!("`{path}` has another value"),
            ),
            Self::Inside => (
                ProblemCode::PatchInside,
                "a value cannot be moved into itself".to_owned(),
            ),
            Self::TooLarge => (
                ProblemCode::BodyTooLarge,
                "the patch makes the plan too large".to_owned(),
            ),
        };
        Problem::of(code, format!("operation {index}: {words}"))
    }
}

fn apply(document: &mut Value, operation: Operation, budget: &mut Budget) -> Result<(), Wrong> {
    match operation {
        Operation::Add { path, value } => add(document, &path, value),
        Operation::Remove { path } => remove(document, &path).map(drop),
        Operation::Replace { path, value } => {
            tokens(&path)?;
            *document.pointer_mut(&path).ok_or(Wrong::Missing(path))? = value;
            Ok(())
        }
        Operation::Move { from, path } => {
            if path
                .strip_prefix(&from)
                .is_some_and(|rest| rest.starts_with('/'))
            {
                return Err(Wrong::Inside);
            }
            let value = remove(document, &from)?;
            add(document, &path, value)
        }
        Operation::Copy { from, path } => {
            tokens(&from)?;
            let value = document.pointer(&from).ok_or(Wrong::Missing(from))?.clone();
            budget.take(&value)?;
            add(document, &path, value)
        }
        Operation::Test { path, value } => {
            tokens(&path)?;
            let found = document
                .pointer(&path)
                .ok_or_else(|| Wrong::Missing(path.clone()))?;
            if same(found, &value) {
                Ok(())
            } else {
                Err(Wrong::Test(path))
            }
        }
    }
}

/// Numbers are equal if their values are, regardless of how they are written.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        (left, right) => left == right,
    }
}

/// The parts of a pointer, unescaped.
fn tokens(path: &str) -> Result<Vec<String>, Wrong> {
    let bad = || Wrong::Pointer(path.to_owned());
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let rest = path.strip_prefix('/').ok_or_else(bad)?;
    let unescape = |token: &str| {
        let good = token
            .split('~')
            .skip(1)
            .all(|rest| rest.starts_with(['0', '1']));
        good.then(|| token.replace("~1", "/").replace("~0", "~"))
    };
    rest.split('/')
        .map(|token| unescape(token).ok_or_else(bad))
        .collect()
}

/// The value that holds what `path` names, and the last part of the path.
fn parent<'a>(document: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), Wrong> {
    let mut parts = tokens(path)?;
    let last = parts.pop().ok_or_else(|| Wrong::Missing(path.to_owned()))?;
    let end = path.rfind('/').unwrap_or_default();
    let holder = document
        .pointer_mut(&path[..end])
        .ok_or_else(|| Wrong::Missing(path.to_owned()))?;
    Ok((holder, last))
}

/// A place in a list, written without leading zeros.
fn place(token: &str, end: usize) -> Option<usize> {
    let plain = token == "0" || !token.starts_with(['0', '+']);
    token.parse().ok().filter(|place| plain && *place <= end)
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), Wrong> {
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    let missing = || Wrong::Missing(path.to_owned());
    let (holder, last) = parent(document, path)?;
    match holder {
        Value::Object(object) => drop(object.insert(last, value)),
        Value::Array(list) if last == "-" => list.push(value),
        Value::Array(list) => list.insert(place(&last, list.len()).ok_or_else(missing)?, value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(missing()),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, Wrong> {
    let missing = || Wrong::Missing(path.to_owned());
    let (holder, last) = parent(document, path)?;
    match holder {
        Value::Object(object) => object.shift_remove(&last).ok_or_else(missing),
        Value::Array(list) => {
            let at = place(&last, list.len().saturating_sub(1)).filter(|at| *at < list.len());
            Ok(list.remove(at.ok_or_else(missing)?))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(missing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(document: Value, patch: Value) -> Result<Value, u16> {
        let mut document = document;
        match json_patch(&mut document, patch, 1_000) {
            Ok(()) => Ok(document),
            Err(problem) => Err(problem.status),
        }
    }

    #[test]
    fn the_examples_of_rfc_6902_come_out_as_it_says() {
        let op = |op: &str, path: &str, value: Value| json!([{ "op": op, "path": path, "value": value }]);
        assert_eq!(
            patched(json!({"foo":"bar"}), op("add", "/baz", json!("qux"))),
            Ok(json!({"foo":"bar","baz":"qux"}))
        );
        assert_eq!(
            patched(
                json!({"foo":["bar","baz"]}),
                op("add", "/foo/1", json!("qux"))
            ),
            Ok(json!({"foo":["bar","qux","baz"]}))
        );
        assert_eq!(
            patched(json!({"foo":["bar"]}), op("add", "/foo/-", json!(["abc"]))),
            Ok(json!({"foo":["bar",["abc"]]}))
        );
        assert_eq!(
            patched(
                json!({"baz":1,"foo":2}),
                json!([{"op":"remove","path":"/baz"}])
            ),
            Ok(json!({"foo":2}))
        );
        assert_eq!(
            patched(json!({"baz":1}), op("replace", "/baz", json!(2))),
            Ok(json!({"baz":2}))
        );
        let moving = json!([{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]);
        assert_eq!(
            patched(
                json!({"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}),
                moving
            ),
            Ok(json!({"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}))
        );
        let moving = json!([{"op":"move","from":"/foo/1","path":"/foo/3"}]);
        assert_eq!(
            patched(json!({"foo":["all","grass","cows","eat"]}), moving),
            Ok(json!({"foo":["all","cows","eat","grass"]}))
        );
        assert_eq!(
            patched(json!({"~1":10,"/":9}), op("test", "/~01", json!(10.0))),
            Ok(json!({"~1":10,"/":9}))
        );
        assert_eq!(
            patched(json!({"foo":null}), op("test", "/foo", json!(null))),
            Ok(json!({"foo":null}))
        );
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let one = |op: Value| json!([op]);
        for (patch, status) in [
            (one(json!({"op":"test","path":"/a","value":2})), 409),
            (one(json!({"op":"remove","path":"/b"})), 422),
            (one(json!({"op":"replace","path":"/b","value":1})), 422),
            (one(json!({"op":"add","path":"/b/c","value":1})), 422),
            (one(json!({"op":"add","path":"/l/2","value":1})), 422),
            (one(json!({"op":"add","path":"/l/01","value":1})), 422),
            (one(json!({"op":"add","path":"b","value":1})), 400),
            (one(json!({"op":"add","path":"/~2","value":1})), 400),
            (one(json!({"op":"add","path":"/b"})), 400),
            (one(json!({"op":"spam","path":"/b"})), 400),
            (one(json!({"op":"move","from":"/o","path":"/o/x"})), 422),
            (one(json!({"op":"remove","path":""})), 422),
            (json!({"op":"remove","path":"/a"}), 400),
        ] {
            assert_eq!(
                patched(json!({"a":1,"l":[1],"o":{}}), patch.clone()),
                Err(status),
                "{patch}"
            );
        }
        let bomb: Vec<Value> = (0..40)
            .map(|_| json!({"op":"copy","from":"/l","path":"/l/-"}))
            .collect();
        assert_eq!(patched(json!({"l":[1]}), Value::Array(bomb)), Err(413));
    }

    #[test]
    fn a_merge_replaces_what_it_names() {
        let mut document = json!({"a":"b","c":{"d":"e","f":"g"},"l":[1]});
        merge_patch(
            &mut document,
            json!({"a":"z","c":{"f":null},"l":[2,3],"n":{"x":{"y":null}}}),
        );
        assert_eq!(
            document,
            json!({"a":"z","c":{"d":"e"},"l":[2,3],"n":{"x":{}}})
        );
    }
}
