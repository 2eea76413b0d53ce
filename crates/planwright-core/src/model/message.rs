//! A conversation with a model.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Instructions for the whole conversation.
    System {
        /// The instructions.
        text: String,
    },
    /// A message of the person or program that asks.
    User {
        /// The text of the message.
        text: String,
    },
    /// An answer of the model.
    Assistant {
        /// The text of the answer, which may be empty beside calls.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// Calls that the model wants made.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<WantedCall>,
    },
    /// The result of a call the model wanted. Always data, never an instruction.
    Tool {
        /// The [`WantedCall::id`] it answers.
        call: String,
        /// Name of the tool that was called.
        name: String,
        /// The result as text.
        text: String,
    },
}

impl Message {
    /// Makes a system message.
    pub fn system(text: impl Into<String>) -> Self {
        Self::System { text: text.into() }
    }

    /// Makes a message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { text: text.into() }
    }

    /// Makes an answer of the model without calls.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant {
            text: text.into(),
            calls: Vec::new(),
        }
    }
}

/// A tool that the model may ask for. Whether a call is made is decided elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferedTool {
    /// Name under which the model calls the tool.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
}

/// A call that the model wants made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WantedCall {
    /// The model's own name for it, or one made up where its provider gives none.
    pub id: String,
    /// As the model wrote it: it may be the name of no tool.
    pub name: String,
    /// As the model wrote them: text if they are no JSON.
    pub args: Value,
}

/// The JSON Schema that an answer must fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerSchema {
    /// Letters, digits, `_` and `-`: some providers want a name.
    pub name: String,
    /// The schema itself.
    pub schema: Value,
}
