//! The published JSON Schema of a plan.

use crate::plan::Document;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// JSON Schema 2020-12 of the canonical document. The other spellings that are read are not in it.
pub fn json_schema() -> Value {
    let schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Document>();
    let mut schema = Value::from(schema);
    if let Some(object) = schema.as_object_mut() {
        object.insert("$id".to_owned(), json!("urn:planwright:schema:plan"));
        object.insert("title".to_owned(), json!("Planwright plan"));
    }
    schema
}
