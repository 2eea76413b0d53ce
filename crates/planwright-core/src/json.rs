//! Strict JSON: what a digest is taken over must mean one thing only.
//!
//! Two parsers that disagree about a plan would let one thing be approved and another be run. So
//! everything on which parsers differ is refused: keys given twice, integers that a double cannot
//! hold, broken UTF-8. Comments are the one kindness: people write them into plans, and they cannot
//! change what a document means.

mod plain_schema;
mod schema_cost;
mod schema_work;
mod tool_schema;

pub use schema_work::TooMuchWork;

use tool_schema::Reading;

use jsonschema::{Draft, PatternOptions, Validator};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize as _, Serializer};
use serde_json::{Map, Number, Value};
use std::fmt;

/// The largest integer that every JSON implementation reads alike.
const MAX_INTEGER: u64 = 1 << 53;

/// Warns of an integer that not every program reads alike.
pub const INTEGER_TOO_LARGE: &str =
    "the integer is beyond ±2^53, where programs disagree about its value";

/// The reason a text is not JSON this program accepts. Lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at line {line}, column {column}")]
pub struct ParseJsonError {
    /// Line of the problem.
    pub line: usize,
    /// Column of the problem, in characters.
    pub column: usize,
    /// Description of the problem.
    pub message: String,
    /// A remedy, where one is known.
    pub suggestion: Option<String>,
}

/// A value in words: text as it is, everything else as JSON.
pub fn tell_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Returns the value with every whole number as an integer: for JSON Schema `5.0` is one too.
#[expect(
    clippy::cast_possible_truncation,
    reason = "only whole numbers of that size are cast"
)]
pub fn with_whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(whole) if number.is_f64() && whole.fract() == 0.0 && whole.abs() < 1e15 => {
                Value::from(whole as i64)
            }
            Some(_) | None => Value::Number(number),
        },
        Value::Array(list) => list.into_iter().map(with_whole_numbers).collect(),
        Value::Object(object) => {
            let whole = |(key, value)| (key, with_whole_numbers(value));
            Value::Object(object.into_iter().map(whole).collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

/// Reads JSON with `//` and `/* */` comments; refuses duplicate keys and integers beyond ±2^53.
///
/// The recursion limit of serde_json applies, so nesting cannot exhaust the stack.
pub fn parse_strict(text: &[u8]) -> Result<Value, ParseJsonError> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let (line, column) = line_and_column(&text[..error.valid_up_to()]);
        parse_error(
            line,
            column,
            "the text is not UTF-8",
            Some("save the file as UTF-8"),
        )
    })?;
    let plain = blank_comments(text.strip_prefix('\u{feff}').unwrap_or(text).as_bytes())?;
    let mut deserializer = serde_json::Deserializer::from_slice(&plain);
    let value = Strict
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| {
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = message.strip_suffix(&place).unwrap_or(&message);
        parse_error(error.line(), error.column(), message, None)
    })
}

fn parse_error(
    line: usize,
    column: usize,
    message: &str,
    suggestion: Option<&str>,
) -> ParseJsonError {
    ParseJsonError {
        line,
        column,
        message: message.to_owned(),
        suggestion: suggestion.map(str::to_owned),
    }
}

/// The line and column that follow `before`.
fn line_and_column(before: &[u8]) -> (usize, usize) {
    let line_start = before
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |newline| newline + 1);
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let column = String::from_utf8_lossy(&before[line_start..])
        .chars()
        .count()
        + 1;
    (line, column)
}

/// Replaces comments by spaces, so that lines and columns stay right, and refuses integers that
/// lose digits.
///
/// The numbers are looked at here because serde_json has already rounded a long literal when it
/// hands it over.
fn blank_comments(text: &[u8]) -> Result<Vec<u8>, ParseJsonError> {
    let mut plain = text.to_vec();
    let mut at = 0;
    while at < text.len() {
        let end = match &text[at..] {
            [b'"', ..] => end_of_string(text, at),
            [b'/', b'/', ..] => {
                let end = text[at..]
                    .iter()
                    .position(|&b| b == b'\n')
                    .map_or(text.len(), |n| at + n);
                blank_out(&mut plain[at..end]);
                end
            }
            [b'/', b'*', ..] => {
                let Some(length) = text[at + 2..].windows(2).position(|pair| pair == b"*/") else {
                    let (line, column) = line_and_column(&text[..at]);
                    return Err(parse_error(
                        line,
                        column,
                        "the comment is never closed",
                        Some("end it with `*/`"),
                    ));
                };
                let end = at + 2 + length + 2;
                blank_out(&mut plain[at..end]);
                end
            }
            [b'-' | b'0'..=b'9', ..] => {
                let length = text[at..]
                    .iter()
                    .position(|b| !matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
                    .unwrap_or(text.len() - at);
                check_integer(text, at, at + length)?;
                at + length
            }
            _ => at + 1,
        };
        at = end;
    }
    Ok(plain)
}

fn blank_out(comment: &mut [u8]) {
    for byte in comment.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

/// The offset after the string that opens at `start`. An unclosed one is left for serde_json to
/// report.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn check_integer(text: &[u8], start: usize, end: usize) -> Result<(), ParseJsonError> {
    let token = &text[start..end];
    let digits = token.strip_prefix(b"-").unwrap_or(token);
    if !digits.iter().all(u8::is_ascii_digit) {
        return Ok(());
    }
    let digits = std::str::from_utf8(digits).expect("ASCII digits are UTF-8");
    let fits = digits.is_empty()
        || digits
            .parse::<u64>()
            .is_ok_and(|number| number <= MAX_INTEGER);
    if fits {
        return Ok(());
    }
    let (line, column) = line_and_column(&text[..start]);
    let message = INTEGER_TOO_LARGE;
    Err(parse_error(
        line,
        column,
        message,
        Some("write it as a string"),
    ))
}

/// Builds a [`Value`], refusing keys given twice.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("the number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = sequence.next_element_seed(Self)? {
            list.push(element);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(de::Error::custom(format_args!(
                    "the key {key:?} is given twice"
                )));
            }
            let value = entries.next_value_seed(Self)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// Limits on the nesting and the number of values of a JSON Schema.
const MAX_SCHEMA_DEPTH: usize = 64;
const MAX_SCHEMA_VALUES: usize = 50_000;

/// Whole seconds are written as a whole number.
#[expect(
    clippy::cast_possible_truncation,
    reason = "only whole numbers of that size are cast"
)]
pub fn serialize_seconds<S: Serializer>(
    seconds: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match *seconds {
        Some(whole) if whole.fract() == 0.0 && whole.abs() < 1e15 => {
            serializer.serialize_i64(whole as i64)
        }
        other => other.serialize(serializer),
    }
}

/// The length of a value as JSON, without writing it anywhere.
pub fn length(value: &Value) -> usize {
    struct Counted(usize);
    impl std::io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, value).map_or(usize::MAX, |()| counted.0)
}

/// Checks a value against a schema, and returns the first thing that does not fit.
pub fn check_against_schema(schema: &Value, value: &Value) -> Result<(), String> {
    let validator =
        compile_schema(schema).map_err(|error| format!("the schema cannot be used: {error}"))?;
    let validator = validator
        .for_value(value)
        .map_err(|error| error.to_string())?;
    let checked = validator.validate(value);
    checked.map_err(|error| format!("at {}: {error}", error.instance_path()))
}

/// A schema that values can be checked against.
#[derive(Debug)]
pub struct CompiledSchema {
    validator: Validator,
    work: schema_work::SchemaWork,
}

impl CompiledSchema {
    /// Returns what checks this value, if that takes a reasonable time. A value that is not checked
    /// does not fit.
    pub fn for_value(&self, value: &Value) -> Result<&Validator, TooMuchWork> {
        self.work.check(value)?;
        Ok(&self.validator)
    }
}

/// Compiles what a server says its tool takes or returns, as written or else as earlier drafts meant
/// it.
pub(crate) fn compile_tool_schema(schema: &Value) -> Result<CompiledSchema, String> {
    compile_schema(&Reading::AsWritten.of_schema(schema)).or_else(|problem| {
        compile_schema(&Reading::OfEarlierDrafts.of_schema(schema)).map_err(|_| problem)
    })
}

/// Compiles a JSON Schema. No reference is fetched from anywhere.
///
/// The draft is the one its `$schema` names, 2020-12 when it names none. Patterns come from
/// servers, so both their compiled size and their backtracking are bounded.
pub(crate) fn compile_schema(schema: &Value) -> Result<CompiledSchema, String> {
    let mut budget = MAX_SCHEMA_VALUES;
    if !fits_within(schema, MAX_SCHEMA_DEPTH, &mut budget) {
        return Err(format!(
            "the schema is too large: at most {MAX_SCHEMA_DEPTH} levels and {MAX_SCHEMA_VALUES} values are read"
        ));
    }
    if schema_cost::is_too_costly(schema) {
        return Err(
            "the schema refers to itself so often that checking a value takes too long".to_owned(),
        );
    }
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(100_000)
        .size_limit(1 << 20)
        .dfa_size_limit(1 << 20);
    let mut options = jsonschema::options()
        .offline()
        .with_pattern_options(patterns);
    if plain_schema::is_plain(schema) {
        options = options.with_draft(Draft::Draft7);
    }
    let validator = options.build(schema).map_err(|error| error.to_string())?;
    let work = schema_work::SchemaWork::of(schema);
    Ok(CompiledSchema { validator, work })
}

/// Returns whether `value` nests at most `depth` levels and has at most `budget` values.
pub(crate) fn fits_within(value: &Value, depth: usize, budget: &mut usize) -> bool {
    let Some(rest) = budget.checked_sub(1) else {
        return false;
    };
    *budget = rest;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(list) => {
            depth > 0
                && list
                    .iter()
                    .all(|element| fits_within(element, depth - 1, budget))
        }
        Value::Object(map) => {
            depth > 0
                && map
                    .values()
                    .all(|element| fits_within(element, depth - 1, budget))
        }
    }
}

/// Tells serde to leave out a field that has its default value.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// One part of a JSON pointer, escaped as RFC 6901 wants it.
pub(crate) fn pointer_token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn error(text: &str) -> ParseJsonError {
        parse_strict(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn comments_are_spaces_and_stay_text_inside_strings() {
        let text = "{ // one\n \"a\": \"http://x /* y */\", /* two\n lines */ \"b\": [1] }";
        assert_eq!(
            parse_strict(text.as_bytes()).unwrap(),
            json!({"a": "http://x /* y */", "b": [1]})
        );
        let broken = error("{ /* é */ \"a\": 1,\n // é\n  ? }");
        assert_eq!((broken.line, broken.column), (3, 3));
        assert_eq!(error("[1, /* open").message, "the comment is never closed");
    }

    #[test]
    fn a_key_given_twice_is_named() {
        let twice = error("{\"a\": {\"b\": 1,\n \"b\": 2}}");
        assert_eq!(twice.message, "the key \"b\" is given twice");
        assert_eq!(twice.line, 2);
    }

    #[test]
    fn keys_that_differ_only_in_their_escapes_are_the_same_key() {
        assert!(error(r#"{"a": 1, "\u0061": 2}"#).message.contains("twice"));
    }

    #[test]
    fn integers_beyond_two_to_the_53_are_refused_where_they_stand() {
        for good in [
            "9007199254740992",
            "-9007199254740992",
            "1e300",
            "0.1",
            "-0",
            "\"99999999999999999999\"",
        ] {
            assert!(parse_strict(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in [
            "9007199254740993",
            "-9007199254740993",
            "99999999999999999999999999",
        ] {
            let refused = error(&format!("[1,\n  {bad}]"));
            assert_eq!((refused.line, refused.column), (2, 3), "{bad}");
            assert_eq!(refused.suggestion.as_deref(), Some("write it as a string"));
        }
    }

    #[test]
    fn broken_utf_8_and_deep_nesting_are_errors() {
        assert_eq!(parse_strict(b"[\"\n\xff\"]").unwrap_err().line, 2);
        assert!(parse_strict("[".repeat(100_000).as_bytes()).is_err());
        assert!(parse_strict(b"").is_err());
        assert!(parse_strict(b"1 2").is_err());
        assert!(parse_strict(b"\"\\").is_err());
    }

    #[test]
    fn a_value_whose_check_would_not_end_is_refused_at_once() {
        let back = json!({"properties": {"x": {"$ref": "#"}}});
        let bomb = json!({"anyOf": [back, back]});
        let deep = (0..60).fold(json!(1), |value, _| json!({"x": value}));
        let refused = check_against_schema(&bomb, &deep).unwrap_err();
        assert!(refused.contains("takes too long"), "{refused}");
        assert_eq!(check_against_schema(&bomb, &json!({"x": {"x": 1}})), Ok(()));
    }

    #[test]
    fn a_schema_fetches_nothing() {
        for uri in ["http://127.0.0.1:9/x.json", "file:///etc/passwd"] {
            assert!(compile_schema(&json!({"$ref": uri})).is_err(), "{uri}");
        }
    }

    #[test]
    fn schemas_of_both_drafts_are_honoured() {
        let draft_7 = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]});
        assert!(check_against_schema(&draft_7, &json!([1])).is_err());
        let draft_2020 = json!({"prefixItems": [{"type": "string"}]});
        assert!(check_against_schema(&draft_2020, &json!([1])).is_err());
    }

    #[test]
    fn a_schema_is_bounded_in_depth_and_size() {
        let deep = (0..200).fold(json!({}), |inner, _| json!({"not": inner}));
        assert!(compile_schema(&deep).is_err());
        assert!(compile_schema(&json!({"enum": vec![0; 60_000]})).is_err());
    }
}
