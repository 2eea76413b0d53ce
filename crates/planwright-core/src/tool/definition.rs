//! One tool as its server describes it.

use crate::digest::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// The operator's name for the server and the server's exact name for the tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ToolName {
    /// Name of the server.
    pub server: String,
    /// Name of the tool at that server.
    pub tool: String,
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.server)?;
        f.write_str(".")?;
        f.write_str(&self.tool)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.to_string()
    }
}

impl TryFrom<String> for ToolName {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (server, tool) = text
            .split_once('.')
            .ok_or("a full tool name is `server.tool`")?;
        Ok(Self {
            server: server.to_owned(),
            tool: tool.to_owned(),
        })
    }
}

/// The treatment of a call whose outcome was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Read-only or idempotent: called again.
    Safe,
    /// Takes an idempotency key: called again with the same key.
    Keyed,
    /// Never called again by itself: a person says what happened.
    Unsafe,
}

impl EffectClass {
    /// Every class.
    pub const ALL: [Self; 3] = [Self::Safe, Self::Keyed, Self::Unsafe];

    /// Returns the word that people are shown. `safe` beside a tool that deletes would mislead: it
    /// only says that the call may be repeated.
    pub fn as_shown(self) -> &'static str {
        match self {
            Self::Safe => "repeatable",
            Self::Keyed => "keyed",
            Self::Unsafe => "once",
        }
    }

    /// Returns the class's word in configuration files and journals.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Keyed => "keyed",
            Self::Unsafe => "unsafe",
        }
    }
}

/// Hints a server gives about a tool. An absent hint means the dangerous answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Annotations {
    /// The tool changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The tool may destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Repeating a call changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool reaches beyond its own system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl Annotations {
    /// The hints of a tool that only reads from a closed world.
    pub fn read_only() -> Self {
        Self {
            read_only_hint: Some(true),
            destructive_hint: Some(false),
            idempotent_hint: Some(true),
            open_world_hint: Some(false),
        }
    }

    /// Returns whether the tool is said to change nothing.
    pub fn is_read_only(&self) -> bool {
        self.read_only_hint == Some(true)
    }

    /// Returns whether the tool may destroy something.
    pub fn is_destructive(&self) -> bool {
        !self.is_read_only() && self.destructive_hint != Some(false)
    }

    /// Returns what these hints make less careful than those before, if they do.
    pub fn loosened_since(&self, before: &Self) -> Option<&'static str> {
        if self.is_read_only() && !before.is_read_only() {
            Some("its server says now that it only reads, and did not before")
        } else if self.is_idempotent() && !before.is_idempotent() && !before.is_read_only() {
            Some("its server says now that it can be repeated, and did not before")
        } else if !self.is_destructive() && before.is_destructive() {
            Some("its server says now that it destroys nothing, and did not before")
        } else if before.open_world_hint == Some(true) && self.open_world_hint != Some(true) {
            Some("its server no longer says that it reaches beyond its own system")
        } else {
            None
        }
    }

    /// Returns whether calls may be repeated.
    pub fn is_idempotent(&self) -> bool {
        self.idempotent_hint == Some(true)
    }
}

/// A tool as its server describes it. Its digest is what an approval pins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// Server and name of the tool.
    #[serde(flatten)]
    pub name: ToolNameParts,
    /// Title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints of the server.
    #[serde(default)]
    pub annotations: Annotations,
}

/// A [`ToolName`] spelt as two fields, as tools are listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolNameParts {
    /// Name of the server.
    pub server: String,
    /// Name of the tool.
    pub name: String,
}

impl ToolDefinition {
    /// A tool whose annotations say nothing, which means the dangerous answer to every question.
    pub fn new(server: &str, name: &str, description: &str, input_schema: Value) -> Self {
        Self {
            name: ToolNameParts {
                server: server.to_owned(),
                name: name.to_owned(),
            },
            title: None,
            description: Some(description.to_owned()),
            input_schema,
            output_schema: None,
            annotations: Annotations::default(),
        }
    }

    /// Adds the schema of the result.
    #[must_use]
    pub fn with_output(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Adds hints.
    #[must_use]
    pub fn with_annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = annotations;
        self
    }

    /// Returns the full name of the tool.
    pub fn tool_name(&self) -> ToolName {
        ToolName {
            server: self.name.server.clone(),
            tool: self.name.name.clone(),
        }
    }

    /// The digest of everything a person or a model could read about the tool.
    pub fn digest(&self) -> Digest {
        Digest::of_json(&json!({
            "server": self.name.server,
            "name": self.name.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
        }))
    }

    /// The class that follows from the annotations, for servers whose word is trusted.
    pub fn annotated_class(&self) -> EffectClass {
        if self.annotations.is_read_only() || self.annotations.is_idempotent() {
            EffectClass::Safe
        } else {
            EffectClass::Unsafe
        }
    }
}
