//! Roles of models, the tokens they used and their cost.

use crate::json::is_default;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

/// The kind of work a model is asked for. Each role may have a model of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelRole {
    /// Writes plans.
    Planner,
    /// Looks at runs: is it going well, what has to change, does a criterion hold.
    Reflector,
    /// Does the work of `think` and `agent` steps.
    Executor,
    /// Talks with a person.
    Chat,
}

impl ModelRole {
    /// All roles, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Planner, Self::Reflector, Self::Executor, Self::Chat];

    /// Returns the name of the role in configuration files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Reflector => "reflector",
            Self::Executor => "executor",
            Self::Chat => "chat",
        }
    }
}

impl fmt::Display for ModelRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a text that names no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no role of a model: it is one of planner, reflector, executor, chat")]
pub struct ParseModelRoleError(pub String);

impl FromStr for ModelRole {
    type Err = ParseModelRoleError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == word);
        found.ok_or_else(|| ParseModelRoleError(word.to_owned()))
    }
}

/// Tokens, as the provider counted them, or as they were estimated where it does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenUsage {
    /// Tokens that were read.
    pub input: u64,
    /// Tokens that were written.
    pub output: u64,
    /// Part of `input` that the provider had read before.
    #[serde(skip_serializing_if = "is_default")]
    pub cached: u64,
    /// The provider did not count: this follows from the length of the texts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl TokenUsage {
    /// Returns the tokens read and written together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// About how many tokens a text of this many bytes has.
    pub fn estimate(bytes: usize) -> u64 {
        (bytes as u64).div_ceil(4)
    }
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.estimated = self.estimated || other.estimated;
    }
}

/// Money, in millionths of a dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(pub u64);

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// One model was asked something and answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelUse {
    /// Role in which the model was asked.
    pub role: ModelRole,
    /// As it is configured, `provider/name`.
    pub model: String,
    /// Tokens of the request and the answer.
    pub usage: TokenUsage,
    /// Absent where no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}
