//! Suggestions for mistyped names.

/// Names longer than this are not compared: the cost is their product.
const MAX_LENGTH: usize = 128;
/// Names looked at. A catalog or a plan beyond this still gets suggestions, from its first names.
const MAX_NAMES: usize = 2_000;

/// Returns up to three of `names` that a person who wrote `name` may have meant, nearest first.
pub fn nearest_names(name: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    if wanted.len() > MAX_LENGTH {
        return Vec::new();
    }
    // A third of the letters may be wrong; of a very short name, one.
    let tolerance = (wanted.len() / 3).max(1);
    let mut found: Vec<(usize, String)> = Vec::new();
    for candidate in names.into_iter().take(MAX_NAMES) {
        let letters: Vec<char> = candidate
            .to_lowercase()
            .chars()
            .take(MAX_LENGTH + 1)
            .collect();
        let distance =
            if letters.len() > MAX_LENGTH || letters.len().abs_diff(wanted.len()) > tolerance {
                // Too different in length for a typing mistake, but one may be a part of the other.
                let part = wanted.len() >= 3
                    && (starts_or_ends(&letters, &wanted) || starts_or_ends(&wanted, &letters));
                part.then_some(tolerance)
            } else {
                Some(strsim::generic_levenshtein(&wanted, &letters))
                    .filter(|&distance| distance <= tolerance)
            };
        if let Some(distance) = distance
            && !found.iter().any(|(_, known)| *known == candidate)
        {
            found.push((distance, candidate));
        }
    }
    found.sort();
    found
        .into_iter()
        .take(3)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// Returns a suggestion in words, if there is anything to suggest.
pub(crate) fn did_you_mean(names: &[String]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    Some(format!("did you mean {}?", quoted.join(" or ")))
}

fn starts_or_ends(text: &[char], part: &[char]) -> bool {
    part.len() >= 3 && (text.starts_with(part) || text.ends_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn the_nearest_names_come_first() {
        let known = names(&[
            "write_file",
            "read_file",
            "red_file",
            "search",
            "fs.read_file",
        ]);
        assert_eq!(nearest_names("raed_file", known), ["red_file", "read_file"]);
    }

    #[test]
    fn a_bare_name_finds_its_full_name() {
        assert_eq!(
            nearest_names("read_file", names(&["fs.read_file", "x"])),
            ["fs.read_file"]
        );
    }

    #[test]
    fn nothing_near_is_no_suggestion() {
        assert!(nearest_names("deploy", names(&["read_file", "a"])).is_empty());
        assert!(nearest_names(&"x".repeat(100_000), names(&["x"])).is_empty());
    }
}
