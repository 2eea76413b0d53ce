//! The client of the gateway behind a call.

use super::{BoxFuture, ClientInput};
use serde_json::{Map, Value};
use std::fmt;

/// The client behind a call, for what its server tells it and asks of it besides the answer. What is
/// said here is in the words of the protocol, and passed on as it is: nothing of it is answered in
/// the client's place.
pub trait CallClient: Send + Sync + fmt::Debug {
    /// What the client can be asked for, and what it answered to what the server wanted before.
    fn input(&self) -> ClientInput;

    /// The level of the server's messages that the client wants to hear. Without one it is told
    /// what a server says by itself, and a server that waits to be asked says nothing.
    fn log_level(&self) -> Option<String>;

    /// Passes on a message of the server's log. It never waits.
    fn log(&self, message: &Value);

    /// Asks the client all of these while the call waits, requests of the protocol by their keys.
    /// Nothing if it does not answer every one of them.
    fn ask(&self, requests: Map<String, Value>) -> BoxFuture<'static, Option<Map<String, Value>>>;
}
