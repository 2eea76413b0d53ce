//! How models are asked in one role: how freely they write, and how much they think first.

use genai::chat::ReasoningEffort;
use std::str::FromStr;

/// The settings of a role. What is absent is left to the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RoleSettings {
    /// 0 for the likeliest words, up to 2.
    pub temperature: Option<f64>,
    pub effort: Option<Effort>,
}

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Max,
    /// At most so many tokens.
    Tokens(u32),
}

/// A word that says nothing about effort.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no effort: it is one of none, minimal, low, medium, high, max")]
pub struct ParseEffortError(String);

impl FromStr for Effort {
    type Err = ParseEffortError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(match word {
            "none" => Self::None,
            "minimal" => Self::Minimal,
            "low" => Self::Low,
            "medium" => Self::Medium,
            "high" => Self::High,
            "max" => Self::Max,
            other => return Err(ParseEffortError(other.to_owned())),
        })
    }
}

impl Effort {
    pub(super) fn wire(self) -> ReasoningEffort {
        match self {
            Self::None => ReasoningEffort::Zero,
            Self::Minimal => ReasoningEffort::Minimal,
            Self::Low => ReasoningEffort::Low,
            Self::Medium => ReasoningEffort::Medium,
            Self::High => ReasoningEffort::High,
            Self::Max => ReasoningEffort::Max,
            Self::Tokens(tokens) => ReasoningEffort::Budget(tokens),
        }
    }

    pub(super) fn thinks(self) -> bool {
        self != Self::None
    }
}

/// The least and the most tokens that are thought with.
const TOKENS: std::ops::RangeInclusive<u32> = 1..=1_000_000;

impl RoleSettings {
    /// Returns what is wrong with them.
    pub(super) fn problem(&self) -> Option<&'static str> {
        if self
            .temperature
            .is_some_and(|temperature| !(0.0..=2.0).contains(&temperature))
        {
            return Some("`temperature` is not between 0 and 2");
        }
        match self.effort {
            Some(Effort::Tokens(tokens)) if !TOKENS.contains(&tokens) => {
                Some("`thinking_tokens` is not between 1 and 1000000")
            }
            _ => None,
        }
    }
}
