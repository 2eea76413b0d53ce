//! The spellings under which a secret may come back.
//!
//! Escapes (`%41`, `\u0041`, `&#65;`) are undone where the text is searched, since each character
//! may be escaped or not. Here is what changes the whole text: base64, hex, and the like.

use super::text::is_blank;
use std::collections::BTreeSet;

/// One spelling to look for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    pub(super) bytes: Vec<u8>,
    /// The character before it holds some bits of the secret.
    pub(super) ragged_start: bool,
    /// The character after it holds some bits of the secret.
    pub(super) ragged_end: bool,
}

/// Shorter spellings would be found everywhere.
const SHORTEST: usize = 4;
/// Secrets from this length on are also looked for where chance would find shorter ones: turned
/// round, in another case, across white space and across neighbouring texts.
pub(super) const LONG: usize = 8;
/// Lines of a secret with several lines that count as secrets themselves: tools print line by line.
const LONG_LINE: usize = 16;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE32_LOWER: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Returns whether chance will not produce this text.
pub(super) fn is_long(text: &str) -> bool {
    text.chars().filter(|&c| !is_blank(c)).count() >= LONG
}

/// The texts of one secret: itself, and its long lines if it has several.
pub(super) fn searched_texts(secret: &str) -> Vec<&str> {
    let mut texts = vec![secret];
    if secret.trim_end().contains('\n') {
        // The lines around a key are the same for every key.
        let lines = secret
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with("-----"));
        texts.extend(lines.filter(|line| line.chars().count() >= LONG_LINE));
    }
    texts
}

/// Every spelling of a text, as it is found in a text that has white space and invisible characters
/// of its own.
pub(super) fn exact_forms(text: &str) -> BTreeSet<Form> {
    let visible: String = text
        .chars()
        .filter(|&c| !super::text::is_hidden(c))
        .collect();
    let mut forms = spellings(text);
    if visible != text {
        forms.extend(spellings(&visible));
    }
    forms
}

/// Every spelling of a text, as it is found once all white space is gone.
pub(super) fn squeezed_forms(text: &str) -> BTreeSet<Form> {
    let squeeze = |form: Form| match std::str::from_utf8(&form.bytes) {
        Ok(text) => Form {
            bytes: text
                .chars()
                .filter(|&c| !is_blank(c))
                .collect::<String>()
                .into_bytes(),
            ..form
        },
        Err(_) => form,
    };
    let mut forms: BTreeSet<Form> = exact_forms(text).into_iter().map(squeeze).collect();
    // A list of bytes, its numbers side by side.
    forms.extend(plain_form(decimal_spelling(text.as_bytes(), "")));
    forms
        .into_iter()
        .filter(|form| form.bytes.len() >= LONG)
        .collect()
}

fn spellings(text: &str) -> BTreeSet<Form> {
    let mut forms = BTreeSet::new();
    forms.extend(plain_form(text.to_owned()));
    forms.extend(plain_form(text.replace(' ', "+")));
    if is_long(text) {
        forms.extend(plain_form(text.chars().rev().collect()));
        forms.extend(plain_form(text.to_lowercase()));
        forms.extend(plain_form(text.to_uppercase()));
        forms.extend(plain_form(rot13(text)));
        forms.extend(plain_form(decimal_spelling(text.as_bytes(), ",")));
        forms.extend(plain_form(decimal_spelling(text.as_bytes(), ", ")));
        forms.extend(plain_form(decimal_spelling(text.as_bytes(), " ")));
    }
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let escaped = serde_json::to_string(text).map(|quoted| quoted.trim_matches('"').to_owned());
    for bytes in [
        text.as_bytes(),
        &wide,
        escaped.as_deref().unwrap_or(text).as_bytes(),
    ] {
        forms.extend(hex_spellings(bytes).into_iter().flat_map(plain_form));
        for offset in 0..3 {
            forms.extend(encoded_form(bytes, offset, 6, BASE64));
            forms.extend(encoded_form(bytes, offset, 6, BASE64_URL));
        }
        for offset in 0..5 {
            forms.extend(encoded_form(bytes, offset, 5, BASE32));
            forms.extend(encoded_form(bytes, offset, 5, BASE32_LOWER));
        }
    }
    forms
}

fn plain_form(text: String) -> Option<Form> {
    let form = Form {
        bytes: text.into_bytes(),
        ragged_start: false,
        ragged_end: false,
    };
    (form.bytes.len() >= SHORTEST).then_some(form)
}

fn hex_spellings(bytes: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for separator in ["", " ", ":", "-"] {
        let lower: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let lower = lower.join(separator);
        forms.push(lower.to_uppercase());
        forms.push(lower);
    }
    forms
}

fn decimal_spelling(bytes: &[u8], separator: &str) -> String {
    bytes
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(separator)
}

fn rot13(text: &str) -> String {
    let turn = |c: char, first: u8| char::from((c as u8 - first + 13) % 26 + first);
    text.chars()
        .map(|c| match c {
            'a'..='z' => turn(c, b'a'),
            'A'..='Z' => turn(c, b'A'),
            _ => c,
        })
        .collect()
}

/// Returns the characters that do not depend on the text around the secret, if `offset` bytes of
/// something else come before it in its group.
fn encoded_form(bytes: &[u8], offset: usize, bits: usize, alphabet: &[u8]) -> Option<Form> {
    let first = offset * 8;
    let end = (offset + bytes.len()) * 8;
    let bit = |at: usize| bytes[at / 8 - offset] >> (7 - at % 8) & 1;
    let character = |at: usize| {
        let index =
            (at * bits..(at + 1) * bits).fold(0, |index, at| index << 1 | usize::from(bit(at)));
        alphabet[index]
    };
    let form = Form {
        bytes: (first.div_ceil(bits)..end / bits).map(character).collect(),
        ragged_start: !first.is_multiple_of(bits),
        ragged_end: !end.is_multiple_of(bits),
    };
    (form.bytes.len() >= SHORTEST).then_some(form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(text: &str, spelling: &str) -> bool {
        exact_forms(text)
            .iter()
            .any(|form| form.bytes == spelling.as_bytes())
    }

    #[test]
    fn well_known_spellings_are_among_the_forms() {
        assert!(has("hunter2!", "aHVudGVyMi"));
        assert!(has("hunter2!", "h1bnRlcjIh"), "one byte before it");
        assert!(has("hunter2!", "odW50ZXIyI"), "two bytes before it");
        assert!(has("hunter2!", "68756e7465723221"));
        assert!(has("hunter2!", "68:75:6E:74:65:72:32:21"));
        assert!(has("hunter2!", "NB2W45DFOIZC"));
        assert!(has("hunter2!", "!2retnuh"));
        assert!(has("hunter2!", "uhagre2!"));
        assert!(has("two words", "two+words"));
        assert!(has("~~~~????", "fn5-fj8_Pz"));
    }

    #[test]
    fn no_form_is_found_by_chance() {
        for text in ["abcd", "12345678", "ä€😀x"] {
            assert!(
                exact_forms(text)
                    .iter()
                    .all(|form| form.bytes.len() >= SHORTEST),
                "{text}"
            );
            assert!(
                squeezed_forms(text)
                    .iter()
                    .all(|form| form.bytes.len() >= LONG),
                "{text}"
            );
        }
    }

    #[test]
    fn the_lines_of_a_key_are_secrets_themselves() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\nshort\n-----END KEY-----\n";
        assert_eq!(searched_texts(key)[1..], ["MIIEvQIBADANBgkqhkiG"]);
        assert_eq!(searched_texts("one line that is long enough\n").len(), 1);
    }
}
