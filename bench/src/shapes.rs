//! The plans that are measured, as the text a user would have written.

use serde_json::json;
use std::time::Duration;

/// Two chains of ten sleeps of 10 and 100 ms in turn: each takes 550 ms, and the join waits for the
/// later one.
pub(crate) const UNBALANCED_CRITICAL_PATH: Duration = Duration::from_millis(550);

pub(crate) fn plans(shape: &str) -> Option<Vec<String>> {
    Some(match shape {
        "chain" | "chain-used" => vec![chain(1000)],
        "fan-out" => vec![fan_out(1000)],
        "diamonds" => (0..200).map(diamond).collect(),
        "unbalanced" => vec![unbalanced()],
        "layered-1000" => vec![layered(10, 100)],
        "layered-100000" => vec![layered(1000, 100)],
        _ => return None,
    })
}

/// The plans that run before a shape is measured, so that its store is one in use: its log has the
/// size it keeps.
pub(crate) fn earlier_plans(shape: &str) -> Vec<String> {
    match shape {
        "chain-used" => (0..2)
            .map(|i| named_chain(&format!("earlier-{i}"), 1000))
            .collect(),
        _ => Vec::new(),
    }
}

/// Text, not a value: what the bench itself needs must not count as what a plan needs.
fn plan(id: &str, max_concurrency: usize, steps: &[String]) -> String {
    let steps = steps.join(",\n");
    format!(
        r#"{{"id":"{id}","title":"{id}","limits":{{"maxConcurrency":{max_concurrency}}},"steps":[{steps}]}}"#
    )
}

fn echo(id: &str, after: &[String]) -> String {
    json!({ "id": id, "tool": "demo.echo", "args": { "value": id }, "dependsOn": after })
        .to_string()
}

fn chain(length: usize) -> String {
    named_chain("chain", length)
}

fn named_chain(id: &str, length: usize) -> String {
    let steps = (0..length).map(|i| {
        let after: Vec<String> = i
            .checked_sub(1)
            .map(|before| format!("s{before}"))
            .into_iter()
            .collect();
        echo(&format!("s{i}"), &after)
    });
    plan(id, 4, &steps.collect::<Vec<_>>())
}

fn fan_out(width: usize) -> String {
    let mut steps = vec![echo("first", &[])];
    steps.extend((0..width).map(|i| echo(&format!("m{i}"), &["first".to_owned()])));
    let all: Vec<String> = (0..width).map(|i| format!("m{i}")).collect();
    steps.push(echo("last", &all));
    plan("fan-out", width, &steps)
}

/// One step, eight beside each other, one step.
fn diamond(number: usize) -> String {
    let mut steps = vec![echo("first", &[])];
    steps.extend((0..8).map(|i| echo(&format!("m{i}"), &["first".to_owned()])));
    let all: Vec<String> = (0..8).map(|i| format!("m{i}")).collect();
    steps.push(echo("last", &all));
    plan(&format!("diamond-{number}"), 8, &steps)
}

fn unbalanced() -> String {
    let mut steps = Vec::new();
    for (lane, first, second) in [("a", 10, 100), ("b", 100, 10)] {
        for i in 0..10 {
            let ms = if i % 2 == 0 { first } else { second };
            let after: Vec<String> = if i == 0 {
                vec![]
            } else {
                vec![format!("{lane}{}", i - 1)]
            };
            let id = format!("{lane}{i}");
            let step =
                json!({ "id": id, "tool": "demo.sleep", "args": { "ms": ms }, "dependsOn": after });
            steps.push(step.to_string());
        }
    }
    steps.push(echo("join", &["a9".to_owned(), "b9".to_owned()]));
    plan("unbalanced", 4, &steps)
}

/// Layers of equal width; each step depends on two of the layer before.
fn layered(layers: usize, width: usize) -> String {
    let mut steps = Vec::with_capacity(layers * width);
    for layer in 0..layers {
        for i in 0..width {
            let after: Vec<String> = match layer.checked_sub(1) {
                Some(before) => vec![
                    format!("l{before}-{i}"),
                    format!("l{before}-{}", (i + 1) % width),
                ],
                None => vec![],
            };
            steps.push(echo(&format!("l{layer}-{i}"), &after));
        }
    }
    plan("layered", width, &steps)
}

pub(crate) fn one_step(number: usize) -> String {
    plan(&format!("one-{number}"), 4, &[echo("only", &[])])
}
