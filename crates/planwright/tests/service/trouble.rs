//! Trouble with the disk: the service says that it is not ready and why, heals where it can, and
//! ends where it cannot.

use crate::client::Service;
use planwright_testing::steps::{effect, sleep};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use serde_json::json;
use std::process::Command;
use std::time::{Duration, Instant};

/// What is promised about files that are removed, with some room for a busy machine.
const NOTICED: Duration = Duration::from_secs(5);

/// Has the library that lets a disk fail built, and names what the program needs to be told.
fn faulty_disk(bench: &Bench) -> Vec<(&'static str, String)> {
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
    let mut service = Service::new();
    assert_eq!(service.stop(), 0);
    service.environment = faulty_disk(&service.bench);
    service.start();
    service
}

#[track_caller]
fn is_not_ready(service: &Service, reason: &str) {
    wait_until("the service not to be ready", || {
        service.bare("GET", "/readyz").send().status == 503
    });
    let said = service.bare("GET", "/readyz").send().ends(503).json();
    assert_eq!(said["ready"], false, "{said}");
    assert!(said["reasons"].to_string().contains(reason), "{said}");
}

#[test]
fn a_full_or_read_only_disk_is_told_to_probes_and_callers_and_heals() {
    let service = service_on_a_faulty_disk();
    service.get("/readyz").ends(200);
    for (order, reason) in [("full", "the disk is full"), ("readonly", "")] {
        service.bench.write("order", order);
        is_not_ready(&service, reason);
        let refused = service.post("/plan", &json!({ "goal": "one more" }));
        if order == "full" {
            let refused = refused.refuses(503, reason);
            assert!(refused.header("retry-after").is_some());
        }
        service.bench.write("order", "");
        wait_until("the service to be ready again", || {
            service.bare("GET", "/readyz").send().status == 200
        });
        service
            .post("/plan", &json!({ "goal": "one more" }))
            .ends(201);
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
    std::fs::remove_dir_all(service.bench.path(".plans")).unwrap();
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
    std::fs::remove_dir_all(bench.path(".plans")).unwrap();
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
