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
    also(
        &mut new,
        "context",
        &json!({ "type": "string", "description": "Notes." }),
    );
    let steps = json!({ "type": "array", "items": { "$ref": "#/components/schemas/NewStep" } });
    new["properties"]["steps"] = json!({ "anyOf": [steps, { "type": "null" }] });
    schemas.insert("NewStep".to_owned(), new_step(&schemas["DocumentStep"]));
    let with = |required: &str, description: &str| {
        let mut schema = new.clone();
        schema["required"] = json!([required]);
        schema["description"] = json!(description);
        schema
    };
    schemas.insert(
        "NewGoal".to_owned(),
        with("goal", "What is to be done, with or without steps."),
    );
    schemas.insert("NewDocument".to_owned(), with("steps", "A whole plan."));
    schemas.insert(
        "NewPlan".to_owned(),
        json!({
            "description": "A goal, a plan, or a bare list of steps. Other common spellings of its keys are understood too.",
            "anyOf": [
                { "$ref": "#/components/schemas/NewGoal" },
                { "$ref": "#/components/schemas/NewDocument" },
                steps,
            ],
            "examples": [{ "goal": "Ship the next milestone" }],
        }),
    );
    schemas.insert("MergePatch".to_owned(), merge_patch(&new));
    schemas.insert("Plan".to_owned(), plan(&document));
    schemas.insert("PlanVersion".to_owned(), plan_version());
    schemas.insert("Document".to_owned(), document);
    let edit = lifted::<Edit>("Edit", schemas);
    schemas.insert("Edit".to_owned(), edit);
    schemas.insert("PlanEdits".to_owned(), edits());
    let diff = lifted::<PlanDiff>("Diff", schemas);
    schemas.insert("PlanDiff".to_owned(), diff.clone());
    let diff = of_diff(diff);
    schemas.insert("EditPreview".to_owned(), edit_preview(&diff));
    schemas.insert("Diff".to_owned(), diff);
    schemas.insert("ChangesSince".to_owned(), changes_since());
    let briefing = lifted::<Briefing>("Briefing", schemas);
    schemas.insert("Briefing".to_owned(), briefing);
}

/// The parts of a plan that a merge patch can name. Its id never changes.
fn merge_patch(new: &Value) -> Value {
    let mut patch = new.clone();
    if let Some(properties) = patch["properties"].as_object_mut() {
        properties.remove("id");
    }
    patch["description"] = json!("RFC 7396: what is named is replaced, null removes.");
    patch["examples"] = json!([{ "title": "A better title" }]);
    patch
}

fn changes_since() -> Value {
    json!({
        "type": "object",
        "description": "What changed since a plan was last agreed to.",
        "properties": {
            "since": {
                "type": "object",
                "description": "What was agreed to.",
                "properties": { "version": { "type": "integer", "minimum": 1 }, "digest": { "type": "string" } },
                "required": ["version", "digest"],
            },
            "diff": { "$ref": "#/components/schemas/PlanDiff" },
            "agreed": { "type": "array", "items": { "type": "string" }, "description": "Steps that are just as they were agreed to." },
        },
        "required": ["since", "diff", "agreed"],
    })
}

/// Bodies that name what a person had on the screen, by its version or by its digest.
const WHAT_WAS_SHOWN: [&str; 4] = ["ApprovePlan", "RejectPlan", "RequestChanges", "ApproveStep"];

/// Makes two schemas of each of these bodies: one of the two is named, never none and never both.
pub(super) fn split_what_was_shown(schemas: &mut Map<String, Value>) {
    for name in WHAT_WAS_SHOWN {
        split_ways(
            schemas,
            name,
            [
                ("ByVersion", "version", "digest", "integer"),
                ("ByDigest", "digest", "version", "string"),
            ],
        );
    }
    split_ways(
        schemas,
        "SignInRequest",
        [
            ("ByCode", "code", "token", "string"),
            ("ByToken", "token", "code", "string"),
        ],
    );
}

/// Writes a body that says one of two things as one of two bodies.
fn split_ways(schemas: &mut Map<String, Value>, name: &str, both: [(&str, &str, &str, &str); 2]) {
    let Some(body) = schemas.get(name).cloned() else {
        return;
    };
    let mut ways = Vec::new();
    for (way, named, other, kind) in both {
        let mut schema = body.clone();
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("example");
        }
        if let Some(properties) = schema["properties"].as_object_mut() {
            properties.remove(other);
        }
        schema["properties"][named]["type"] = json!(kind);
        let mut required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
        required.push(json!(named));
        schema["required"] = json!(required);
        ways.push(json!({ "$ref": format!("#/components/schemas/{name}{way}") }));
        schemas.insert(format!("{name}{way}"), schema);
    }
    let mut both = json!({ "description": body["description"], "oneOf": ways });
    if let Some(example) = body.get("example") {
        both["examples"] = json!([example]);
    }
    schemas.insert(name.to_owned(), both);
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
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for property in schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        if !required.contains(&json!(property.0)) {
            accept_null(property.1);
        }
    }
}

fn accept_null(schema: &mut Value) {
    let is_plain = schema.get("enum").is_none() && schema.get("const").is_none();
    match schema.get("type").cloned() {
        Some(Value::String(kind)) if is_plain => schema["type"] = json!([kind, "null"]),
        Some(Value::Array(kinds)) if kinds.contains(&json!("null")) => {}
        None if schema.as_object().is_some_and(is_anything) => {}
        _ => {
            let said = schema.take();
            *schema = json!({ "anyOf": [said, { "type": "null" }] });
        }
    }
}

/// Returns whether the schema says nothing about a value.
fn is_anything(schema: &Map<String, Value>) -> bool {
    schema
        .keys()
        .all(|key| key == "description" || key == "default")
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
    plan["properties"]["status"] = json!({ "$ref": "#/components/schemas/PlanStatus" });
    plan["properties"]["version"] = json!({ "type": "integer", "minimum": 1 });
    plan["properties"]["digest"] =
        json!({ "type": "string", "description": "What an approval of it covers." });
    for at in ["createdAt", "updatedAt"] {
        plan["properties"][at] = json!({ "type": "string", "format": "date-time" });
    }
    for by in ["createdBy", "proposedBy"] {
        plan["properties"][by] = json!({ "$ref": "#/components/schemas/Principal" });
    }
    plan["properties"]["graph"] = json!({ "$ref": "#/components/schemas/PlanGraph" });
    plan["properties"]["facts"] = lines("StepFacts");
    plan["properties"]["risk"] = json!({ "$ref": "#/components/schemas/Risk" });
    plan["properties"]["predictedMs"] = json!({
        "type": "integer",
        "minimum": 0,
        "description": "How long a run of it should take, without waiting for people, if anything is known about its tools.",
    });
    plan["properties"]["predictedCostUsd"] = json!({
        "type": "number",
        "minimum": 0,
        "description": "What models should be paid for in a run of it, in dollars, if such steps are known to have cost anything.",
    });
    plan["properties"]["approval"] = json!({ "$ref": "#/components/schemas/ApprovalStanding" });
    plan["properties"]["runs"] = lines("RunLine");
    plan["properties"]["findings"] = lines("Finding");
    plan["properties"]["policy"] = lines("StepVerdict");
    plan["properties"]["approvals"] = lines("ApprovalLine");
    plan["properties"]["comments"] = lines("ThreadLine");
    plan["properties"]["leftOut"] = json!({ "$ref": "#/components/schemas/LeftOut" });
    plan["properties"]["changes"] = json!({ "$ref": "#/components/schemas/ChangesSince" });
    plan["properties"]["lostSafeguards"] = json!({
        "type": "object",
        "description": "What version `since` had and this one lacks, in `losses`: only a person may agree to that.",
        "properties": {
            "since": { "type": "integer", "minimum": 1 },
            "losses": lines("DiffSafeguardLoss"),
        },
        "required": ["since", "losses"],
    });
    plan["properties"]["runRequested"] = json!({ "$ref": "#/components/schemas/RequestedRunLine" });
    plan["properties"]["planning"] = json!({ "$ref": "#/components/schemas/PlanningLine" });
    plan["properties"]["models"] = lines("ModelCostLine");
    plan["required"] = json!([
        "id",
        "status",
        "version",
        "digest",
        "createdAt",
        "createdBy",
        "updatedAt",
        "proposedBy",
        "graph",
        "facts",
        "risk",
        "approval",
        "runs",
        "findings",
        "policy",
        "approvals",
        "comments"
    ]);
    plan
}

fn plan_version() -> Value {
    json!({
        "description": "One version of a plan, with its content.",
        "allOf": [
            { "$ref": "#/components/schemas/VersionLine" },
            {
                "type": "object",
                "properties": { "document": { "$ref": "#/components/schemas/Document" } },
                "required": ["document"],
            },
        ],
    })
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

fn edit_preview(diff: &Value) -> Value {
    let mut preview = diff.clone();
    preview["description"] = json!("What an edit would come to. Nothing of it is stored.");
    preview["properties"]["ok"] = json!({
        "type": "boolean",
        "description": "Whether the plan could run with it.",
    });
    preview["properties"]["digest"] = json!({
        "type": "string",
        "description": "What an approval of the plan would cover then; absent unless it could run.",
    });
    preview["properties"]["findings"] = json!({
        "type": "array",
        "items": { "$ref": "#/components/schemas/Finding" },
    });
    preview["required"] = json!([
        "id",
        "from",
        "executable",
        "fields",
        "steps",
        "ok",
        "findings"
    ]);
    preview
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
            "reason": { "type": ["string", "null"], "maxLength": 10_000, "description": "Why the plan is changed." },
        },
        "required": ["edits"],
        "additionalProperties": false,
        "examples": [{ "edits": [{ "op": "set", "path": "title", "value": "A better title" }] }],
    })
}
