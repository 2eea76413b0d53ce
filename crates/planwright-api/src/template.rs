//! Templates as other programs see them.

use planwright_core::review::Review;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// One template in `template list --json`, and what `template show --json` prints.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TemplateLine {
    pub id: String,
    pub title: String,
    pub version: u32,
    pub steps: usize,
    pub inputs: Vec<TemplateInput>,
    /// The JSON Schema of the inputs.
    #[serde(rename = "inputSchema", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub input_schema: Option<Value>,
}

/// One parameter of a template.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TemplateInput {
    pub name: String,
    /// It has no default and must be given.
    pub required: bool,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub default: Option<Value>,
}

impl TemplateLine {
    /// Describes the template that a plan is.
    pub fn new(review: &Review) -> Self {
        let document = &review.current().document;
        let required: Vec<&str> = document
            .inputs
            .as_ref()
            .and_then(|schema| schema.get("required")?.as_array())
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let text = |name: &str, key: &str| {
            let property = document.inputs.as_ref()?.get("properties")?.get(name)?;
            property.get(key)?.as_str().map(str::to_owned)
        };
        let inputs = document.input_names().map(|name| {
            let default = document
                .variables
                .get(name)
                .or_else(|| document.input_default(name))
                .cloned();
            TemplateInput {
                required: required.contains(&name.as_str()) && default.is_none(),
                type_name: text(name, "type"),
                description: text(name, "description"),
                name: name.clone(),
                default,
            }
        });
        Self {
            id: review.id().to_string(),
            title: document.title.clone().unwrap_or_default(),
            version: review.current().number,
            steps: document.steps.len(),
            inputs: inputs.collect(),
            input_schema: document.inputs.clone(),
        }
    }
}
