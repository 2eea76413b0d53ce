//! Doors for the fuzzer: what a server says, read as from its pipe, and nothing else.

use super::lines::count_messages;
use super::listing::sift;
use planwright_core::tool::ToolDefinition;
use serde_json::Value;

/// Reads everything a server writes, line by line, and returns how many messages are in it. During
/// a `handshake` answers are read as what a handshake knows.
pub async fn read_frames(written: &[u8], handshake: bool) -> usize {
    count_messages(written, handshake).await
}

/// Reads the tools of an answer to `tools/list` and returns those that can be used.
pub fn read_tools(server: &str, tools: Vec<Value>) -> Vec<ToolDefinition> {
    sift(server, tools).definitions
}
