//! Plans over the tools of servers that others wrote, as those describe them: 200 that are right, and
//! each of them once more with one thing wrong.

use planwright_core::model::Message;
use planwright_core::plan::{Bounds, Document, Finding, validate};
use planwright_core::planning::{
    PlannerFacts, PlannerTask, PromptBudget, PromptRequest, Prompts, build_prompt,
    choose_for_looking, estimate_tokens, invite_to_look, is_for_looking,
};
use planwright_core::tool::{Annotations, Catalog, EffectClass, KnownTool, ToolDefinition};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    Catalog::new(known_tools(""))
}

/// The tools of every server, whose names end like this.
fn known_tools(ending: &str) -> Vec<KnownTool> {
    let servers: BTreeMap<String, Vec<Listed>> =
        serde_json::from_str(include_str!("../corpus/tools.json")).unwrap();
    let mut tools = Vec::new();
    for (server, listed) in servers {
        let server = format!("{server}{ending}");
        for tool in listed {
            let mut definition =
                ToolDefinition::new(&server, &tool.name, &tool.description, tool.input_schema)
                    .with_annotations(tool.annotations);
            definition.output_schema = tool.output_schema;
            tools.push(KnownTool::new(definition, EffectClass::Unsafe));
        }
    }
    tools
}

/// What a planner is sent with so many tools, in tokens: the prompt, the schema of the answer, and the
/// tools with which it may look around. The workspace and what servers say about themselves come on
/// top of it.
fn request_tokens(count: usize) -> usize {
    let tools = (1..).flat_map(|n| known_tools(&format!("-{n}")));
    let tools: Vec<Arc<KnownTool>> = tools.take(count).map(Arc::new).collect();
    let goal = "Query the sales, write a sheet for each region, and commit it";
    let request = PromptRequest {
        goal,
        tools: &tools,
        snapshot: None,
        facts: &PlannerFacts {
            // The longest line: each of them is asked about.
            asks: tools.iter().map(|tool| tool.name.to_string()).collect(),
            ..PlannerFacts::default()
        },
        context: &[],
        task: PlannerTask::Create,
        max_steps: 20,
        budget: PromptBudget::default(),
    };
    let prompt = build_prompt(&request, &Prompts::default()).unwrap();
    assert_eq!(prompt.left_out, 0, "{count} tools");
    let looks = tools.iter().filter(|tool| is_for_looking(tool));
    let looks = choose_for_looking(looks.cloned().collect(), goal);
    assert!(!looks.is_empty());
    let looks = looks.iter().map(|tool| {
        let definition = &tool.definition;
        json!({ "type": "function", "function": { "name": tool.name.to_string(),
            "description": definition.description, "parameters": definition.input_schema } })
    });
    let looks = json!(looks.collect::<Vec<Value>>()).to_string();
    // As they are sent: quotes and line breaks are escaped.
    let texts = prompt.messages.iter().map(|message| match message {
        Message::System { text } | Message::User { text } => json!(text).to_string(),
        other => panic!("{other:?}"),
    });
    let texts: String = texts.collect();
    let schema = prompt.schema.schema.to_string();
    [texts, looks, schema, invite_to_look()]
        .iter()
        .map(|text| estimate_tokens(text))
        .sum()
}

/// What a workspace may take, and a dozen servers that say a paragraph about themselves.
const SURROUNDINGS: usize = 2_000;

#[test]
fn requests_stay_small_over_real_definitions() {
    for (count, most) in [(100, 12_000), (500, 20_000)] {
        let tokens = request_tokens(count);
        println!("{count} tools: {tokens} tokens");
        assert!(tokens + SURROUNDINGS <= most, "{tokens} for {count} tools");
    }
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
