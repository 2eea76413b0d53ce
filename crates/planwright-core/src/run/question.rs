//! The questions to a person, by a step of the plan or by the server of a tool.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One question. Its text comes from a plan or a server, so it is shown and never obeyed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Tells the questions of one call apart.
    pub key: String,
    /// The message for people.
    pub message: String,
    /// JSON Schema of the values asked for.
    pub schema: Value,
    /// A page the person is asked to open instead of answering here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// Everything one call asks before it goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// The questions, in the order of the call.
    pub questions: Vec<Question>,
    /// The server's own note, handed back unread with the answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl Asked {
    /// The beginning of the keys of questions that are asked by neither a plan nor a server.
    pub const OWN_KEYS: &str = "planwright/";
    const SIGN_IN: &str = "planwright/sign-in/";

    /// Asks a person to sign in to a server, in these words, before its tool can be called.
    pub fn for_sign_in(server: &str, message: String, schema: Value, url: Option<String>) -> Self {
        let key = format!("{}{server}", Self::SIGN_IN);
        let question = Question {
            key,
            message,
            schema,
            url,
        };
        Self {
            questions: vec![question],
            state: None,
        }
    }

    /// The server that a person is asked to sign in to, if that is what is asked.
    pub fn sign_in_server(&self) -> Option<&str> {
        match self.questions.as_slice() {
            [question] => question.key.strip_prefix(Self::SIGN_IN),
            _ => None,
        }
    }

    /// What an answer is bound to: an answer to one question is never taken for an answer to the
    /// next.
    pub fn digest(&self) -> Digest {
        Digest::of_json(&serde_json::to_value(self).expect("questions have only string keys"))
    }
}

/// The answer of a person to one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The values, which fit the question's schema.
    Values(Map<String, Value>),
    /// The person does not want to say.
    Decline,
}

/// The questions of one call with a person's replies, in the same order: handed to the next
/// attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// The questions.
    pub asked: Asked,
    /// The answers, one per question.
    pub replies: Vec<Reply>,
}
