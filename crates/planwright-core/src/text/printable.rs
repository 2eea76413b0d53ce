//! Text that others wrote, made safe to put on a terminal line.

use std::borrow::Cow;

/// Removes everything a reader cannot see or that moves the cursor: control characters, zero-width
/// and bidi marks, fillers and tags. Line breaks and tabs become spaces, so that one line stays one
/// line.
pub fn sanitize_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c.is_control() || is_invisible(c)) {
        return Cow::Borrowed(text);
    }
    let clean = text.chars().filter_map(|c| match c {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => Some(' '),
        _ if c.is_control() || is_invisible(c) => None,
        _ => Some(c),
    });
    Cow::Owned(clean.collect())
}

/// Spells out everything a reader cannot see: the text an approver agrees to must not hide
/// anything.
pub fn escape_invisible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c.is_control() || is_invisible(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c.is_control() || is_invisible(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Spells out everything a reader cannot see in a JSON text, as JSON does: the document stays the
/// same.
pub fn escape_invisible_json(text: &str) -> Cow<'_, str> {
    // Line breaks between values are part of the layout; inside of texts they are escaped already.
    let is_hidden = |c: char| c >= '\u{7f}' && (c.is_control() || is_invisible(c));
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                shown.extend(format!("\\u{unit:04x}").chars());
            }
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Characters that change how text looks, or hide in it, without being seen.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_of_json_are_spelled_out_and_mean_the_same() {
        let value = serde_json::json!({"a\u{202e}": ["\u{9b}x\u{7f}", "\u{e0041}", "é\n"]});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = escape_invisible_json(&text);
        assert!(
            !shown
                .chars()
                .any(|c| c != '\n' && (c.is_control() || is_invisible(c)))
        );
        assert!(shown.contains("é"));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
    }

    #[test]
    fn plain_text_is_not_copied() {
        assert!(matches!(sanitize_line("Größe ∥ 漢字 ✗"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_cannot_be_seen_is_spelt_out() {
        assert_eq!(
            escape_invisible("a\u{202e}b\u{200b}\u{1b}c"),
            "a\\u{202e}b\\u{200b}\\u{1b}c"
        );
        assert!(matches!(escape_invisible("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_cannot_be_seen_is_gone() {
        assert_eq!(sanitize_line("a\u{1b}[31mb\u{7}\0"), "a[31mb");
        assert_eq!(
            sanitize_line("safe\u{202e}elif.exe\u{200b}\u{2066}x\u{e0041}"),
            "safeelif.exex"
        );
        assert_eq!(
            sanitize_line("one\r\ntwo\tthree\u{2028}four\u{9b}5m"),
            "one  two three four5m"
        );
    }
}
