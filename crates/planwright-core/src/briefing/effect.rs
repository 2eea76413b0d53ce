//! What a call does to the world, in plain words.

use crate::tool::{Catalog, KnownTool};
use schemars::JsonSchema;
use serde::Serialize;

/// What a step does to the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Effect {
    /// The kind, for ordering and counting.
    pub kind: EffectKind,
    /// What happens, in words without a subject: "overwrites notes.txt".
    pub words: String,
}

/// Kinds of effects, the most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// Anything can happen: the tool is unknown, or a program of its own.
    Unknown,
    /// May overwrite or delete something.
    Destroys,
    /// Changes or adds something.
    Changes,
    /// Changes nothing here, and sends something beyond this machine.
    Sends,
    /// Only reads.
    Reads,
    /// Calls nothing.
    Nothing,
}

impl EffectKind {
    /// Returns whether something may be different afterwards, here or elsewhere.
    pub fn changes_something(self) -> bool {
        match self {
            Self::Unknown | Self::Destroys | Self::Changes | Self::Sends => true,
            Self::Reads | Self::Nothing => false,
        }
    }

    /// Returns whether an undo would make sense.
    pub fn wants_undo(self) -> bool {
        matches!(self, Self::Unknown | Self::Destroys | Self::Changes)
    }
}

impl Effect {
    pub(super) fn new(kind: EffectKind, words: impl Into<String>) -> Self {
        Self {
            kind,
            words: words.into(),
        }
    }

    /// What the tool's own server says about its calls, and whose account they are made with.
    pub(super) fn of_tool(tool: &KnownTool) -> Self {
        let mut effect = Self::of_definition(tool);
        if tool.personal {
            effect.words = format!(
                "{}; uses the account at {} of the person who starts the run, or approves it for an agent",
                effect.words, tool.name.server
            );
        }
        effect
    }

    fn of_definition(tool: &KnownTool) -> Self {
        let annotations = &tool.definition.annotations;
        let reaches_out = annotations.open_world_hint != Some(false);
        if tool.is_read_only() {
            return if annotations.open_world_hint == Some(true) {
                Self::new(
                    EffectKind::Sends,
                    "changes nothing here, but sends its arguments to another machine",
                )
            } else {
                Self::new(EffectKind::Reads, "only reads")
            };
        }
        if !tool.trusted {
            let words = "may do anything: its server is not trusted to say what its tools do";
            return Self::new(EffectKind::Unknown, words);
        }
        let elsewhere = if reaches_out {
            ", here or elsewhere"
        } else {
            ""
        };
        if annotations.is_destructive() {
            let words = format!("may overwrite or delete something{elsewhere}");
            return Self::new(EffectKind::Destroys, words);
        }
        Self::new(
            EffectKind::Changes,
            format!("adds or changes something{elsewhere}"),
        )
    }

    /// What the calls of a tool do, by the name the plan uses.
    pub fn of_name(name: &str, catalog: &Catalog) -> Self {
        match catalog.resolve(name) {
            Ok(tool) => Self::of_tool(tool),
            Err(_) => Self::new(EffectKind::Unknown, "is not known here"),
        }
    }
}
