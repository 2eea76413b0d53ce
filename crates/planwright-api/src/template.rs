//! Templates as other programs see them.

use serde::Serialize;
use serde_json::Value;

/// One template in `template list --json`, and what `template show --json` prints.
#[derive(Debug, Clone, Serialize)]
pub struct TemplateLine {
    pub id: String,
    pub title: String,
    pub version: u32,
    pub steps: usize,
    pub inputs: Vec<TemplateInput>,
}

/// One parameter of a template.
#[derive(Debug, Clone, Serialize)]
pub struct TemplateInput {
    pub name: String,
    /// It has no default and must be given.
    pub required: bool,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}
