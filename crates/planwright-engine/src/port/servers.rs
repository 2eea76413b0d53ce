//! What servers offer besides tools, for clients that stand behind a gateway.

use super::BoxFuture;
use serde_json::{Map, Value};
use std::fmt;
use tokio::sync::watch;

/// A question to one server that changes nothing. Answers are as the protocol has them.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerQuestion {
    /// The resources it lists.
    Resources,
    /// The templates of addresses it lists.
    ResourceTemplates,
    /// What is at this address.
    Resource(String),
    /// The prompts it lists.
    Prompts,
    /// One prompt, with its arguments.
    Prompt {
        /// The name that the server knows.
        name: String,
        /// The values of its parameters.
        arguments: Map<String, Value>,
    },
    /// How a value that a person types may go on: the parameters of `completion/complete`.
    Completion(Value),
}

/// Why a server gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// There is no such server, or it does not offer that.
    #[error("the server does not offer that")]
    NotOffered,
    /// The server refused, with the code of the protocol.
    #[error("{message}")]
    Refused {
        /// The code of the protocol.
        code: i32,
        /// The server's own words.
        message: String,
    },
    /// The server cannot be reached, or did not answer in time.
    #[error("{0}")]
    Unavailable(String),
}

/// The servers behind a gateway.
pub trait Servers: Send + Sync + fmt::Debug {
    /// Their names, in the order of the configuration.
    fn names(&self) -> Vec<String>;

    /// Asks one of them. Lists hold all pages.
    fn ask(
        &self,
        server: &str,
        question: ServerQuestion,
    ) -> BoxFuture<'static, Result<Value, ServerError>>;

    /// Counts the changes of their lists of tools.
    fn changes(&self) -> watch::Receiver<u64>;
}
