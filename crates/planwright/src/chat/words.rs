//! A line as the words of a command.

/// Splits a line as a shell would: quotes keep blanks together, a backslash takes the next
/// character as it is. Nothing is expanded.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '\\') => match characters.next() {
                Some(next) => word.get_or_insert_default().push(next),
                None => return Err("the line ends in a backslash".to_owned()),
            },
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("a {open} is never closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn quotes_keep_words_together_and_nothing_is_expanded() {
        let words = |line: &str| split(line).unwrap();
        assert_eq!(words("plan  show p"), ["plan", "show", "p"]);
        assert_eq!(
            words(r#"plan create "read it, then $HOME" 'a "b"' c\ d """#),
            [
                "plan",
                "create",
                "read it, then $HOME",
                "a \"b\"",
                "c d",
                "",
            ]
        );
        assert_eq!(words("   "), Vec::<String>::new());
        for open in ["plan \"x", "it's", "x\\"] {
            assert!(split(open).is_err(), "{open}");
        }
    }
}
