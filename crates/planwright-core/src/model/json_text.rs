//! Reading JSON out of what a model wrote around it.
//!
//! Models that cannot be held to a schema answer in prose, in fences, or think aloud first. This
//! finds the value that was probably meant. It says nothing about whether the value is right: the
//! caller still checks it.

use serde_json::Value;

/// Longer texts than this are not searched.
const MAX_BYTES: usize = 4 << 20;
/// So many places at which a value could begin are tried.
const MAX_STARTS: usize = 4096;

/// Finds the first JSON object, or array of objects, of a text: what stands alone, what stands in a
/// fence, what stands in prose. Other arrays count only where there is nothing better: `[1]` in
/// prose is more often a footnote.
pub fn find_json(text: &str) -> Option<Value> {
    if text.len() > MAX_BYTES {
        return None;
    }
    // Thoughts before the answer are no answer, unless there is nothing else.
    match text.rsplit_once("</think>") {
        Some((thoughts, answer)) => find_value(answer).or_else(|| find_value(thoughts)),
        None => find_value(text),
    }
}

fn find_value(text: &str) -> Option<Value> {
    parse_whole(text)
        .or_else(|| find_in_fence(text))
        .or_else(|| find_in_prose(text))
}

/// The text is the value, and nothing else.
fn parse_whole(text: &str) -> Option<Value> {
    let text = text.trim().trim_start_matches('\u{feff}');
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// The value in the first fence that holds one.
fn find_in_fence(text: &str) -> Option<Value> {
    text.split("```").skip(1).step_by(2).find_map(|block| {
        // The fence may name its language on the line that opens it.
        let inside = match block.split_once('\n') {
            Some((language, inside)) if !language.contains(['{', '[']) => inside,
            _ => block,
        };
        parse_whole(inside)
    })
}

/// The value at the first place where one can be read.
fn find_in_prose(text: &str) -> Option<Value> {
    let mut at = 0;
    let mut second_best = None;
    for _ in 0..MAX_STARTS {
        let Some(found) = text[at..].find(['{', '[']) else {
            break;
        };
        at += found;
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) if is_answer(&value) => return Some(value),
            Some(Ok(value)) => {
                at += values.byte_offset();
                second_best.get_or_insert(value);
            }
            // The value was fine until the text ended: it is cut, and what is whole inside it is
            // not the answer.
            Some(Err(error)) if error.is_eof() => break,
            Some(Err(_)) | None => at += 1,
        }
    }
    second_best
}

/// Answers are objects or lists of them.
fn is_answer(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => items.iter().any(Value::is_object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_found_alone_in_a_fence_and_in_prose() {
        let value = json!({"steps": [{"id": 1, "args": {"text": "a } b ``` c"}}]});
        for text in [
            value.to_string(),
            format!("  \n{value}\n"),
            format!("Here is the plan:\n```json\n{value:#}\n```\nShall I go on?"),
            format!("```\n{value}\n```"),
            format!("Sure! {value} That is all {{really}}."),
            format!("As [1] and [read_file] say, {{roughly}}: {value}"),
            format!("<think>perhaps {{\"steps\": []}}?</think>{value}"),
            format!("<think>{value}</think>"),
        ] {
            assert_eq!(find_json(&text), Some(value.clone()), "{text}");
        }
    }

    #[test]
    fn a_list_of_objects_is_whole_and_a_plain_list_is_second_best() {
        assert_eq!(
            find_json("so: [{\"a\": 1}, {\"b\": 2}]"),
            Some(json!([{"a": 1}, {"b": 2}]))
        );
        assert_eq!(find_json("see [1] for it"), Some(json!([1])));
        assert_eq!(find_json("see [1] for {\"a\": 1}"), Some(json!({"a": 1})));
    }

    #[test]
    fn a_cut_value_is_no_value() {
        let cut = [
            "{\"steps\": [{\"id\"",
            "```json\n{\"a\":",
            "{\"steps\": [{\"id\": 1}, {\"id\"",
            "ok: [{\"a\": {}",
        ];
        for text in ["", "nothing", "42", "\"text\""].into_iter().chain(cut) {
            assert_eq!(find_json(text), None, "{text}");
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        assert_eq!(find_json(&"[".repeat(100_000)), None);
        assert_eq!(find_json(&"{\"a\":".repeat(100_000)), None);
        assert_eq!(find_json(&format!("{}{{}}", " ".repeat(MAX_BYTES))), None);
    }
}
