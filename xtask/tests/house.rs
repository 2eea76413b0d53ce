//! The house kept in order by a machine: bars for what `cargo xtask census` counts over the
//! workspace. A bar is where the codebase stood when it was last tidied, with some room; a change
//! that misses one is put right in the same change, because counts without a keeper creep.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]

use serde_json::{Value, json};
use std::process::Command;

/// Crates whose `src` root has a bar, with the most entries.
const MAX_ENTRIES: &[(&str, u64)] = &[("planwright-engine", 22), ("planwright", 15)];

/// Crates whose root modules have a bar, with the most that may be in import cycles.
const MAX_IN_CYCLES: &[(&str, u64)] = &[("planwright-engine", 4)];

/// The most public methods of one type.
const MAX_PUBLIC_METHODS: u64 = 40;

/// The most bindings of a tuple to a tuple, in sources and tests together.
const MAX_TUPLES: usize = 20;

/// The most public functions with an unusual name of one word, in percent.
const MAX_UNUSUAL_WORDS: usize = 45;

/// The most public functions that a bare participle names, in percent.
const MAX_PARTICIPLES: usize = 2;

/// A message names so many places at most.
const MAX_PLACES: usize = 100;

#[test]
fn the_workspace_keeps_every_bar() {
    let missed = missed_bars(&take_census());
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}

#[test]
fn a_missed_bar_names_the_place_and_the_way_out() {
    let tidy = json!({
        "crates": [
            { "name": "planwright-engine", "entries": 22, "modules_in_cycles": 4, "cycles": [["a", "b", "c", "d"]],
              "largest_type": "Plans", "methods_of_largest_type": { "public": 40 } },
            { "name": "planwright", "entries": 15, "modules_in_cycles": 9, "cycles": [],
              "largest_type": "Config", "methods_of_largest_type": { "public": 0 } },
        ],
        "shared_public_names": {},
        "status_words": [],
        "tuples": vec!["a.rs:1"; 20],
        "public_functions": 100,
        "unusual_words": vec!["a.rs:1 tend"; 45],
        "participles": vec!["a.rs:1 told"; 2],
    });
    assert_eq!(missed_bars(&tidy), [""; 0]);
    let untidy = [
        ("/crates/0/entries", json!(23), "planwright-engine/src"),
        ("/crates/1/entries", json!(16), "planwright/src"),
        ("/crates/0/modules_in_cycles", json!(5), "a b c d"),
        (
            "/crates/0/methods_of_largest_type/public",
            json!(41),
            "`Plans`",
        ),
        (
            "/shared_public_names",
            json!({ "Answer": ["b.rs:7"] }),
            "b.rs:7",
        ),
        ("/status_words", json!(["b.rs:7 \"failed\""]), "b.rs:7"),
        ("/tuples", json!(vec!["b.rs:7"; 21]), "b.rs:7"),
        (
            "/unusual_words",
            json!(vec!["b.rs:7 tend"; 46]),
            "b.rs:7 tend",
        ),
        ("/participles", json!(vec!["b.rs:7 told"; 3]), "b.rs:7 told"),
    ];
    for (place, value, named) in untidy {
        let mut census = tidy.clone();
        *census.pointer_mut(place).unwrap() = value;
        let missed = missed_bars(&census);
        assert_eq!(missed.len(), 1, "{place}: {missed:?}");
        assert!(missed[0].contains(named), "{place}: {missed:?}");
    }
}

/// Lists the bars that the census misses, each with the places and the way out.
fn missed_bars(census: &Value) -> Vec<String> {
    let mut missed = missed_bars_of_crates(census);
    let shared = census["shared_public_names"].as_object().unwrap();
    for (name, places) in shared {
        missed.push(format!(
            "several public types are named `{name}`: rename all but one by what each is for\n{}",
            list(places)
        ));
    }
    let status_words = &census["status_words"];
    if count(status_words) > 0 {
        missed.push(format!(
            "status words stand as text: use the enum of the core, its `as_str()` where text is \
             needed; a word of another vocabulary is a variant of an enum of its own\n{}",
            list(status_words)
        ));
    }
    let tuples = &census["tuples"];
    if count(tuples) > MAX_TUPLES {
        missed.push(format!(
            "{} bindings `let (a, b) = (x, y)`, {MAX_TUPLES} at most: write two lines\n{}",
            count(tuples),
            list(tuples)
        ));
    }
    let functions = census["public_functions"].as_u64().unwrap();
    let shares = [
        ("unusual_words", "one word", MAX_UNUSUAL_WORDS),
        ("participles", "a bare participle", MAX_PARTICIPLES),
    ];
    for (name, what, max_percent) in shares {
        let found = &census[name];
        if count(found) * 100 > max_percent * usize::try_from(functions).unwrap() {
            missed.push(format!(
                "{} of {functions} public functions are named by {what}, {max_percent}% at most: \
                 name them by verb and noun, a question as a question\n{}",
                count(found),
                list(found)
            ));
        }
    }
    missed
}

fn missed_bars_of_crates(census: &Value) -> Vec<String> {
    let mut missed = Vec::new();
    for krate in census["crates"].as_array().unwrap() {
        let name = krate["name"].as_str().unwrap();
        let entries = krate["entries"].as_u64().unwrap();
        if let Some(max) = bar_of(MAX_ENTRIES, name).filter(|max| entries > *max) {
            missed.push(format!(
                "crates/{name}/src has {entries} entries, {max} at most: move the new file into \
                 the folder of its subject"
            ));
        }
        let in_cycles = krate["modules_in_cycles"].as_u64().unwrap();
        if let Some(max) = bar_of(MAX_IN_CYCLES, name).filter(|max| in_cycles > *max) {
            missed.push(format!(
                "{in_cycles} root modules of {name} import each other in circles, {max} at most: \
                 move what both sides need below them, or hand it over behind a trait\n{}",
                list_cycles(&krate["cycles"])
            ));
        }
        let methods = &krate["methods_of_largest_type"]["public"];
        let methods = methods.as_u64().unwrap();
        if methods > MAX_PUBLIC_METHODS {
            missed.push(format!(
                "`{}` of {name} has {methods} public methods, {MAX_PUBLIC_METHODS} at most: a group \
                 of them is a facade of its own",
                krate["largest_type"].as_str().unwrap()
            ));
        }
    }
    missed
}

fn bar_of(bars: &[(&str, u64)], name: &str) -> Option<u64> {
    let bar = bars.iter().find(|(of, _)| *of == name);
    bar.map(|(_, max)| *max)
}

fn count(places: &Value) -> usize {
    places.as_array().unwrap().len()
}

fn list(places: &Value) -> String {
    let places = places.as_array().unwrap().iter().take(MAX_PLACES);
    let lines: Vec<String> = places
        .map(|place| format!("    {}", place.as_str().unwrap()))
        .collect();
    lines.join("\n")
}

fn list_cycles(cycles: &Value) -> String {
    let cycles = cycles.as_array().unwrap().iter();
    let lines: Vec<String> = cycles
        .map(|cycle| {
            let modules = cycle.as_array().unwrap().iter();
            let modules: Vec<&str> = modules.map(|module| module.as_str().unwrap()).collect();
            format!("    {}", modules.join(" "))
        })
        .collect();
    lines.join("\n")
}

fn take_census() -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["census", "--json", "--dir"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("the census runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}
