//! The offers of servers besides tools, for clients that stand behind a gateway.

use super::BoxFuture;
use serde_json::{Map, Value};
use std::fmt;
use tokio::sync::{broadcast, watch};

/// A question to one server that changes nothing in the world. Answers are as the protocol has them.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerQuestion {
    /// The resources it lists.
    Resources,
    /// The templates of addresses it lists.
    ResourceTemplates,
    /// What is at this address.
    Resource {
        /// The address.
        uri: String,
        /// The answers of the client to questions about it, and what it can be asked.
        input: ClientInput,
    },
    /// The prompts it lists.
    Prompts,
    /// One prompt, with its arguments.
    Prompt {
        /// The name that the server knows.
        name: String,
        /// The values of its parameters.
        arguments: Map<String, Value>,
        /// The answers of the client to questions about it, and what it can be asked.
        input: ClientInput,
    },
    /// How a value that a person types may go on: the parameters of `completion/complete`.
    Completion(Value),
    /// The level of the messages that clients want to hear.
    LogLevel(String),
    /// Tell of changes of what is at this address.
    Watch(String),
    /// Tell of them no more.
    Unwatch(String),
}

/// What the client of the gateway has to say to a server that wants more than it was told.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientInput {
    /// The abilities of the client, as it declares them.
    pub capabilities: Option<Value>,
    /// Its answers, by the keys of the questions.
    pub responses: Map<String, Value>,
    /// The server's own note about what it asked.
    pub state: Option<String>,
}

/// The news that servers tell by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerNews {
    /// A server has other prompts.
    Prompts,
    /// A server has other resources.
    Resources,
    /// What is at this address of this server changed.
    Resource {
        /// The name of the server.
        server: String,
        /// The address.
        uri: String,
    },
}

/// Why a server gave no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
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
        /// The data that it says besides.
        data: Option<Value>,
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

    /// Subscribes to the news that they tell from now on.
    fn news(&self) -> broadcast::Receiver<ServerNews>;
}
