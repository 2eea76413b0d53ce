//! Numbers of things in words: one call, two calls.

use std::fmt::Display;

/// Writes a number with the word for it.
pub(crate) fn count_of(number: impl Display, one: &str, many: &str) -> String {
    let number = number.to_string();
    let word = if number == "1" { one } else { many };
    format!("{number} {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_said_otherwise_than_none_and_many() {
        let said = |number: u64| count_of(number, "entry", "entries");
        assert_eq!(
            [0, 1, 2, 11].map(said),
            ["0 entries", "1 entry", "2 entries", "11 entries"]
        );
    }
}
