//! Dotted paths into a document: reading them, writing at them.

use super::EditError;
use crate::text::{did_you_mean, nearest_names};
use serde_json::{Map, Value};

/// Longer paths name nothing that a plan has.
const MAX_BYTES: usize = 4_096;

/// A path as it was written, and its parts.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) text: String,
    pub(super) parts: Vec<String>,
}

impl Path {
    /// Reads `steps.fetch.args."odd.key"`: parts between dots, those with other characters in
    /// double quotes.
    pub(super) fn parse(text: &str) -> Result<Self, EditError> {
        let bad = |reason| EditError::BadPath {
            path: text.chars().take(200).collect(),
            reason,
        };
        if text.len() > MAX_BYTES {
            return Err(bad("it is too long"));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        loop {
            let (part, after) = part(rest).map_err(bad)?;
            parts.push(part);
            match after.strip_prefix('.') {
                Some(next) => rest = next,
                None if after.is_empty() => {
                    return Ok(Self {
                        text: text.to_owned(),
                        parts,
                    });
                }
                None => return Err(bad("there has to be a dot after a quoted part")),
            }
        }
    }

    /// The path up to and with part number `count`.
    fn until(&self, count: usize) -> String {
        let parts: Vec<String> = self
            .parts
            .iter()
            .take(count)
            .map(|part| segment(part))
            .collect();
        parts.join(".")
    }

    /// Puts `value` below `root` at the parts from `first` on. Objects on the way are made.
    pub(super) fn set(
        &self,
        first: usize,
        root: &mut Value,
        value: Value,
    ) -> Result<(), EditError> {
        let Some((last, way)) = self.parts[first..].split_last() else {
            *root = value;
            return Ok(());
        };
        let mut target = root;
        for (offset, part) in way.iter().enumerate() {
            target = self.step_into(first + offset, target, part)?;
        }
        let at = self.parts.len() - 1;
        match target {
            Value::Object(map) => {
                map.insert(last.clone(), value);
            }
            Value::Array(list) => match self.index(at, last, list.len() + 1)? {
                index if index == list.len() => list.push(value),
                index => list[index] = value,
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return Err(self.no_container(at, target));
            }
        }
        Ok(())
    }

    fn step_into<'v>(
        &self,
        at: usize,
        target: &'v mut Value,
        part: &str,
    ) -> Result<&'v mut Value, EditError> {
        match target {
            Value::Object(map) => Ok(map
                .entry(part.to_owned())
                .or_insert_with(|| Value::Object(Map::new()))),
            Value::Array(list) => {
                let index = self.index(at, part, list.len())?;
                Ok(&mut list[index])
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Err(self.no_container(at, target))
            }
        }
    }

    /// Takes away what is below `root` at the parts from `first` on.
    pub(super) fn unset(&self, first: usize, root: &mut Value) -> Result<(), EditError> {
        let Some((last, way)) = self.parts[first..].split_last() else {
            return Err(self.nothing(None));
        };
        let mut target = root;
        for part in way {
            let near = near_keys(target, part);
            let found = match target {
                Value::Object(map) => map.get_mut(part),
                Value::Array(list) => part
                    .parse()
                    .ok()
                    .and_then(|index: usize| list.get_mut(index)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            };
            target = found.ok_or_else(|| self.nothing(near))?;
        }
        let near = near_keys(target, last);
        let removed = match target {
            Value::Object(map) => map.remove(last),
            Value::Array(list) => {
                let index = last
                    .parse()
                    .ok()
                    .filter(|&index: &usize| index < list.len());
                index.map(|index| list.remove(index))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        removed.map(drop).ok_or_else(|| self.nothing(near))
    }

    fn index(&self, at: usize, part: &str, end: usize) -> Result<usize, EditError> {
        part.parse()
            .ok()
            .filter(|&index| index < end)
            .ok_or_else(|| EditError::CannotHold {
                path: self.text.clone(),
                reason: format!(
                    "`{}` is a list of {end} places at most, and `{part}` is none",
                    self.until(at)
                ),
                suggestion: Some(
                    "places in a list are counted from 0, as in references".to_owned(),
                ),
            })
    }

    fn no_container(&self, at: usize, found: &Value) -> EditError {
        let kind = match found {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let reason = format!("`{}` is {kind}, and has no parts", self.until(at));
        EditError::CannotHold {
            path: self.text.clone(),
            reason,
            suggestion: None,
        }
    }

    fn nothing(&self, suggestion: Option<String>) -> EditError {
        EditError::NothingThere {
            path: self.text.clone(),
            suggestion,
        }
    }
}

fn near_keys(value: &Value, part: &str) -> Option<String> {
    let keys = value.as_object()?.keys().cloned();
    did_you_mean(&nearest_names(part, keys))
}

/// The first part of a path, and what follows it.
fn part(text: &str) -> Result<(String, &str), &'static str> {
    if text.starts_with('"') {
        let mut quoted = serde_json::Deserializer::from_str(text).into_iter::<String>();
        return match quoted.next() {
            Some(Ok(part)) => Ok((part, &text[quoted.byte_offset()..])),
            Some(Err(_)) | None => Err("a quoted part has to be a JSON text"),
        };
    }
    let end = text.find('.').unwrap_or(text.len());
    let part = &text[..end];
    if part.is_empty() {
        return Err("a part of it is empty");
    }
    if part.contains(['[', ']', '"', '/']) {
        return Err("write `list.0` for places in a list, and odd keys in double quotes");
    }
    Ok((part.to_owned(), &text[end..]))
}

/// A part as a path has it: in quotes if it could be read otherwise.
pub(in crate::plan) fn segment(part: &str) -> String {
    if part.is_empty() || part.contains(['.', '[', ']', '"', '/']) {
        return Value::from(part).to_string();
    }
    part.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(path: &str, root: &Value, value: Value) -> Result<Value, EditError> {
        let mut root = root.clone();
        Path::parse(path)?.set(0, &mut root, value).map(|()| root)
    }

    #[test]
    fn parts_are_read_between_dots_and_out_of_quotes() {
        let parts = |text: &str| Path::parse(text).map(|path| path.parts).ok();
        assert_eq!(parts("a.b-c.2").unwrap(), ["a", "b-c", "2"]);
        assert_eq!(
            parts(r#"a."odd.key \" x".b"#).unwrap(),
            ["a", "odd.key \" x", "b"]
        );
        for bad in ["", ".", "a.", ".a", "a..b", "a[0]", "\"a\"b", "\"a", "a/b"] {
            assert_eq!(parts(bad), None, "{bad}");
        }
        for part in ["a", "a.b", "", "x\"y", "a[1]"] {
            assert_eq!(parts(&segment(part)).unwrap(), [part]);
        }
    }

    #[test]
    fn objects_on_the_way_are_made_and_texts_are_not_entered() {
        let root = json!({"a": {"list": [1, 2]}, "t": "text"});
        assert_eq!(set("a.b.c", &root, json!(1)).unwrap()["a"]["b"]["c"], 1);
        assert_eq!(
            set("a.list.1", &root, json!(9)).unwrap()["a"]["list"],
            json!([1, 9])
        );
        assert_eq!(
            set("a.list.2", &root, json!(9)).unwrap()["a"]["list"],
            json!([1, 2, 9])
        );
        assert!(set("a.list.3", &root, json!(9)).is_err());
        assert!(set("a.list.x.y", &root, json!(9)).is_err());
        let refused = set("t.x", &root, json!(1)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "`t.x` cannot be set: `t` is a text, and has no parts"
        );
    }

    #[test]
    fn what_is_not_there_cannot_be_taken_away() {
        let mut root = json!({"args": {"path": "x", "list": [1, 2]}});
        let refused = Path::parse("args.pth")
            .unwrap()
            .unset(0, &mut root)
            .unwrap_err();
        assert_eq!(refused.suggest().unwrap(), "did you mean `path`?");
        Path::parse("args.list.0")
            .unwrap()
            .unset(0, &mut root)
            .unwrap();
        Path::parse("args.path")
            .unwrap()
            .unset(0, &mut root)
            .unwrap();
        assert_eq!(root, json!({"args": {"list": [2]}}));
    }
}
