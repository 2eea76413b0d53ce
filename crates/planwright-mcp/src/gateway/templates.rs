//! Addresses that are made from the templates of servers.

/// Returns whether an address could have been made from a template: its fixed parts in their order,
/// with something in every place between them.
pub(super) fn is_made_from(template: &str, uri: &str) -> bool {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((fixed, after)) = rest.split_once('{') {
        let Some((_, after)) = after.split_once('}') else {
            return false;
        };
        parts.push(fixed);
        rest = after;
    }
    let Some((first, between)) = parts.split_first() else {
        return false;
    };
    let Some(mut left) = uri.strip_prefix(first) else {
        return false;
    };
    for fixed in between {
        let place = left
            .char_indices()
            .skip(1)
            .find(|(place, _)| left[*place..].starts_with(fixed));
        let Some((place, _)) = place else {
            return false;
        };
        left = &left[place + fixed.len()..];
    }
    left.strip_suffix(rest)
        .is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::is_made_from;

    #[test]
    fn an_address_fits_its_template() {
        for (template, uri, fits) in [
            ("test://{id}/data", "test://7/data", true),
            ("test://{id}/data", "test:///data", false),
            ("test://{id}/data", "test://7/other", false),
            ("test://{a}/{b}", "test://x/y", true),
            ("test://{a}/{b}", "test://x/", false),
            ("test://{a}", "other://x", false),
            ("test://fixed", "test://fixed", false),
            ("test://{a", "test://x", false),
            ("test://{a}", "test://ü", true),
            ("{+all}", "anything", true),
        ] {
            assert_eq!(is_made_from(template, uri), fits, "{template} {uri}");
        }
    }
}
