//! Patterns over names: `*` stands for any text, `?` for one character. The only place that knows
//! the library that matches them.
//!
//! Rules about tools rest on this, so a pattern has exactly two signs and no others: a bracket or a
//! backslash in a tool's name is compared as it is. globset was tried and rejected: its `?` is one
//! byte, so that a rule with `?` would miss names with other letters, and it reads brackets.

use wildmatch::WildMatchPattern;

/// A pattern with `*` and `?`. Matching never costs more than pattern × text comparisons.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wildcard(WildMatchPattern<'*', '?'>);

impl Eq for Wildcard {}

impl Wildcard {
    pub(crate) fn new(pattern: &str) -> Self {
        Self(WildMatchPattern::new(pattern))
    }

    /// Returns whether the pattern covers the whole text.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.0.matches(text)
    }
}

/// No character: it stands where the library wants a sign for one character.
const NO_SIGN: char = '\u{10ffff}';

/// Returns whether a pattern in which only `*` is a sign covers the whole text.
pub(crate) fn matches_stars(pattern: &str, text: &str) -> bool {
    // Such a pattern could otherwise match any character in its place.
    !pattern.contains(NO_SIGN) && WildMatchPattern::<'*', NO_SIGN>::new(pattern).matches(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The meaning of a pattern, written down as plainly as possible.
    fn means(pattern: &[char], text: &[char], one: Option<char>) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('*', rest)) => (0..=text.len()).any(|taken| means(rest, &text[taken..], one)),
            Some((sign, rest)) => text.split_first().is_some_and(|(first, after)| {
                (Some(*sign) == one || sign == first) && means(rest, after, one)
            }),
        }
    }

    fn each_text(alphabet: &[char], length: usize, visit: &mut impl FnMut(&str)) {
        let mut texts = vec![String::new()];
        for _ in 0..=length {
            for text in &texts {
                visit(text);
            }
            texts = texts
                .iter()
                .flat_map(|text| alphabet.iter().map(move |letter| format!("{text}{letter}")))
                .collect();
        }
    }

    #[test]
    fn patterns_mean_the_same_for_every_short_pattern_and_text() {
        let mut texts = Vec::new();
        each_text(&['a', 'é', '[', '?'], 4, &mut |text| {
            texts.push(text.to_owned());
        });
        each_text(&['a', 'é', '[', '*', '?'], 4, &mut |pattern| {
            let signs: Vec<char> = pattern.chars().collect();
            let wildcard = Wildcard::new(pattern);
            for text in &texts {
                let letters: Vec<char> = text.chars().collect();
                assert_eq!(
                    wildcard.matches(text),
                    means(&signs, &letters, Some('?')),
                    "{pattern} {text}"
                );
                assert_eq!(
                    matches_stars(pattern, text),
                    means(&signs, &letters, None),
                    "{pattern} {text}"
                );
            }
        });
    }

    #[test]
    fn a_hostile_pattern_ends_soon() {
        assert!(!Wildcard::new(&"*a".repeat(100)).matches(&"a".repeat(99)));
        assert!(Wildcard::new(&"*".repeat(200)).matches(""));
        assert!(!Wildcard::new("?").matches(""));
        assert!(!matches_stars("\u{10ffff}", "a"));
    }
}
