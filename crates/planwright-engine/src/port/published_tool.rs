//! A tool as a worker makes it known to other processes.

use planwright_core::digest::Digest;
use planwright_core::tool::{EffectClass, KnownTool, ToolDefinition};
use serde::{Deserialize, Serialize};

/// A tool that a worker has: its definition, and what the operator of the worker decided about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedTool {
    /// The tool as its server describes it.
    pub definition: ToolDefinition,
    /// The digest that an approval pins.
    pub digest: Digest,
    /// The effect class of its calls.
    pub class: EffectClass,
    /// True if the server's word about its tools is taken.
    pub trusted: bool,
    /// The argument for the idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_argument: Option<String>,
    /// Why its server's word about it is not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// True if the program of the worker makes it of something else.
    #[serde(default)]
    pub made_here: bool,
}

impl PublishedTool {
    /// Makes a tool known. One that is called with the account of a person is not: their sign-ins do not travel.
    pub fn of(tool: &KnownTool) -> Option<Self> {
        (!tool.personal).then(|| Self {
            definition: tool.definition.clone(),
            digest: tool.digest(),
            class: tool.class,
            trusted: tool.trusted,
            key_argument: tool.key_argument.clone(),
            doubt: tool.doubt.clone(),
            made_here: tool.made_here,
        })
    }

    /// The tool as plans are validated against it.
    pub fn into_known_tool(self) -> KnownTool {
        let mut tool = KnownTool::new(self.definition, self.class).with_digest(self.digest);
        tool.trusted = self.trusted;
        tool.key_argument = self.key_argument;
        tool.doubt = self.doubt;
        tool.made_here = self.made_here;
        tool
    }
}
