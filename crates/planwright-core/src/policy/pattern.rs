//! Patterns that name the tools of a rule, a cap or a guard.

use crate::text::Wildcard;
use crate::tool::{FoldedName, fold_name};
use std::fmt;

/// A pattern over tool names: `server.tool`, `mcp__server__tool`, or the bare name of a tool of any
/// server. `*` stands for any text, `?` for one character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPattern {
    source: String,
    exact: PatternForm,
    folded: PatternForm,
}

/// One spelling of a pattern: for the whole name, or for the tool's own part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternForm {
    Full { server: Wildcard, tool: Wildcard },
    Bare(Wildcard),
}

/// The reason a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParsePatternError {
    /// The pattern is empty.
    #[error("the tool pattern is empty")]
    Empty,
    /// The pattern has this many bytes.
    #[error("the tool pattern has {0} bytes, at most {MAX_PATTERN} are read")]
    TooLong(usize),
}

const MAX_PATTERN: usize = 256;

impl ToolPattern {
    /// Parses a pattern.
    pub fn parse(source: &str) -> Result<Self, ParsePatternError> {
        if source.trim().is_empty() {
            return Err(ParsePatternError::Empty);
        }
        if source.len() > MAX_PATTERN {
            return Err(ParsePatternError::TooLong(source.len()));
        }
        Ok(Self {
            source: source.to_owned(),
            exact: PatternForm::parse(source, Wildcard::new),
            folded: PatternForm::parse(source, |part| Wildcard::new(&fold_pattern(part))),
        })
    }

    /// Returns whether exactly this name is meant. The only comparison that may allow something.
    pub fn matches_exactly(&self, name: &FoldedName) -> bool {
        self.exact.matches(&name.server.exact, &name.tool.exact)
    }

    /// The part that names servers, as it is written.
    pub(super) fn server_text(&self) -> Option<&str> {
        split_tool_name(&self.source).map(|(server, _)| server)
    }

    /// Returns whether this name, or one that looks like it, is meant.
    pub fn matches_alike(&self, name: &FoldedName) -> bool {
        self.matches_exactly(name) || self.folded.matches(&name.server.folded, &name.tool.folded)
    }
}

/// A pattern over the names of servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerPattern {
    source: String,
    exact: Wildcard,
    folded: Wildcard,
}

impl ServerPattern {
    pub(super) fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            exact: Wildcard::new(source),
            folded: Wildcard::new(&fold_pattern(source)),
        }
    }

    /// The pattern as it is written.
    pub(super) fn text(&self) -> &str {
        &self.source
    }

    pub(super) fn matches_exactly(&self, name: &FoldedName) -> bool {
        self.exact.matches(&name.server.exact)
    }

    pub(super) fn matches_alike(&self, name: &FoldedName) -> bool {
        self.matches_exactly(name) || self.folded.matches(&name.server.folded)
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl PatternForm {
    fn parse(source: &str, wildcard: impl Fn(&str) -> Wildcard) -> Self {
        match split_tool_name(source) {
            Some((server, tool)) => Self::Full {
                server: wildcard(server),
                tool: wildcard(tool),
            },
            None => Self::Bare(wildcard(source)),
        }
    }

    fn matches(&self, server: &str, tool: &str) -> bool {
        match self {
            Self::Full {
                server: servers,
                tool: tools,
            } => servers.matches(server) && tools.matches(tool),
            Self::Bare(tools) => tools.matches(tool),
        }
    }
}

/// Splits a full name into its server and its tool.
fn split_tool_name(name: &str) -> Option<(&str, &str)> {
    match name.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__"),
        None => name.split_once('.'),
    }
}

/// Folds the text of a pattern and leaves its signs.
fn fold_pattern(pattern: &str) -> String {
    let mut folded = String::new();
    for piece in pattern.split_inclusive(['*', '?']) {
        let text = piece.trim_end_matches(['*', '?']);
        folded.push_str(&fold_name(text));
        folded.push_str(&piece[text.len()..]);
    }
    folded
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
}
