//! Plans of two people over one connection to a server: what is too large for one of them decides
//! nothing about the other.

use crate::client::Service;
use planwright_testing::bank::bank_script;
use planwright_testing::steps::{call, step};
use planwright_testing::wait::wait_until;
use serde_json::json;

fn bank() -> Service {
    bank_with("")
}

/// A service with a bank, and with further settings of it.
fn bank_with(settings: &str) -> Service {
    Service::configured(&format!(
        "[servers.bank]\ncommand = \"python3\"\nargs = [{:?}, \"effects.txt\", \"starts.txt\"]\n{settings}",
        bank_script()
    ))
}

fn retrying(mut step: serde_json::Value) -> serde_json::Value {
    step["retry"] = json!({ "max": 1, "backoff": 0, "on": ["output_too_large"] });
    step
}

#[test]
fn a_payment_beside_the_large_read_of_another_plan_is_made_once_and_completes() {
    let service = bank();
    let pay = retrying(call("pay", "bank.pay", json!({}), &[]));
    service.plan("alice", json!([pay]));
    let read = call("read", "bank.read", json!({ "shape": "head" }), &[]);
    service.plan("bob", json!([read]));
    service.approve("alice");
    service.approve("bob");
    let alice = service.run("alice");
    wait_until("the payment", || {
        !service.bench.read("effects.txt").is_empty()
    });
    let bob = service.run("bob");
    service.wait_for("bob", "failed");
    service.wait_for("alice", "completed");
    let paid = service.result("alice", &alice);
    assert_eq!(step(&paid, "pay")["attempts"], 1, "{paid:#}");
    let read = service.result("bob", &bob);
    assert_eq!(step(&read, "read")["error"]["code"], "output_too_large");
    assert_eq!(service.bench.read("effects.txt"), "paid\n");
    assert_eq!(service.bench.read("starts.txt").lines().count(), 1);
}

#[test]
fn a_payment_whose_own_answer_is_too_large_is_not_made_again_and_waits_for_a_person() {
    let service = bank();
    let pay = call("pay", "bank.pay", json!({ "shape": "head" }), &[]);
    service.plan("alice", json!([retrying(pay)]));
    service.approve("alice");
    let run = service.run("alice");
    wait_until("the outcome", || {
        let result = service.result("alice", &run);
        let status = &step(&result, "pay")["status"];
        status != "running" && status != "queued"
    });
    let paid = service.result("alice", &run);
    let pay = step(&paid, "pay");
    assert_eq!(pay["status"], "outcome_unknown", "{paid:#}");
    let why = pay["error"]["message"].as_str().unwrap();
    assert!(why.contains("output_too_large"), "{why}");
    assert_eq!(service.bench.read("effects.txt"), "paid\n");
}

#[test]
fn plans_that_do_not_share_a_server_have_a_process_each_that_ends_with_the_run() {
    let service = bank_with("per_plan = true\n");
    let read = || json!([call("read", "bank.read", json!({ "alone": true }), &[])]);
    for plan in ["alice", "bob"] {
        service.plan(plan, read());
        service.approve(plan);
        service.run(plan);
        service.wait_for(plan, "completed");
    }
    let starts = service.bench.read("starts.txt");
    let processes: Vec<&str> = starts.lines().collect();
    assert_eq!(processes.len(), 3, "the tools are listed by one more");
    let is_alive = |process: &str| std::path::Path::new("/proc").join(process).exists();
    wait_until("the processes of the runs to end", || {
        !is_alive(processes[1]) && !is_alive(processes[2])
    });
    assert!(is_alive(processes[0]));
}
