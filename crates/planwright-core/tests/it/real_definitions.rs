//! Plans over the tools of servers that others wrote, as those describe them: 200 that are right, and
//! each of them once more with one thing wrong.

use planwright_core::plan::{Bounds, Document, Finding, validate};
use planwright_core::tool::{Annotations, Catalog, EffectClass, KnownTool, ToolDefinition};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A tool as its server lists it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    #[serde(default)]
    description: String,
    input_schema: Value,
    output_schema: Option<Value>,
    #[serde(default)]
    annotations: Annotations,
}

#[derive(Deserialize)]
struct Wrong {
    /// What is wrong, in words.
    kind: String,
    plan: Value,
}

fn catalog() -> Catalog {
    let servers: BTreeMap<String, Vec<Listed>> =
        serde_json::from_str(include_str!("../corpus/tools.json")).unwrap();
    let mut tools = Vec::new();
    for (server, listed) in servers {
        for tool in listed {
            let mut definition =
                ToolDefinition::new(&server, &tool.name, &tool.description, tool.input_schema)
                    .with_annotations(tool.annotations);
            definition.output_schema = tool.output_schema;
            tools.push(KnownTool::new(definition, EffectClass::Unsafe));
        }
    }
    Catalog::new(tools)
}

/// What is found in a plan; a plan that cannot be read at all is found too.
fn look_at(mut plan: Value, catalog: &Catalog) -> Result<Vec<Finding>, String> {
    plan["id"] = json!("plan-corpus");
    let bounds = Bounds::default();
    let document = Document::from_json(plan, &bounds).map_err(|problem| problem.to_string())?;
    Ok(validate(document, catalog, &bounds).findings)
}

#[test]
fn plans_that_are_right_have_no_errors() {
    let catalog = catalog();
    let plans: Vec<Value> = serde_json::from_str(include_str!("../corpus/right.json")).unwrap();
    assert_eq!(plans.len(), 200);
    for plan in plans {
        let found = look_at(plan.clone(), &catalog).unwrap_or_else(|why| panic!("{why}: {plan}"));
        let errors: Vec<&Finding> = found.iter().filter(|finding| finding.is_error()).collect();
        assert!(errors.is_empty(), "{errors:?}: {plan}");
    }
}

#[test]
fn one_wrong_thing_is_found_in_every_plan() {
    let catalog = catalog();
    let plans: Vec<Wrong> = serde_json::from_str(include_str!("../corpus/wrong.json")).unwrap();
    assert_eq!(plans.len(), 200);
    let mut missed = Vec::new();
    let mut warned = 0;
    for Wrong { kind, plan } in plans {
        match look_at(plan.clone(), &catalog) {
            Ok(found) if found.is_empty() => missed.push(format!("{kind}: {plan}")),
            Ok(found) if !found.iter().any(Finding::is_error) => warned += 1,
            Ok(_) | Err(_) => {}
        }
    }
    println!("{} missed, {warned} found as warnings only", missed.len());
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
