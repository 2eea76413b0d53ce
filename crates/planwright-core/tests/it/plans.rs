//! Plans, catalogs and values to test with.

use planwright_core::plan::{
    Bounds, Code, Document, Finding, Plan, StepIx, ValidationReport, Values, validate,
};
use planwright_core::tool::{Catalog, EffectClass, KnownTool, ToolDefinition};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(crate) const REFACTOR_AUTH: &str = include_str!("../fixtures/refactor_auth.json");
pub(crate) const DOLLAR_REFERENCE: &str = include_str!("../fixtures/dollar_reference.json");
pub(crate) const GENERATED_STEPS: &str = include_str!("../fixtures/generated_steps.json");
pub(crate) const PROPOSE_INVOICE: &str = include_str!("../fixtures/propose_invoice.json");
pub(crate) const SHIP_MILESTONE: &str = include_str!("../fixtures/ship_milestone.json");

/// One plan of each dialect. `generated_steps` and `propose_invoice` are put together from field
/// lists and prose; the others are printed examples, unchanged.
pub(crate) const ALL: [&str; 5] = [
    REFACTOR_AUTH,
    DOLLAR_REFERENCE,
    GENERATED_STEPS,
    PROPOSE_INVOICE,
    SHIP_MILESTONE,
];

pub(crate) fn read(text: &str) -> Document {
    Document::read(text.as_bytes(), &Bounds::default())
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(crate) fn document(value: Value) -> Document {
    read(&value.to_string())
}

pub(crate) fn plan(value: Value) -> Plan {
    Plan::compile(document(value), &Bounds::default())
        .unwrap_or_else(|findings| panic!("{findings:#?}"))
}

/// The findings of a plan that no tool is known for.
pub(crate) fn structural(value: Value) -> Vec<Finding> {
    Plan::compile(document(value), &Bounds::default()).unwrap_err()
}

pub(crate) fn check(value: Value, catalog: &Catalog) -> ValidationReport {
    validate(document(value), catalog, &Bounds::default())
}

pub(crate) fn with_code(findings: &[Finding], code: Code) -> Vec<&Finding> {
    findings
        .iter()
        .filter(|finding| finding.code == code)
        .collect()
}

pub(crate) fn tool(server: &str, name: &str, input: Value, output: Option<Value>) -> KnownTool {
    let definition: ToolDefinition = serde_json::from_value(json!({
        "server": server, "name": name, "inputSchema": input, "outputSchema": output,
    }))
    .unwrap();
    KnownTool::new(definition, EffectClass::Unsafe)
}

/// A file server and a search server that both have `search`.
pub(crate) fn catalog() -> Catalog {
    let path = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
        "additionalProperties": false});
    let write = json!({"type": "object", "required": ["path", "content"], "properties": {
        "path": {"type": "string", "pattern": "^/"}, "content": {"type": "string"}, "mode": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3}}});
    let stat = json!({"type": "object", "properties": {"size": {"type": "integer"}, "name": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "string"}}}});
    Catalog::new([
        tool("fs", "read_file", path.clone(), None),
        tool("fs", "stat", path, Some(stat)),
        tool("fs", "write_file", write, None),
        tool("fs", "search", json!({"type": "object"}), None),
        tool("web", "search", json!({"type": "object"}), None),
    ])
}

/// Values a run might have.
#[derive(Debug, Default)]
pub(crate) struct Have {
    pub(crate) variables: Map<String, Value>,
    pub(crate) steps: BTreeMap<StepIx, Value>,
}

impl Have {
    pub(crate) fn variables(value: Value) -> Self {
        let Value::Object(variables) = value else {
            panic!("variables are an object")
        };
        Self {
            variables,
            ..Self::default()
        }
    }

    pub(crate) fn step(mut self, index: usize, value: Value) -> Self {
        self.steps.insert(StepIx::new(index), value);
        self
    }
}

impl Values for Have {
    fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    fn step(&self, ix: StepIx) -> Option<&Value> {
        self.steps.get(&ix)
    }
}
