//! The n-th operation on the disk fails, for many n: what was acknowledged is there, what happened
//! happened once, and the run comes to its end on a disk that works again.

use crate::effects::count_effects;
use crate::world::seed;
use planwright_testing::dice::Dice;
use planwright_testing::steps::effect;
use planwright_testing::workbench::{Bench, Said, said};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const KINDS: [&str; 5] = ["eio", "enospc", "erofs", "short", "sync"];
const STEPS: [&str; 3] = ["one", "two", "three"];
/// More operations than a run of this plan makes.
const OPERATIONS: u64 = 120;

/// How many operations fail, one after the other, for each kind.
fn tries() -> u64 {
    let given = std::env::var("PLANWRIGHT_DISK_TRIES").ok();
    given.map_or(3, |text| text.parse().expect("a number"))
}

#[test]
fn whichever_operation_fails_the_run_ends_well_on_a_disk_that_works() {
    let mut dice = Dice::new(seed("PLANWRIGHT_DISK_SEED"));
    let folder = tempfile::tempdir().unwrap();
    let library = build(folder.path());
    let tries = tries();
    let mut failed = 0;
    let mut cycles = 0;
    for kind in KINDS {
        for number in 1..=tries {
            // All of them if there are as many tries, else any.
            let at = if tries >= OPERATIONS {
                number
            } else {
                1 + dice.roll() % OPERATIONS
            };
            for goes_on in [false, true] {
                failed += u64::from(try_run(&library, kind, at, goes_on));
                cycles += 1;
            }
        }
    }
    println!("{cycles} runs, {failed} of them failed at first");
    assert!(failed > 0, "no operation failed");
}

fn build(folder: &Path) -> PathBuf {
    let library = folder.join("failing_disk.so");
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/endurance/failing_disk.c"
    );
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library);
    assert!(cc.args([source, "-ldl"]).status().unwrap().success());
    library
}

/// Runs a plan while the disk fails, then again on one that works. Returns whether the first try
/// failed.
fn try_run(library: &Path, kind: &str, at: u64, goes_on: bool) -> bool {
    let context = format!(
        "{kind} at {at}, {}",
        if goes_on { "for good" } else { "once" }
    );
    let bench = Bench::new();
    let [one, two, three] = STEPS;
    let steps = json!([effect(one, &[]), effect(two, &[one]), effect(three, &[two])]);
    let plan = bench.plan("p", steps);
    let mut command = bench.command(&["run", &plan, "--yes", "--json"]);
    command
        .env("LD_PRELOAD", library)
        .env("FAULTY_DIR", bench.path(".plans"))
        .env("FAULTY_KIND", kind)
        .env("FAULTY_AT", at.to_string());
    if goes_on {
        command.env("FAULTY_ON", "1");
    }
    let first = said(command.output().unwrap());
    let claimed = first.code == 0;
    if claimed {
        assert_eq!(first.json()["status"], "completed", "{context}: {first:#?}");
    }
    finish(&bench, &plan, &context);
    if claimed {
        let ends = bench.log("p");
        let ends = ends.iter().filter(|entry| entry["kind"] == "run_completed");
        assert_eq!(ends.count(), 1, "{context}: what was acknowledged is there");
    }
    !claimed
}

/// Brings the run to its end as a person would.
fn finish(bench: &Bench, plan: &str, context: &str) {
    let mut last = None;
    for _ in 0..12 {
        let shown = bench.run(&["show", "p", "--json"]);
        let status = if shown.code == 0 {
            shown.json()["status"].as_str().unwrap().to_owned()
        } else {
            "missing".to_owned()
        };
        match status.as_str() {
            "completed" => return check(bench, context),
            "missing" => last = Some(bench.run(&["run", plan, "--yes", "--json"])),
            "proposed" | "approved" | "draft" => {
                last = Some(bench.run(&["run", "p", "--yes", "--json"]));
            }
            "waiting" => last = resolve(bench),
            _ => last = Some(bench.run(&["resume", "p", "--json"])),
        }
    }
    panic!("{context}: the run does not end: {last:#?}");
}

fn resolve(bench: &Bench) -> Option<Said> {
    let shown = bench.log("p");
    let lost = shown.iter().rfind(|entry| entry["kind"] == "outcome_lost");
    let step = lost.and_then(|entry| entry["step"].as_str())?;
    let happened = count_effects(bench).contains_key(step);
    let how = if happened {
        "--happened"
    } else {
        "--run-again"
    };
    Some(bench.run(&["resolve", "p", step, how]))
}

fn check(bench: &Bench, context: &str) {
    let effects: Vec<(String, usize)> = count_effects(bench).into_iter().collect();
    let mut expected = STEPS.map(|step| (step.to_owned(), 1));
    expected.sort();
    assert_eq!(effects, expected, "{context}");
    let verified = bench.run(&["verify", "--json"]);
    assert_eq!(verified.code, 0, "{context}: {verified:#?}");
    let runs: Value = bench.run(&["show", "p", "--json"]).json();
    assert_eq!(runs["status"], "completed", "{context}");
}
