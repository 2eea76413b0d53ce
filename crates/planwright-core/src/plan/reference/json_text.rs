//! Text that is JSON: most servers answer with it, and references reach into it.
//!
//! The value stays the text that it was. It is read where a path asks for a part of it, kept for as
//! long as one set of arguments is resolved, and stored nowhere.

use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Longer texts are not read: their parts would take many times their size.
const MAX_TEXT: usize = 8 << 20;

/// Reads a text that is a JSON object or list. The recursion limit of serde_json applies.
pub(crate) fn read_json_text(text: &str) -> Option<Value> {
    let trimmed = text.trim_start();
    if text.len() > MAX_TEXT || !trimmed.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(trimmed).ok()
}

/// Texts that were read, so that each is read once however many parts of it are asked for.
#[derive(Debug, Default)]
pub(super) struct JsonTexts(BTreeMap<usize, Option<Rc<Value>>>);

impl JsonTexts {
    /// Reads a text that stays where it is for as long as this exists: one of the run's values, or
    /// a part of a text that was read here.
    pub(super) fn read(&mut self, text: &str) -> Option<Rc<Value>> {
        let place = text.as_ptr().addr();
        let read = || read_json_text(text).map(Rc::new);
        self.0.entry(place).or_insert_with(read).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_objects_and_lists_are_read() {
        assert_eq!(read_json_text(" \n[1]"), Some(json!([1])));
        assert_eq!(
            read_json_text("{\"a\": null}\n"),
            Some(json!({ "a": null }))
        );
        for text in [
            "",
            "1",
            "\"a\"",
            "null",
            "[1",
            "{a: 1}",
            "[1] and more",
            "# [1]",
        ] {
            assert_eq!(read_json_text(text), None, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(read_json_text(&deep), None);
        let long = format!("[\"{}\"]", "x".repeat(MAX_TEXT));
        assert_eq!(read_json_text(&long), None);
    }
}
