//! Steps with an effect that is seen from outside, and the log of those effects.

use planwright_testing::steps::{call, effect};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The file that every tool adds its lines to, one per effect.
const LOG: &str = "effects.txt";

/// How often each effect happened.
pub(crate) fn count_effects(bench: &Bench) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in bench.read(LOG).lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

/// A step that runs a program, which takes its time before and after its effect.
pub(crate) fn command(id: &str, milliseconds: u64, after: &[&str]) -> Value {
    let pause = format!("{:.3}", milliseconds as f64 / 2_000.0);
    let script = format!("sleep {pause}; echo {id} >> {LOG}; sleep {pause}");
    let args = json!({ "command": "sh", "args": ["-c", script] });
    call(id, "local.run_command", args, after)
}

/// A step that calls an MCP server, which does the same.
pub(crate) fn note(id: &str, milliseconds: u64, after: &[&str]) -> Value {
    let args = json!({ "line": id, "milliseconds": milliseconds });
    call(id, "ledger.note", args, after)
}

/// Three steps, one of each kind. Their ids are the lines that they leave.
pub(crate) fn three_effects(plan: &str, milliseconds: u64) -> Value {
    let [one, two, three] = ["command", "note", "append"].map(|name| format!("{plan}-{name}"));
    json!([
        command(&one, milliseconds, &[]),
        note(&two, milliseconds, &[]),
        effect(&three, &[&one, &two]),
    ])
}
