//! Trouble with the disk: the service says that it is not ready and why, heals where it can, and
//! ends where it cannot.

use crate::client::Service;
use planwright_testing::steps::{effect, sleep};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, said};
use serde_json::json;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// What is promised about files that are removed, with some room for a busy machine.
const NOTICED: Duration = Duration::from_secs(5);

/// Has the library that lets a disk fail built, and names what the program needs to be told.
pub(crate) fn faulty_disk(bench: &Bench) -> Vec<(&'static str, String)> {
    let library = bench.path("faulty_disk.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/service/faulty_disk.c"
        ))
        .arg("-ldl")
        .status()
        .unwrap();
    assert!(built.success());
    let text = |name: &str| bench.path(name).to_str().unwrap().to_owned();
    vec![
        ("LD_PRELOAD", text("faulty_disk.so")),
        ("FAULTY_DIR", text(".plans")),
        ("FAULTY_ORDER", text("order")),
    ]
}

fn service_on_a_faulty_disk() -> Service {
    let mut service = Service::prepared("");
    service.environment = faulty_disk(&service.bench);
    service.start();
    service
}

#[track_caller]
fn is_not_ready(service: &Service, reason: &str) {
    // The first answer that is not 200 is the one that counts: there may be no second.
    let mut said = json!(null);
    wait_until("the service not to be ready", || {
        let answer = service.bare("GET", "/readyz").send();
        said = answer.json();
        answer.status == 503
    });
    assert_eq!(said["ready"], false, "{said}");
    assert!(said["reasons"].to_string().contains(reason), "{said}");
}

/// Removes a folder in which a process may make a file at the same moment.
fn remove_folder(path: &Path) {
    wait_until("the end of the folder", || {
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => false,
            removed => removed.is_ok(),
        }
    });
}

#[test]
fn a_full_disk_is_told_to_probes_and_callers_and_heals() {
    let service = service_on_a_faulty_disk();
    service.get("/readyz").ends(200);
    service.bench.write("order", "full");
    is_not_ready(&service, "the disk is full");
    let refused = service.post("/plan", &json!({ "goal": "one more" }));
    let refused = refused.refuses(503, "the disk is full");
    assert!(refused.header("retry-after").is_some());
    service.bench.write("order", "");
    wait_until("the service to be ready again", || {
        service.bare("GET", "/readyz").send().status == 200
    });
    service
        .post("/plan", &json!({ "goal": "one more" }))
        .ends(201);
}

#[test]
fn a_disk_that_takes_nothing_any_more_ends_the_service_after_its_last_answer() {
    for order in ["readonly", "sync"] {
        let mut service = service_on_a_faulty_disk();
        service.get("/readyz").ends(200);
        service.bench.write("order", order);
        is_not_ready(&service, "can no longer be used");
        assert_eq!(service.ends(), 5, "{order}");
    }
}

#[test]
fn a_failed_sync_ends_the_service_with_code_5_and_it_goes_on_at_the_next_start() {
    let mut service = service_on_a_faulty_disk();
    service.plan("p", json!([effect("a", &[])]));
    service.approve("p");
    service.bench.write("order", "sync");
    let refused = service.request("POST", "/plan/p/run").send();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(service.ends(), 5);
    let said = service.bench.read("serve.err");
    assert!(said.contains("the store can no longer be used"), "{said}");
    assert_eq!(service.bench.read("effects.txt"), "");
    service.bench.write("order", "");
    service.start();
    // Whether the start of the run survived is not known to the caller, and not to the disk.
    service.bench.run(&["verify"]).ends(0);
    service.get("/readyz").ends(200);
}

#[test]
fn a_removed_store_ends_the_service_before_the_next_call() {
    let mut service = Service::new();
    service.plan("p", json!([sleep("a", 3_000, &[]), effect("b", &["a"])]));
    service.approve("p");
    service.run("p");
    service.bench.wait_for("p", "attempt_started", "a");
    remove_folder(&service.bench.path(".plans"));
    let removed = Instant::now();
    assert_eq!(service.ends(), 5);
    assert!(removed.elapsed() < NOTICED, "{:?}", removed.elapsed());
    let said = service.bench.read("serve.err");
    assert!(said.contains("was removed while it was in use"), "{said}");
    assert_eq!(service.bench.read("effects.txt"), "");
}

#[test]
fn a_removed_store_ends_a_run_at_the_command_line_before_the_next_call() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([sleep("a", 3_000, &[]), effect("b", &["a"])]));
    let running = bench.start(&["run", &plan, "--yes"]);
    bench.wait_for("p", "attempt_started", "a");
    remove_folder(&bench.path(".plans"));
    let removed = Instant::now();
    let said = running.wait();
    assert!(removed.elapsed() < NOTICED, "{:?}", removed.elapsed());
    assert_eq!(said.code, 5, "{said:?}");
    assert!(
        said.err.contains("was removed while it was in use"),
        "{said:?}"
    );
    assert_eq!(bench.read("effects.txt"), "");
}

#[test]
fn a_full_disk_is_what_doctor_and_every_command_name() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    let environment = faulty_disk(&bench);
    bench.write("order", "full");
    let run = |args: &[&str]| {
        let mut command = bench.command(args);
        said(command.envs(environment.iter().cloned()).output().unwrap())
    };
    let checked = run(&["doctor"]);
    assert_eq!(checked.code, 5, "{checked:#?}");
    assert!(checked.out.contains("the disk is full"), "{checked:#?}");
    assert!(checked.out.contains("free disk space"), "{checked:#?}");
    let refused = run(&["comment", "p", "looks fine"]);
    assert_eq!(refused.code, 5, "{refused:#?}");
    assert!(refused.err.contains("the disk is full"), "{refused:#?}");
    assert!(refused.err.contains("free disk space"), "{refused:#?}");
    bench.write("order", "");
    bench.run(&["doctor"]).ends(0);
}
