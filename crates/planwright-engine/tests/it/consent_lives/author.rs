//! Plans that an author may propose: calls that fail, arguments that are known only later, gates,
//! and executors.

use planwright_testing::dice::Dice;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What is said in this world.
pub(super) const WORDS: [&str; 3] = ["ok", "evil", "fine"];

pub(super) fn plan(dice: &mut Dice) -> Value {
    let word = |dice: &mut Dice| dice.pick(&WORDS);
    let mut steps = vec![json!({"id": "a", "tool": "r.read", "args": {"value": word(dice)}})];
    // A reader fails while the rest still waits for something else: policy may agree to another
    // try.
    let reads = dice.chance(40);
    let tool = dice.pick(if reads {
        &["r.read", "r.look"]
    } else {
        &["r.read", "w.write", "w.erase", "r.look"]
    });
    let mut args = json!({"to": word(dice), "of": word(dice), "value": word(dice)});
    if reads || dice.chance(60) {
        args["fail"] = json!(true);
    }
    let mut failing = json!({"id": "b", "tool": tool, "dependsOn": ["a"], "args": args});
    // What a step that is written anew has to keep.
    let narrows = [
        (15, "retry", json!({"max": 1, "backoff": 0.01})),
        (25, "timeoutSeconds", json!(30.0)),
        (10, "constraints", json!(["true"])),
        (8, "approvalRequired", json!(true)),
    ];
    for (percent, name, value) in narrows {
        if dice.chance(percent) {
            failing[name] = value;
        }
    }
    steps.push(failing);
    // What waits for `s` has not begun when `b` fails.
    let waits = if reads || dice.chance(50) {
        vec!["s"]
    } else {
        Vec::new()
    };
    if !waits.is_empty() {
        steps.push(json!({"id": "s", "tool": "r.read", "dependsOn": ["a"], "args": {}}));
    }
    let source = if reads || dice.chance(50) {
        "${a}"
    } else {
        "${b}"
    };
    let others = if reads { 0 } else { 1 };
    let critical = dice.chance(50);
    // An executor may work on each element of a list.
    let items = if dice.chance(30) {
        json!(["one", "two"])
    } else {
        Value::Null
    };
    let executor = if dice.chance(45) {
        Some("program")
    } else {
        None
    };
    let optional = [
        (
            40,
            json!({"id": "c", "tool": "w.write", "args": {"to": source}, "dependsOn": waits,
                   "undo": {"tool": "w.erase", "args": {"to": "back"}}}),
        ),
        (
            30,
            json!({"id": "h", "tool": "w.erase", "args": {"to": "ok"}, "dependsOn": waits}),
        ),
        (
            30,
            json!({"id": "d", "tool": "r.look", "args": {"of": source}, "critical": false}),
        ),
        (
            75,
            json!({"id": "e", "agent": {"instruction": "work on ${a}"}, "critical": critical, "dependsOn": waits,
                   "forEach": items}),
        ),
        (
            25 * others,
            json!({"id": "f", "agent": {"instruction": "go on", "maxTurns": 6}, "dependsOn": ["b"]}),
        ),
        (
            12,
            json!({"id": "g", "tool": "w.erase", "approvalRequired": true, "args": {}, "critical": false}),
        ),
        (
            15 * others,
            json!({"id": "x", "agent": {"instruction": "run", "executor": executor}, "timeoutSeconds": 30}),
        ),
    ];
    for (percent, step) in optional {
        if dice.chance(percent) {
            steps.push(without_nothing(step));
        }
    }
    let mut plan = json!({"id": "p", "goal": "reach it", "steps": steps});
    if dice.chance(60) {
        plan["toolsRequired"] = json!(listed(dice, &plan));
    }
    plan
}

/// The tools that the steps call, and some more.
fn listed(dice: &mut Dice, plan: &Value) -> BTreeSet<String> {
    let steps = plan["steps"].as_array().into_iter().flatten();
    let mut names: BTreeSet<String> = steps
        .filter_map(|step| step["tool"].as_str())
        .map(str::to_owned)
        .collect();
    for tool in super::rules::TOOLS {
        if dice.chance(35) {
            names.insert(tool.to_owned());
        }
    }
    names
}

fn without_nothing(mut step: Value) -> Value {
    if let Some(step) = step.as_object_mut() {
        step.retain(|_, value| !value.is_null());
    }
    if let Some(agent) = step.get_mut("agent").and_then(Value::as_object_mut) {
        agent.retain(|_, value| !value.is_null());
    }
    step
}

/// Arguments for a call, good and bad.
pub(super) fn args(dice: &mut Dice) -> Value {
    let word = dice.pick(&WORDS);
    dice.pick(&[
        json!({"to": word}),
        json!({"to": word, "of": word}),
        json!({"of": word}),
        json!({"value": word}),
        json!({"to": word, "fail": true}),
        json!({"to": "${a}", "of": "$${a}"}),
        json!({"to": 7}),
        json!(word),
    ])
}

/// Arguments that a plan can have.
pub(super) fn good_args(dice: &mut Dice) -> Map<String, Value> {
    let word = dice.pick(&WORDS);
    let value = dice.pick(&[
        json!({"to": word, "of": word, "value": word}),
        json!({"to": "${a}", "of": "${a}"}),
    ]);
    value.as_object().cloned().unwrap_or_default()
}
