//! The plans that were written to deceive their approver, on the screen and as a document. Each step
//! that is not read-only has to be named by a reader who sees nothing else.

use planwright_core::briefing::{
    Briefing, BriefingFacts, CurrentContent, CurrentFile, PlanAuthor, RenderOptions, brief_plan,
    render_briefing,
};
use planwright_core::plan::{Bounds, Document, KnownPlan, KnownPlans, Plan, validate_with};
use planwright_core::policy::Policy;
use planwright_core::principal::Principal;
use planwright_core::tool::{Annotations, Catalog, EffectClass, KnownTool, ToolDefinition};
use planwright_testing::deceptive::{SeenStep, child, corpus};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

fn catalog() -> Catalog {
    let tool = |server: &str, name: &str, annotations: Annotations| {
        let definition = ToolDefinition::new(server, name, "A tool.", json!({"type": "object"}));
        KnownTool::new(
            definition.with_annotations(annotations),
            EffectClass::Unsafe,
        )
    };
    let closed = Annotations {
        open_world_hint: Some(false),
        ..Annotations::default()
    };
    let adds = Annotations {
        destructive_hint: Some(false),
        ..Annotations::default()
    };
    let open_reading = Annotations {
        open_world_hint: Some(true),
        ..Annotations::read_only()
    };
    Catalog::new([
        tool("local", "read_file", Annotations::read_only()),
        tool("local", "write_file", closed.clone()),
        tool("local", "append_file", closed),
        tool("local", "run_command", Annotations::default()),
        tool("local", "http_get", open_reading.clone()),
        tool("mail", "send", Annotations::default()),
        tool("mail", "unsend", Annotations::default()),
        tool("git", "push", adds.clone()),
        tool("db", "delete_rows", Annotations::default()),
        tool("web", "fetch", open_reading),
        tool("pay", "transfer", adds),
    ])
}

/// Compiles the plan as the engine does, with the plan it runs.
fn compile(document: Document, catalog: &Catalog) -> Plan {
    let mut known = KnownPlans::default();
    known.insert(
        "child".parse().unwrap(),
        KnownPlan {
            document: std::sync::Arc::new(serde_json::from_value(child()).unwrap()),
            version: 3,
            needs_person: None,
        },
    );
    let report = validate_with(document, catalog, &known, &Bounds::default());
    report
        .plan
        .unwrap_or_else(|| panic!("{:?}", report.findings))
}

fn render(document: Value, width: usize) -> String {
    let options = RenderOptions {
        width,
        ..RenderOptions::default()
    };
    let lines = render_briefing(&brief(document), &options);
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    texts.join("\n")
}

fn brief(document: Value) -> Briefing {
    let catalog = catalog();
    let plan = compile(serde_json::from_value(document).unwrap(), &catalog);
    let missing = |path: &String| {
        let file = CurrentFile {
            resolved: None,
            content: CurrentContent::Missing,
        };
        (path.clone(), file)
    };
    let wanted = planwright_core::briefing::wanted_files(&plan, &catalog);
    let facts = BriefingFacts {
        version: 1,
        digest: plan.digest(&catalog, "policy-1"),
        author: Some(PlanAuthor {
            by: Principal::agent("helper"),
            model: Some("some-model".to_owned()),
        }),
        files: wanted.iter().map(missing).collect::<BTreeMap<_, _>>(),
        default_model: Some("default".to_owned()),
        default_timeout: None,
    };
    brief_plan(&plan, &catalog, &Policy::default(), &facts)
}

#[test]
fn a_reader_of_the_screen_can_name_tool_target_and_effect() {
    let corpus = corpus();
    assert!(corpus.len() >= 60, "only {} plans", corpus.len());
    let mut misses = Vec::new();
    for deception in corpus {
        for width in [80, 200] {
            let text = render(deception.plan.clone(), width);
            misses.extend(deception.misses(&text));
            let hidden = text
                .chars()
                .filter(|c| c.is_control() && *c != '\n')
                .count();
            assert_eq!(
                hidden, 0,
                "{}: control characters on the screen",
                deception.name
            );
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(
                widest <= Some(width),
                "{}: a line of {widest:?}",
                deception.name
            );
        }
    }
    assert!(
        misses.is_empty(),
        "{} misses:\n{}",
        misses.len(),
        misses.join("\n----\n")
    );
}

/// Reads a briefing that came as JSON: a program that shows it to a person has nothing else.
fn read_document(steps: &Value, seen: &mut BTreeMap<String, SeenStep>) {
    for step in steps.as_array().unwrap() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let action = &step["action"];
        let tool = match action["kind"].as_str().unwrap() {
            "call" => text(&action["tool"]),
            "plan" => format!("plan {}", text(&action["plan"])),
            kind => kind.to_owned(),
        };
        let kind = text(&step["effect"]["kind"]);
        let mut lines = String::new();
        let mut own = step.clone();
        own.as_object_mut().unwrap().remove("steps");
        // A mark of ours counts where the document says that something is late, and nowhere else.
        let late: Vec<String> = serde_json::from_value(action["late"].clone()).unwrap_or_default();
        if let Some(args) = own["action"]["args"].take().as_object() {
            for (name, value) in args {
                let is_late = late
                    .iter()
                    .any(|place| place.split('/').nth(1) == Some(name.as_str()));
                write_lines(name, value, is_late, &mut lines);
            }
        }
        write_lines("", &own, true, &mut lines);
        let seen_step = SeenStep {
            tool,
            changes: !["nothing", "reads"].contains(&kind.as_str()),
            text: lines,
        };
        seen.insert(text(&step["id"]), seen_step);
        read_document(&step["steps"], seen);
    }
}

/// Every text of a document with the name it stands under, as it is and with every letter beyond
/// ASCII spelt out.
fn write_lines(name: &str, value: &Value, has_marks: bool, lines: &mut String) {
    let spell = |text: &str| -> String {
        let letters = text.chars().map(|letter| match letter {
            ' '..='~' | '“' | '”' | '…' => letter.to_string(),
            '‹' | '›' if has_marks => letter.to_string(),
            '\n' => "\\n".to_owned(),
            other => format!("\\u{{{:x}}}", u32::from(other)),
        });
        letters.collect()
    };
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(name, value)| write_lines(name, value, has_marks, lines)),
        Value::Array(list) => list
            .iter()
            .for_each(|value| write_lines(name, value, has_marks, lines)),
        Value::String(text) => {
            let name = spell(name);
            let spelt = spell(text);
            let text = if has_marks { text } else { &spelt };
            writeln!(lines, "{name}: {text}\n{name}: {spelt}").unwrap();
        }
        other => writeln!(lines, "{name}: {other}").unwrap(),
    }
}

/// What the screen says in a sentence is a field of the document.
fn in_document(words: &str) -> Vec<String> {
    let field = |name: &str, value: &str| vec![format!("{name}: {value}")];
    if let Some(secret) = words.strip_prefix("is given the secret ") {
        field("secrets", secret)
    } else if let Some(condition) = words.strip_prefix("only when ") {
        field("when", condition)
    } else if let Some(list) = words.strip_prefix("for each element of ") {
        field("over", list)
    } else if let Some(count) = words.strip_suffix(" times") {
        field("count", count)
    } else if let Some(tool) = words.strip_prefix("undo: ") {
        field("tool", tool)
    } else if let Some(count) = words.strip_prefix("at most ") {
        field("maxCalls", count.trim_end_matches(" calls"))
    } else if let Some(own) = words.strip_prefix("│ ") {
        vec![own.to_owned()]
    } else if let Some((tool, effect)) = words.split_once(": may overwrite") {
        vec![format!(": {tool}"), format!("may overwrite{effect}")]
    } else if let Some(tool) = words.strip_suffix(": is not known here") {
        vec![format!(": {tool}"), "is not known here".to_owned()]
    } else if ["lines with", "number is not known yet"].contains(&words) {
        // The document has values in full, and a count where it is known.
        Vec::new()
    } else {
        vec![words.to_owned()]
    }
}

#[test]
fn a_reader_of_the_json_can_name_tool_target_and_effect() {
    let mut misses = Vec::new();
    for deception in corpus() {
        let text = serde_json::to_string(&brief(deception.plan.clone())).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let mut seen = BTreeMap::new();
        read_document(&document["steps"], &mut seen);
        for expected in &deception.expected {
            let Some(step) = seen.get(expected.step) else {
                misses.push(format!("{}: no step {}", deception.name, expected.step));
                continue;
            };
            let missing: Vec<&String> = expected
                .words
                .iter()
                .filter(|word| {
                    !in_document(word)
                        .iter()
                        .all(|part| step.text.contains(part))
                })
                .collect();
            if step.tool != expected.tool || !step.changes || !missing.is_empty() {
                misses.push(format!(
                    "{}: step {} is {} (wanted {}), changes: {}, not seen: {missing:?}\n{}",
                    deception.name,
                    expected.step,
                    step.tool,
                    expected.tool,
                    step.changes,
                    step.text
                ));
            }
        }
    }
    assert!(
        misses.is_empty(),
        "{} misses:\n{}",
        misses.len(),
        misses.join("\n----\n")
    );
}
