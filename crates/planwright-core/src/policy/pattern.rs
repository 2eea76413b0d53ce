//! Which tools a rule, a cap or a budget speaks of.

use crate::tool::{FoldedName, fold_name};
use std::fmt;

/// A glob over tool names: `server.tool`, `mcp__server__tool`, or the bare name of a tool of any
/// server. `*` stands for any text, `?` for one character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPattern {
    source: String,
    exact: Form,
    folded: Form,
}

/// One spelling of a pattern: for the whole name, or for the tool's own part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Full { server: String, tool: String },
    Bare(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParsePatternError {
    #[error("the tool pattern is empty")]
    Empty,
    #[error("the tool pattern has {0} bytes, at most {MAX_PATTERN} are read")]
    TooLong(usize),
}

const MAX_PATTERN: usize = 256;

impl ToolPattern {
    pub fn parse(source: &str) -> Result<Self, ParsePatternError> {
        if source.trim().is_empty() {
            return Err(ParsePatternError::Empty);
        }
        if source.len() > MAX_PATTERN {
            return Err(ParsePatternError::TooLong(source.len()));
        }
        let (exact, folded) = match split(source) {
            Some((server, tool)) => (
                Form::Full {
                    server: server.to_owned(),
                    tool: tool.to_owned(),
                },
                Form::Full {
                    server: fold_glob(server),
                    tool: fold_glob(tool),
                },
            ),
            None => (Form::Bare(source.to_owned()), Form::Bare(fold_glob(source))),
        };
        Ok(Self {
            source: source.to_owned(),
            exact,
            folded,
        })
    }

    /// Whether exactly this name is meant. The only comparison that may allow something.
    pub fn matches_exactly(&self, name: &FoldedName) -> bool {
        self.exact.matches(&name.server.exact, &name.tool.exact)
    }

    /// Whether this name, or one that looks like it, is meant.
    pub fn matches_alike(&self, name: &FoldedName) -> bool {
        self.matches_exactly(name) || self.folded.matches(&name.server.folded, &name.tool.folded)
    }
}

/// A glob over the names of servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerPattern {
    exact: String,
    folded: String,
}

impl ServerPattern {
    pub(super) fn new(source: &str) -> Self {
        Self {
            exact: source.to_owned(),
            folded: fold_glob(source),
        }
    }

    pub(super) fn matches_exactly(&self, name: &FoldedName) -> bool {
        glob(&self.exact, &name.server.exact)
    }

    pub(super) fn matches_alike(&self, name: &FoldedName) -> bool {
        self.matches_exactly(name) || glob(&self.folded, &name.server.folded)
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl Form {
    fn matches(&self, server: &str, tool: &str) -> bool {
        match self {
            Self::Full {
                server: servers,
                tool: tools,
            } => glob(servers, server) && glob(tools, tool),
            Self::Bare(tools) => glob(tools, tool),
        }
    }
}

/// The server and the tool in a full name.
fn split(name: &str) -> Option<(&str, &str)> {
    match name.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__"),
        None => name.split_once('.'),
    }
}

/// Folds the text of a glob and leaves its signs.
fn fold_glob(glob: &str) -> String {
    let mut folded = String::new();
    for piece in glob.split_inclusive(['*', '?']) {
        let text = piece.trim_end_matches(['*', '?']);
        folded.push_str(&fold_name(text));
        folded.push_str(&piece[text.len()..]);
    }
    folded
}

/// Matches by going back to the last `*` only: never more than pattern × text comparisons.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(&sign) if sign == '?' || sign == text[read] => {
                at += 1;
                read += 1;
            }
            Some(_) | None => match star {
                Some((place, taken)) => {
                    star = Some((place, taken + 1));
                    (at, read) = (place + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&sign| sign == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolName;

    fn name(text: &str) -> FoldedName {
        FoldedName::new(&ToolName::try_from(text.to_owned()).unwrap())
    }

    fn pattern(text: &str) -> ToolPattern {
        ToolPattern::parse(text).unwrap()
    }

    #[test]
    fn a_pattern_names_a_tool_in_full_bare_or_as_hosts_write_it() {
        for text in [
            "fs.write_file",
            "write_file",
            "mcp__fs__write_file",
            "fs.*",
            "*",
            "write_*",
            "?s.write*e",
        ] {
            assert!(
                pattern(text).matches_exactly(&name("fs.write_file")),
                "{text}"
            );
        }
        for text in [
            "fs",
            "fs.read_file",
            "git.*",
            "write",
            "mcp__fs__read",
            "*.read*",
        ] {
            assert!(
                !pattern(text).matches_alike(&name("fs.write_file")),
                "{text}"
            );
        }
    }

    #[test]
    fn look_alikes_are_never_exact() {
        for text in [
            "fs.Write_File",
            "FS.write_file",
            "fs.writе_file",
            "fs.write-file",
        ] {
            assert!(
                !pattern("fs.write_file").matches_exactly(&name(text)),
                "{text}"
            );
            assert!(
                pattern("fs.write_file").matches_alike(&name(text)),
                "{text}"
            );
            assert!(pattern("write_*").matches_alike(&name(text)), "{text}");
        }
    }

    #[test]
    fn a_hostile_glob_ends_soon() {
        assert!(!glob(&"*a".repeat(100), &"a".repeat(99)));
        assert!(glob(&"*".repeat(200), ""));
        assert!(!glob("?", ""));
    }
}
