//! Text that others wrote, shown so that it cannot pass for something else.

use super::printable::is_invisible;
use std::borrow::Cow;
use unicode_security::confusable_detection::skeleton;

/// The brackets around words of ours inside a value, such as `‹content of step look›`. In the text
/// of others they are spelt out, so that such words cannot be forged.
const BRACKETS: [char; 2] = ['‹', '›'];

/// Spells out what a reader cannot see or would take for something else: control and bidi
/// characters, letters that look like plain ones, and our own brackets. Line breaks stay.
pub fn reveal_hidden(text: &str) -> Cow<'_, str> {
    reveal(text, &BRACKETS)
}

/// The same for a text that words of ours were put into: their brackets stay.
pub(crate) fn reveal_around_words(text: &str) -> Cow<'_, str> {
    reveal(text, &[])
}

fn reveal<'a>(text: &'a str, spelt: &[char]) -> Cow<'a, str> {
    if text.is_ascii() && !text.bytes().any(is_ascii_control) {
        return Cow::Borrowed(text);
    }
    let reveal_all = !is_foreign_text(text);
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| c.is_whitespace())
            .map_or(rest.len(), |at| {
                at + rest[at..].chars().next().map_or(1, char::len_utf8)
            });
        let (word, tail) = rest.split_at(end);
        push_word(word, reveal_all, spelt, &mut shown);
        rest = tail;
    }
    Cow::Owned(shown)
}

/// Spells out our brackets in a text that words of ours are put into.
pub(crate) fn spell_brackets(text: &str) -> Cow<'_, str> {
    if !text.contains(BRACKETS) {
        return Cow::Borrowed(text);
    }
    let mut spelt = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if BRACKETS.contains(&c) {
            spelt.extend(c.escape_unicode());
        } else {
            spelt.push(c);
        }
    }
    Cow::Owned(spelt)
}

fn is_ascii_control(byte: u8) -> bool {
    byte.is_ascii_control() && byte != b'\n'
}

/// Returns whether the text is in a script of its own: it has letters that look like no plain one.
/// Such texts are full of letters that do, and are read as what they are.
fn is_foreign_text(text: &str) -> bool {
    let letters = text.chars().filter(|c| !c.is_ascii() && c.is_alphabetic());
    letters.into_iter().any(|c| !looks_plain(c))
}

/// A word that mixes plain letters and letters that look like them was made to deceive.
fn push_word(word: &str, reveal_all: bool, spelt: &[char], shown: &mut String) {
    let is_mixed = word.chars().any(|c| c.is_ascii_alphanumeric());
    for c in word.chars() {
        let is_hidden = c != '\n' && (c.is_control() || is_invisible(c) || is_odd_space(c));
        let deceives = (is_mixed || reveal_all) && !BRACKETS.contains(&c) && looks_plain(c);
        if is_hidden || deceives || spelt.contains(&c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
}

/// Returns whether this is a space that is not the usual one.
fn is_odd_space(c: char) -> bool {
    c.is_whitespace() && !c.is_ascii()
}

/// Returns whether this is no ASCII character but looks like a letter, a digit or a sign of a path.
fn looks_plain(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    let mut buffer = [0; 4];
    let mut like = skeleton(c.encode_utf8(&mut buffer));
    like.next().is_some_and(|c| {
        c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | ':' | '@' | '\\' | '-' | '_')
    }) && like.all(|c| c.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_and_foreign_texts_stay_as_they_are() {
        for text in [
            "plain text\nof two lines",
            "Größe ∥ 漢字",
            "привет, как дела",
            "naïve café",
            "日本語のテキスト",
        ] {
            assert_eq!(reveal_hidden(text), text);
        }
    }

    #[test]
    fn letters_that_pass_for_others_are_spelt_out() {
        assert_eq!(reveal_hidden("p\u{430}ypal.com"), "p\\u{430}ypal.com");
        assert_eq!(
            reveal_hidden("\u{441}\u{43e}\u{440}\u{435}"),
            "\\u{441}\\u{43e}\\u{440}\\u{435}"
        );
        assert_eq!(reveal_hidden("a\u{2215}b"), "a\\u{2215}b");
    }

    #[test]
    fn what_hides_or_turns_text_is_spelt_out() {
        assert_eq!(
            reveal_hidden("a\u{202e}b\u{200b}\u{1b}c\r"),
            "a\\u{202e}b\\u{200b}\\u{1b}c\\u{d}"
        );
        assert_eq!(reveal_hidden("a\u{a0}b"), "a\\u{a0}b");
        assert_eq!(
            reveal_hidden("‹content of step a›"),
            "\\u{2039}content of step a\\u{203a}"
        );
    }
}
