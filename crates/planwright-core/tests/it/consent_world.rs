//! What there is in the random lives of plans: documents, policies and tools, and what the oracle
//! knows of them by heart.

use crate::consent_oracle::{Part, To};
use planwright_core::plan::{
    Bounds, Document, KnownPlan, KnownPlans, Plan, ValidationReport, validate_with,
};
use planwright_core::policy::{Policy, PolicyDocument, RolesTable};
use planwright_core::principal::Principal;
use planwright_core::tool::{Annotations, Catalog, EffectClass, KnownTool, ToolDefinition};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const TOOLS: [&str; 3] = ["read", "write", "peek"];

/// Different things to do.
pub(crate) const DOINGS: usize = 10;
/// Each of them is said in two ways.
pub(crate) const DOCUMENTS: usize = 2 * DOINGS;
/// Step `c` is gated, and calls with `ok` or with `evil`.
pub(crate) const GATED: [usize; 2] = [6, 7];
/// Step `c` has limits, which no policy looks at.
pub(crate) const LIMITED: usize = 8;
/// Another plan is run, which is one of two.
pub(crate) const RUNS_PLAN: usize = 9;

/// The steps of a plan, as the oracle sees them. The last of the doings is `RUNS_PLAN` with the
/// other child.
pub(crate) fn parts(doing: usize) -> Vec<Part> {
    let part = |id, tool, to| Part {
        id,
        tool,
        to,
        gate: false,
    };
    let a = part("a", "s.read", To::Absent);
    let b = part("b", "s.write", To::Later);
    let c = part("c", "s.write", To::Known("ok"));
    let c_evil = part("c", "s.write", To::Known("evil"));
    // Its argument is called `of`, which no policy of this world looks at.
    let d = part("d", "s.peek", To::Absent);
    let gated = |part: Part| Part { gate: true, ..part };
    match doing {
        0 => vec![a, b],
        1 | LIMITED => vec![a, c],
        2 => vec![a, d],
        3 => vec![a, b, c, d],
        4 => vec![a],
        5 => vec![a, c_evil, b],
        6 => vec![a, gated(c)],
        7 => vec![a, gated(c_evil)],
        RUNS_PLAN => vec![a, part("p", "s.read", To::Absent)],
        _ => vec![a, part("p", "s.write", To::Known("evil"))],
    }
}

/// What narrows step `c` without changing any verdict.
fn limits() -> Value {
    json!({"retry": {"max": 2, "on": ["busy"], "backoff": 0.001}, "timeoutSeconds": 3600.0,
           "undo": {"tool": "s.read"}})
}

pub(crate) fn document(number: usize) -> Document {
    let doing = number % DOINGS;
    let steps: Vec<Value> = parts(doing)
        .iter()
        .map(|part| match (part.id, part.to) {
            ("a", _) => json!({"id": "a", "tool": "s.read"}),
            ("b", _) => json!({"id": "b", "tool": "write", "args": {"to": "${a}"}, "critical": false,
                               "retry": {"max": 2, "on": ["busy"], "backoff": 0.001}}),
            ("c", To::Known(to)) => write_step(doing, to),
            ("p", _) => json!({"id": "p", "plan": {"id": "k"}, "critical": false}),
            _ => json!({"id": part.id, "tool": "mcp__s__peek", "args": {"of": "x ${a}"}, "critical": false}),
        })
        .collect();
    let title = title(number);
    serde_json::from_value(json!({"id": "p", "title": title, "steps": steps})).unwrap()
}

pub(crate) fn title(number: usize) -> String {
    format!("take {number}")
}

fn write_step(doing: usize, to: &str) -> Value {
    let mut step = json!({"id": "c", "tool": "s.write", "args": {"to": to}, "critical": false});
    if GATED.contains(&doing) || doing == LIMITED {
        for (name, value) in limits().as_object().unwrap() {
            step[name] = value.clone();
        }
    }
    if GATED.contains(&doing) {
        step["approvalRequired"] = json!(true);
        step["constraints"] = json!(["args.to != 'never'"]);
    }
    step
}

/// The plan of a document, with the child as it is.
pub(crate) fn compile(document: Document, child: usize) -> Plan {
    let steps = match child {
        0 => json!([{"id": "k", "tool": "s.read"}]),
        _ => json!([{"id": "k", "tool": "s.write", "args": {"to": "evil"}}]),
    };
    let child: Document = serde_json::from_value(json!({"id": "k", "steps": steps})).unwrap();
    let mut known = KnownPlans::default();
    known.insert(
        "k".parse().unwrap(),
        KnownPlan {
            version: 1,
            document: Arc::new(child),
            needs_person: None,
        },
    );
    let catalog = make_catalog(&[0; TOOLS.len()]);
    let ValidationReport { plan, findings } =
        validate_with(document, &catalog, &known, &Bounds::default());
    plan.unwrap_or_else(|| panic!("{findings:?}"))
}

/// What the operator may have decided, without what people always allow.
pub(crate) const BASES: usize = 7;
/// Only `ada` approves here, and every principal runs plans.
pub(crate) const ROLES: usize = 6;
/// The tools that people may always allow.
pub(crate) const ALWAYS: [&str; 3] = ["s.write", "s.peek", "s.read"];

/// The number of a base with these tools always allowed.
pub(crate) fn with_always(policy: usize, tool: &str) -> usize {
    let bit = ALWAYS.iter().position(|name| *name == tool).unwrap();
    let base = policy % BASES;
    let mask = policy / BASES;
    base + BASES * (mask | (1 << bit))
}

pub(crate) fn always_allows(policy: usize, tool: &str) -> bool {
    let bit = ALWAYS.iter().position(|name| *name == tool);
    bit.is_some_and(|bit| (policy / BASES) & (1 << bit) != 0)
}

pub(crate) fn policies() -> Vec<Arc<Policy>> {
    let bases = [
        json!({}),
        json!({"rules": [{"tool": "write", "if": "args.to == 'evil'", "then": "deny"},
                         {"tool": "s.write", "if": "args.to == 'ok'", "then": "allow"}],
               "approval": {"expires_after": "10s"}}),
        json!({"approval": {"four_eyes": true, "required": 2, "step_expires_after": "5s"}, "late_bound": "ask"}),
        json!({"guarded_tools": ["Peek"], "rules": [{"tool": "s.read", "then": "allow"}],
               "approval": {"uses": 2, "expires_after": "20s"}}),
        json!({"rules": [{"tool": "s.*", "if": "args.to.size() > 2", "then": "ask"}, {"tool": "*", "then": "allow"}]}),
        json!({"mode": "observe", "rules": [{"tool": "*", "then": "deny"}], "caps": {"s.write": 1}}),
        json!({}),
    ];
    let numbers = 0..BASES << ALWAYS.len();
    let read = |number: usize| {
        let mut text = bases[number % BASES].clone();
        for tool in ALWAYS {
            if always_allows(number, tool) {
                let rule = json!({"name": format!("always {tool}"), "tool": tool, "then": "allow"});
                match text["rules"].as_array_mut() {
                    Some(rules) => rules.push(rule),
                    None => text["rules"] = json!([rule]),
                }
            }
        }
        let mut document: PolicyDocument = serde_json::from_value(text).unwrap();
        if number % BASES == ROLES {
            document.roles = Some(roles());
        }
        Arc::new(Policy::read(&document).unwrap())
    };
    numbers.map(read).collect()
}

fn roles() -> RolesTable {
    let kinds = people().map(|by| format!("{}:{}", by.kind.as_str(), by.name));
    RolesTable {
        approver: Some(vec!["person:ada".to_owned()]),
        operator: Some(kinds.to_vec()),
        ..RolesTable::default()
    }
}

pub(crate) fn make_catalog(versions: &[u32]) -> Catalog {
    Catalog::new(TOOLS.iter().zip(versions).map(|(name, version)| {
        let definition = ToolDefinition::new(
            "s",
            name,
            &format!("version {version}"),
            json!({"type": "object"}),
        );
        let annotations = if *name == "write" {
            Annotations::default()
        } else {
            Annotations::read_only()
        };
        KnownTool::new(definition.with_annotations(annotations), EffectClass::Safe)
    }))
}

pub(crate) fn people() -> [Principal; 5] {
    [
        Principal::person("ada"),
        Principal::person("bob"),
        Principal::person("eve"),
        Principal::agent("planner"),
        Principal::service("ci"),
    ]
}
