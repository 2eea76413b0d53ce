//! Names of secrets, and which tools may receive one.

use crate::text::matches_stars;
use crate::tool::ToolName;
use std::fmt;

/// The name of a secret: 1 to 64 ASCII letters, digits, `_` and `-`. It is shown wherever the
/// secret is meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretName(String);

impl SecretName {
    /// The longest name, in characters.
    pub const MAX_CHARS: usize = 64;

    /// Makes a name; `None` if the text cannot be one.
    pub fn new(name: &str) -> Option<Self> {
        let fits = !name.is_empty() && name.len() <= Self::MAX_CHARS;
        let plain = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        (fits && plain).then(|| Self(name.to_owned()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the reference to the secret, as plans, reviews and digests have it.
    pub fn reference(&self) -> String {
        format!("${{secret.{self}}}")
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether a pattern such as `github.*` means this tool. `*` stands for any characters;
/// everything else, also the case of letters, has to be the same.
pub fn matches_tool(pattern: &str, tool: &ToolName) -> bool {
    matches_stars(pattern, &tool.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_exactly_what_it_says() {
        let tool = ToolName {
            server: "github".into(),
            tool: "create_issue".into(),
        };
        for yes in [
            "github.create_issue",
            "github.*",
            "*",
            "*.create_issue",
            "git*.cre*_iss*e",
            "github.create_issue*",
        ] {
            assert!(matches_tool(yes, &tool), "{yes}");
        }
        for no in [
            "",
            "github",
            "github.",
            "GitHub.*",
            "github.create",
            "*.issue",
            "hub.*",
            "git*x*",
            "github.*_issue_",
        ] {
            assert!(!matches_tool(no, &tool), "{no}");
        }
        // The end of one part is not the beginning of the next.
        let short = ToolName {
            server: "a".into(),
            tool: "b".into(),
        };
        assert!(!matches_tool("a.b*b", &short));
    }

    #[test]
    fn a_name_is_plain() {
        assert_eq!(
            SecretName::new("GITHUB_TOKEN-2").unwrap().reference(),
            "${secret.GITHUB_TOKEN-2}"
        );
        for bad in ["", "a.b", "ключ", "a b", &"x".repeat(65)] {
            assert_eq!(SecretName::new(bad), None, "{bad}");
        }
    }
}
