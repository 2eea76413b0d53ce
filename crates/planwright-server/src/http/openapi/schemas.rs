//! Schemas of the core's own documents, as components of the OpenAPI document.

use planwright_core::briefing::Briefing;
use planwright_core::plan::{Document, Edit, PlanDiff};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Adds the plan document and what is made of it.
pub(crate) fn add_core_schemas(schemas: &mut Map<String, Value>) {
    let mut document = lifted::<Document>("Document", schemas);
    absent_as_null(&mut document);
    let parts = schemas
        .iter_mut()
        .filter(|(name, _)| name.starts_with("Document"));
    parts.for_each(|(_, part)| absent_as_null(part));
    let mut new = document.clone();
    new["properties"]["goal"] = json!({
        "type": "string",
        "minLength": 1,
        "maxLength": 10_000,
        "pattern": "\\S",
        "description": "Why it is done. For a goal alone a model writes the plan; without a model it is a draft without steps.",
    });
    new["anyOf"] = json!([{ "required": ["goal"] }, { "required": ["steps"] }]);
    also(
        &mut new,
        "context",
        &json!({ "type": "string", "description": "Notes." }),
    );
    let steps = json!({ "type": "array", "items": { "$ref": "#/components/schemas/NewStep" } });
    new["properties"]["steps"] = json!({ "anyOf": [steps, { "type": "null" }] });
    schemas.insert("NewStep".to_owned(), new_step(&schemas["DocumentStep"]));
    schemas.insert(
        "NewPlan".to_owned(),
        json!({
            "description": "A plan, or a bare list of steps. Other common spellings of its keys are understood too.",
            "anyOf": [new, steps],
            "examples": [{ "goal": "Ship the next milestone" }],
        }),
    );
    schemas.insert("Plan".to_owned(), plan(&document));
    schemas.insert("Document".to_owned(), document);
    let edit = lifted::<Edit>("Edit", schemas);
    schemas.insert("Edit".to_owned(), edit);
    schemas.insert("Edits".to_owned(), edits());
    let diff = lifted::<PlanDiff>("Diff", schemas);
    schemas.insert("Diff".to_owned(), of_diff(diff));
    let briefing = lifted::<Briefing>("Briefing", schemas);
    schemas.insert("Briefing".to_owned(), briefing);
    schemas.insert("JsonPatch".to_owned(), json_patch());
    schemas.insert(
        "MergePatch".to_owned(),
        json!({
            "type": "object",
            "description": "RFC 7396: what is named is replaced, null removes.",
            "examples": [{ "title": "A better title" }],
        }),
    );
}

/// A step as it may be written, which is more than how it is kept.
fn new_step(kept: &Value) -> Value {
    let text = json!({ "type": "string" });
    let mut step = kept.clone();
    step["description"] = json!("A step as it may be written: short forms are understood.");
    also(&mut step, "id", &json!({ "type": "integer" }));
    let id = json!({ "type": ["string", "integer"] });
    also(
        &mut step,
        "dependsOn",
        &json!({ "type": "array", "items": id }),
    );
    also(&mut step, "dependsOn", &id);
    also(
        &mut step,
        "result",
        &json!({ "type": "object", "description": "What came out of it earlier: left out." }),
    );
    also(
        &mut step,
        "retry",
        &json!({ "type": "integer", "minimum": 0, "description": "So many retries." }),
    );
    also(
        &mut step,
        "timeoutSeconds",
        &json!({ "type": "string", "description": "As `90s` or `5m`." }),
    );
    for action in ["think", "agent", "plan"] {
        also(&mut step, action, &text);
    }
    also(
        &mut step,
        "input",
        &json!({ "type": "object", "description": "The schema itself." }),
    );
    step
}

/// Lets a property be something else as well.
fn also(schema: &mut Value, property: &str, other: &Value) {
    let said = schema["properties"][property].take();
    schema["properties"][property] = json!({ "anyOf": [said, other] });
}

/// A schema whose parts are components too.
fn lifted<T: JsonSchema>(name: &str, schemas: &mut Map<String, Value>) -> Value {
    let schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>();
    let mut schema = Value::from(schema);
    let parts = schema.as_object_mut().and_then(|schema| {
        schema.remove("$schema");
        schema.remove("$defs")
    });
    rename(&mut schema, name);
    for (part, mut value) in parts
        .as_ref()
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
    {
        rename(&mut value, name);
        schemas.insert(format!("{name}{part}"), value);
    }
    schema
}

/// The author of a plan may say `null` where they could say nothing.
fn absent_as_null(schema: &mut Value) {
    for property in schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        let said = property.1.take();
        *property.1 = json!({ "anyOf": [said, { "type": "null" }] });
    }
}

/// Points references to parts at the components they became.
fn rename(value: &mut Value, name: &str) {
    match value {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                match value {
                    Value::String(text) if key == "$ref" => {
                        *text = text.replace("#/$defs/", &format!("#/components/schemas/{name}"));
                    }
                    value => rename(value, name),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| rename(value, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A plan as it is shown: its document, and where it stands.
fn plan(document: &Value) -> Value {
    let mut plan = document.clone();
    if let Some(object) = plan.as_object_mut() {
        object.remove("additionalProperties");
    }
    plan["description"] = json!("The plan's document, and where it stands.");
    let lines = |name: &str| json!({ "type": "array", "items": { "$ref": format!("#/components/schemas/{name}") } });
    plan["properties"]["status"] =
        json!({ "type": "string", "description": "As `proposed` or `executing`." });
    plan["properties"]["version"] = json!({ "type": "integer", "minimum": 1 });
    plan["properties"]["digest"] =
        json!({ "type": "string", "description": "What an approval of it covers." });
    plan["properties"]["runs"] = lines("RunLine");
    plan["properties"]["policy"] = lines("StepVerdict");
    plan["properties"]["approvals"] = lines("ApprovalLine");
    plan["properties"]["comments"] = lines("ThreadLine");
    plan["properties"]["leftOut"] = json!({ "$ref": "#/components/schemas/LeftOut" });
    plan["properties"]["changes"] = json!({
        "type": "object",
        "description": "What changed since it was last agreed to, if an edit voided that.",
    });
    plan["properties"]["lostSafeguards"] = json!({
        "type": "object",
        "description": "What version `since` had and this one lacks, in `losses`: only a person may agree to that.",
        "properties": {
            "since": { "type": "integer", "minimum": 1 },
            "losses": { "type": "array", "items": { "type": "object" } },
        },
        "required": ["since", "losses"],
    });
    plan["properties"]["planning"] = json!({ "$ref": "#/components/schemas/PlanningLine" });
    plan["properties"]["models"] = lines("ModelCostLine");
    plan["required"] = json!([
        "id",
        "status",
        "version",
        "digest",
        "runs",
        "policy",
        "approvals",
        "comments"
    ]);
    plan
}

fn of_diff(mut diff: Value) -> Value {
    diff["properties"]["id"] = json!({ "type": "string" });
    diff["properties"]["from"] = json!({ "type": "integer", "minimum": 1 });
    diff["properties"]["to"] = json!({ "type": "integer", "minimum": 1 });
    diff["properties"]["executable"] = json!({
        "type": "boolean",
        "description": "Whether anything that is executed differs.",
    });
    diff["required"] = json!(["id", "from", "executable", "fields", "steps"]);
    diff
}

fn edits() -> Value {
    json!({
        "type": "object",
        "description": "Changes in their order.",
        "properties": {
            "edits": {
                "type": "array",
                "minItems": 1,
                "maxItems": Edit::MAX,
                "items": { "$ref": "#/components/schemas/Edit" },
            },
        },
        "required": ["edits"],
        "additionalProperties": false,
        "examples": [{ "edits": [{ "op": "set", "path": "title", "value": "A better title" }] }],
    })
}

fn json_patch() -> Value {
    let pointer = json!({ "type": "string", "pattern": "^(/([^/~]|~[01])*)*$" });
    let operation = |names: &[&str], required: &[&str]| {
        json!({
            "type": "object",
            "properties": { "op": { "enum": names }, "path": pointer, "from": pointer, "value": {} },
            "required": required,
        })
    };
    json!({
        "type": "array",
        "description": "RFC 6902: operations in their order, all or none.",
        "maxItems": 1_000,
        "items": {
            "oneOf": [
                operation(&["add", "replace", "test"], &["op", "path", "value"]),
                operation(&["remove"], &["op", "path"]),
                operation(&["move", "copy"], &["op", "path", "from"]),
            ],
        },
        "examples": [[{ "op": "replace", "path": "/title", "value": "A better title" }]],
    })
}
