//! The time of day jumps, as after a suspend, while the program runs.

use crate::client::Service;
use planwright_testing::steps::{effect, sleep};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running, said};
use serde_json::json;
use std::process::{Command, Stdio};

const DAY: i64 = 24 * 60 * 60;

/// Lets the clock of a command be set while it runs.
fn shift(bench: &Bench, command: &mut Command) {
    let library = bench.path("shifted_clock.so");
    if !library.is_file() {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/service/shifted_clock.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([library.as_os_str(), source.as_ref()])
            .status();
        assert!(built.unwrap().success());
        bench.write("shift", "0");
    }
    command.env("LD_PRELOAD", library);
    command.env("CLOCK_SHIFT", bench.path("shift"));
}

fn jump(bench: &Bench, seconds: i64) {
    bench.write("shift.new", &seconds.to_string());
    std::fs::rename(bench.path("shift.new"), bench.path("shift")).unwrap();
}

#[test]
fn what_expired_while_the_machine_slept_is_refused() {
    let config = "[policy.approval]\nexpires_after = \"1h\"\n";
    let service = Service::adjusted(config, shift);
    let made = service.bench.run(&[
        "token",
        "create",
        "--role",
        "viewer",
        "--kind",
        "person",
        "--name",
        "bob",
        "--expires",
        "1h",
        "--json",
    ]);
    let short = made.ends(0).json()["token"].as_str().unwrap().to_owned();
    let asked = || service.bare("GET", "/plan").token(&short).send().status;
    service.plan("p", json!([effect("a", &[])]));
    service.approve("p");
    assert_eq!(asked(), 200);
    jump(&service.bench, DAY);
    assert_eq!(asked(), 401, "the token lived for an hour");
    let refused = service.post("/plan/p/run", &json!({}));
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(refused.text().contains("expired"), "{}", refused.text());
    assert_eq!(service.bench.read("effects.txt"), "");
}

#[test]
fn looking_at_plans_after_a_sleep_leaves_a_living_run_alone() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([sleep("slow", 4_000, &[]), effect("z", &["slow"])]),
    );
    let mut command = bench.command(&["run", &plan, "--yes", "--json"]);
    shift(&bench, &mut command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running::of(command);
    bench.wait_for("p", "attempt_started", "slow");
    jump(&bench, DAY);
    for look in [&["list"][..], &["show", "p"], &["list"]] {
        let mut command = bench.command(look);
        shift(&bench, &mut command);
        assert!(command.output().unwrap().status.success());
    }
    let said = running.wait().ends(0);
    assert_eq!(said.json()["status"], "completed");
    let log = bench.log("p");
    assert!(
        log.iter().all(|entry| entry["kind"] != "run_stalled"),
        "{log:?}"
    );
    assert_eq!(bench.read("effects.txt"), "z\n");
}

#[test]
fn doctor_warns_of_a_clock_that_is_behind_the_journal() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    let run = |args: &[&str]| {
        let mut command = bench.command(args);
        shift(&bench, &mut command);
        said(command.output().unwrap())
    };
    assert_eq!(run(&["import", &plan]).code, 0);
    let right = run(&["doctor"]);
    assert!(!right.out.contains("behind the last entry"), "{right:#?}");
    jump(&bench, -DAY);
    let behind = run(&["doctor"]);
    assert!(behind.out.contains("behind the last entry"), "{behind:#?}");
    assert!(behind.out.contains("set the clock right"), "{behind:#?}");
    // It is a warning: everything works.
    assert_eq!(behind.code, 0, "{behind:#?}");
}

#[test]
fn a_run_without_a_slot_says_so() {
    let service = Service::configured("[serve]\nmax_runs = 1\n");
    service.plan("long", json!([sleep("a", 3_000, &[])]));
    service.plan("short", json!([effect("b", &[])]));
    for id in ["long", "short"] {
        service.approve(id);
    }
    service.run("long");
    let run = service.run("short");
    let result = service.result("short", &run);
    assert_eq!(result["status"], "executing");
    assert_eq!(result["queuedBehind"], 1, "{result:#}");
    for look in [&["list"][..], &["show", "short"]] {
        let said = service.bench.run(look).ends(0);
        let text = said.out.clone() + &said.err;
        assert!(text.contains("waits for its turn"), "{said:#?}");
    }
    assert!(
        service.bench.log("short")[1]["kind"] == "run_queued",
        "{:?}",
        service.bench.log("short")
    );
    service.wait_for("short", "completed");
    let result = service.result("short", &run);
    assert!(result.get("queuedBehind").is_none(), "{result:#}");
    wait_until("the effect", || service.bench.read("effects.txt") == "b\n");
}
