//! What a step other than a tool call does: asks a model, an executor or a person, or runs a plan.

use crate::id::PlanId;
use crate::json::is_default;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A question to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Think {
    /// The text the model is asked. It may hold `${references}`.
    pub prompt: String,
    /// The answer must be JSON of this schema; text when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// A configured model; the plan's `executorModel` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// An instruction for an executor that works with the plan's tools and nothing more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Agent {
    /// The work, in words. It may hold `${references}`.
    pub instruction: String,
    /// The tool the author expects the executor to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The operation of that tool the author has in mind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The object of the work, such as a file. It may hold `${references}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// A configured executor; the built-in tool loop when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// A configured model for the built-in tool loop; the plan's `executorModel` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How often the model may be asked. 20 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u32>,
    /// How many calls it may make. 50 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
    /// How many tokens its model may read and write together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// True: instead of ending with the model's text, the step asks a person what they say to it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub converse: bool,
}

impl Agent {
    /// The executor of a session: the client of the gateway, which no plan starts. It is given
    /// nothing; each of its calls is judged by itself.
    pub const CLIENT: &str = "client";
    /// Turns of an executor when the step does not say.
    pub const DEFAULT_MAX_TURNS: u32 = 20;
    /// Calls of an executor when the step does not say.
    pub const DEFAULT_MAX_CALLS: u32 = 50;
    /// A conversation is as long as the person wants it to be, within reason.
    const MAX_IN_CONVERSATION: u32 = 1000;

    /// Returns whether the work is what a client of the gateway calls.
    pub fn is_client(&self) -> bool {
        self.executor.as_deref() == Some(Self::CLIENT)
    }

    /// Returns how often the model may be asked, at least once.
    pub fn max_turns(&self) -> u32 {
        let default = if self.converse {
            Self::MAX_IN_CONVERSATION
        } else {
            Self::DEFAULT_MAX_TURNS
        };
        self.max_turns.unwrap_or(default).max(1)
    }

    /// Returns the number of calls the executor may make.
    pub fn max_calls(&self) -> u32 {
        let default = if self.converse {
            Self::MAX_IN_CONVERSATION
        } else {
            Self::DEFAULT_MAX_CALLS
        };
        self.max_calls.unwrap_or(default)
    }
}

/// A question to a person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The question. It may hold `${references}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// JSON Schema of the values asked for.
    pub schema: Value,
}

/// Another plan or template, with its inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubPlan {
    /// Id of the plan or template.
    #[schemars(
        with = "String",
        regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?$")
    )]
    pub id: PlanId,
    /// Values for its inputs. Strings may hold `${references}`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
}
