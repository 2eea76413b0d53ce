//! The schema of a planner's answer.
//!
//! Most models get a short one that offers everything a step can have: what does not fit is found by
//! validation and repaired. For models that can do little, each slot of the list of steps has a schema of its own: its id is given, and it can only
//! depend on the ones before it. A model that is held to it cannot write a cycle, however small it
//! is.

use super::tool_schema::{SimplifyOptions, ValueLimits, simplify_arguments};
use crate::model::AnswerSchema;
use crate::tool::KnownTool;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The amount of detail a schema has about calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaDetail {
    /// Everything a step can have, said once, without the tools.
    Lean,
    /// Every tool with its own arguments, at every slot; a value may be taken from the steps
    /// before it.
    Full,
    /// Every tool with its own arguments, said once for all slots. It grows with the tools and
    /// the steps, not with their product; that a value is taken from an earlier step is left to
    /// validation.
    Shared,
    /// The names of the tools; arguments are any object.
    Compact,
}

impl SchemaDetail {
    /// Those with a schema for each slot, the most detailed first.
    const BY_SLOT: [Self; 3] = [Self::Full, Self::Shared, Self::Compact];
}

/// One place in the list of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSlot {
    /// Id of the step in this slot.
    pub id: String,
    /// The steps it may depend on and take values from.
    pub earlier: Vec<String>,
}

impl StepSlot {
    /// `s1` to `sn`, each after all before it.
    pub fn numbered(count: usize) -> Vec<Self> {
        let ids: Vec<String> = (1..=count).map(|number| format!("s{number}")).collect();
        let earlier = |index: usize| ids[..index].to_vec();
        ids.iter()
            .enumerate()
            .map(|(index, id)| Self {
                id: id.clone(),
                earlier: earlier(index),
            })
            .collect()
    }
}

/// The tools and slots that a schema is made for.
#[derive(Debug, Clone)]
pub struct StepsSchemaRequest<'a> {
    /// Tools that may be called.
    pub tools: &'a [Arc<KnownTool>],
    /// Slots for steps.
    pub slots: &'a [StepSlot],
    /// Every slot is to be filled, not only the first ones.
    pub all: bool,
    /// The full shape is used if it has at most this many bytes.
    pub max_bytes: usize,
    /// For models that can do little: tools only, short texts, no optional remarks.
    pub small: bool,
}

const MAX_TITLE: usize = 100;
const MAX_LINES: usize = 8;
/// The arguments of a small model: what has no end is never finished.
const SMALL: ValueLimits = ValueLimits {
    text: 120,
    items: 4,
};

/// The schema of the whole answer: the one that says most within its size.
pub fn steps_schema(wanted: &StepsSchemaRequest<'_>) -> (AnswerSchema, SchemaDetail) {
    if !wanted.small {
        let schema = AnswerSchema {
            name: "plan".to_owned(),
            schema: wanted.lean_schema(),
        };
        return (schema, SchemaDetail::Lean);
    }
    let fitting = SchemaDetail::BY_SLOT.into_iter().find_map(|shape| {
        let schema = wanted.build(shape)?;
        let fits = shape == SchemaDetail::Compact || schema.to_string().len() <= wanted.max_bytes;
        fits.then_some((schema, shape))
    });
    let (schema, shape) = fitting.expect("the compact shape always fits");
    (
        AnswerSchema {
            name: "plan".to_owned(),
            schema,
        },
        shape,
    )
}

/// The fields of a step that say its action.
type Action = Vec<(&'static str, Value)>;

impl StepsSchemaRequest<'_> {
    /// Nothing if the shape would be absurdly large: it is not built to be thrown away.
    fn build(&self, shape: SchemaDetail) -> Option<Value> {
        let calls = match shape {
            SchemaDetail::Full => self.tools.len() * self.slots.len(),
            SchemaDetail::Shared => self.tools.len(),
            SchemaDetail::Compact | SchemaDetail::Lean => 0,
        };
        if calls * 80 > self.max_bytes {
            return None;
        }
        let mut definitions = Map::new();
        let mut left = self.max_bytes;
        match shape {
            SchemaDetail::Full | SchemaDetail::Lean => {}
            SchemaDetail::Shared => {
                let choices = self.action_schemas(&mut left)?;
                let choices = choices.into_iter().map(object_schema).collect();
                definitions.insert("call".to_owned(), any_of(choices));
            }
            SchemaDetail::Compact => {
                let names: Vec<String> = self
                    .tools
                    .iter()
                    .map(|tool| tool.name.to_string())
                    .collect();
                definitions.insert(
                    "tool_name".to_owned(),
                    json!({ "type": "string", "enum": names }),
                );
            }
        }
        for slot in self.slots {
            let choices = match shape {
                SchemaDetail::Full | SchemaDetail::Lean => self.action_schemas(&mut left)?,
                SchemaDetail::Shared => vec![vec![("call", json!({ "$ref": "#/$defs/call" }))]],
                SchemaDetail::Compact => self.compact_action_schemas(),
            };
            let choices = choices
                .into_iter()
                .map(|action| Self::with_place(slot, action))
                .collect();
            definitions.insert(format!("step_{}", slot.id), any_of(choices));
        }
        Some(self.answer_schema(definitions))
    }

    fn answer_schema(&self, definitions: Map<String, Value>) -> Value {
        let mut properties = Map::new();
        properties.insert("title".to_owned(), text_schema(1, MAX_TITLE));
        properties.insert("steps".to_owned(), self.steps_list_schema());
        json!({
            "type": "object",
            "properties": properties,
            "required": ["title", "steps"],
            "additionalProperties": false,
            "$defs": definitions,
        })
    }

    /// A list of each length is a choice of its own: some providers know no other way to say that a
    /// list may end.
    fn steps_list_schema(&self) -> Value {
        let shortest = if self.all { self.slots.len() } else { 1 };
        let lists = (shortest..=self.slots.len()).map(|length| {
            let places = &self.slots[..length];
            let places = places.iter().map(|place| json!({ "$ref": format!("#/$defs/step_{}", place.id) }));
            let places: Vec<Value> = places.collect();
            json!({ "type": "array", "prefixItems": places, "minItems": length, "maxItems": length })
        });
        any_of(lists.collect())
    }

    /// A call of every tool. Nothing once they have more than the bytes that are left.
    fn action_schemas(&self, left: &mut usize) -> Option<Vec<Action>> {
        let mut actions = Vec::with_capacity(self.tools.len());
        for tool in self.tools {
            let call = call_schema(tool);
            let bytes: usize = call
                .iter()
                .map(|(_, schema)| schema.to_string().len())
                .sum();
            *left = left.checked_sub(bytes)?;
            actions.push(call);
        }
        actions.extend(self.action_without_tool());
        Some(actions)
    }

    fn compact_action_schemas(&self) -> Vec<Action> {
        let call = vec![
            ("tool", json!({ "$ref": "#/$defs/tool_name" })),
            ("args", json!({ "type": "object" })),
        ];
        let calls = if self.tools.is_empty() {
            None
        } else {
            Some(call)
        };
        calls
            .into_iter()
            .chain(self.action_without_tool())
            .collect()
    }

    /// Asking a model, where there is no tool: a small model would do nothing else.
    fn action_without_tool(&self) -> Option<Action> {
        let prompt = object_schema(vec![("prompt", text_schema(1, 1_000))]);
        self.tools.is_empty().then(|| vec![("think", prompt)])
    }

    /// Everything a step can have. The tools and their arguments are in the prompt.
    fn lean_schema(&self) -> Value {
        let text = json!({ "type": "string" });
        let object = json!({ "type": "object" });
        let lines = json!({ "type": "array", "items": text });
        let needs = |required: &[&str], properties: Value| json!({ "type": "object", "properties": properties, "required": required });
        let ids: Vec<&String> = self.slots.iter().map(|slot| &slot.id).collect();
        let id = match self.all {
            true => json!({ "type": "string", "enum": ids }),
            false => text.clone(),
        };
        let step = needs(
            &["id", "title"],
            json!({
                "id": id,
                "title": text,
                "tool": text,
                "args": object,
                "think": needs(&["prompt"], json!({ "prompt": text, "schema": object })),
                "input": needs(&["message", "schema"], json!({ "message": text, "schema": object })),
                "agent": needs(&["instruction"], json!({ "instruction": text, "maxCalls": { "type": "integer" } })),
                "plan": needs(&["id"], json!({ "id": text, "inputs": object })),
                "dependsOn": lines,
                "forEach": text,
                "maxParallel": { "type": "integer" },
                "when": text,
                "expect": text,
                "retry": needs(&["max"], json!({ "max": { "type": "integer" } })),
                "timeoutSeconds": { "type": "number" },
                "approvalRequired": { "type": "boolean" },
                "optional": { "type": "boolean" },
                "undo": needs(&["tool", "args"], json!({ "tool": text, "args": object })),
            }),
        );
        let steps = json!({
            "type": "array", "items": step,
            "minItems": if self.all { self.slots.len() } else { 1 }, "maxItems": self.slots.len(),
        });
        needs(
            &["title", "steps"],
            json!({
                "title": text, "steps": steps, "outputs": object,
                "successCriteria": lines, "risks": lines, "estimatedDuration": { "type": "integer" },
            }),
        )
    }

    /// The step around its action: who it is, and what it comes after.
    fn with_place(slot: &StepSlot, action: Action) -> Value {
        let id = json!({ "type": "string", "enum": [slot.id] });
        let mut fields = vec![("id", id)];
        fields.extend(action);
        if !slot.earlier.is_empty() {
            fields.push((
                "dependsOn",
                json!({
                    "type": "array",
                    "items": { "type": "string", "enum": slot.earlier },
                    "maxItems": slot.earlier.len().min(MAX_LINES),
                }),
            ));
        }
        object_schema(fields)
    }
}

fn call_schema(tool: &KnownTool) -> Action {
    let options = SimplifyOptions {
        descriptions: false,
        limits: Some(SMALL),
    };
    let name = json!({ "type": "string", "enum": [tool.name.to_string()] });
    let args = simplify_arguments(&tool.definition.input_schema, options);
    vec![("tool", name), ("args", args)]
}

fn any_of(mut choices: Vec<Value>) -> Value {
    if choices.len() == 1 {
        choices.remove(0)
    } else {
        json!({ "anyOf": choices })
    }
}

/// An object that has all of these fields and no others.
fn object_schema(fields: Action) -> Value {
    let properties: Map<String, Value> = fields
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    let required: Vec<&String> = properties.keys().collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn text_schema(least: usize, most: usize) -> Value {
    json!({ "type": "string", "minLength": least, "maxLength": most })
}
