//! The ways to ask for JSON. Providers differ, and servers that speak OpenAI's format differ most.

use super::options::ProviderKind;
use std::fmt;
use std::str::FromStr;

/// The way an answer of a schema is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The provider holds the answer to a JSON Schema.
    JsonSchema,
    /// The provider holds the answer to JSON; some servers take the schema along under names of
    /// their own, and for the others it is in the prompt.
    JsonObject,
    /// The model must call a tool whose arguments are the answer.
    Tool,
    /// The schema is in the prompt, and the answer is looked for in the text.
    Text,
}

impl Dialect {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JsonSchema => "json_schema",
            Self::JsonObject => "json_object",
            Self::Tool => "tool",
            Self::Text => "text",
        }
    }

    /// Returns whether the prompt has to say what the schema is.
    pub(super) fn in_prompt(self) -> bool {
        match self {
            Self::JsonObject | Self::Text => true,
            Self::JsonSchema | Self::Tool => false,
        }
    }

    /// The way to try first.
    pub(super) fn first(kind: ProviderKind, structured: Structured) -> Self {
        match (structured, kind) {
            (Structured::Always(dialect), _) => dialect,
            (Structured::Auto, ProviderKind::OpenAi | ProviderKind::Gemini) => Self::JsonSchema,
            // Every model of theirs can call tools, and only some take schemas.
            (Structured::Auto, ProviderKind::Anthropic) => Self::Tool,
        }
    }

    /// The way to try when the provider does not know this one.
    pub(super) fn after(self, structured: Structured) -> Option<Self> {
        if structured != Structured::Auto {
            return None;
        }
        match self {
            Self::JsonSchema => Some(Self::JsonObject),
            Self::JsonObject | Self::Tool => Some(Self::Text),
            Self::Text => None,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The operator's choice of a dialect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Structured {
    /// The best one that the provider knows; found out by asking.
    #[default]
    Auto,
    Always(Dialect),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no way to ask for JSON: it is one of auto, json_schema, json_object, tool, text")]
pub struct UnknownDialect(pub String);

impl FromStr for Structured {
    type Err = UnknownDialect;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let all = [
            Dialect::JsonSchema,
            Dialect::JsonObject,
            Dialect::Tool,
            Dialect::Text,
        ];
        match all.into_iter().find(|dialect| dialect.as_str() == word) {
            Some(dialect) => Ok(Self::Always(dialect)),
            None if word == "auto" => Ok(Self::Auto),
            None => Err(UnknownDialect(word.to_owned())),
        }
    }
}
