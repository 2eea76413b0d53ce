//! A service that is killed again and again.

use crate::client::Service;
use planwright_testing::steps::{effect, sleep};
use planwright_testing::wait::wait_until;
use serde_json::json;

fn calls(service: &Service) -> usize {
    let log = service.bench.log("p");
    log.iter()
        .filter(|entry| entry["kind"] == "attempt_started" && entry["step"] == "slow")
        .count()
}

#[test]
fn six_quick_kills_beside_a_slow_call_fail_no_run() {
    let mut service = Service::new();
    service.plan(
        "p",
        json!([sleep("slow", 3_000, &[]), effect("z", &["slow"])]),
    );
    service.approve("p");
    service.run("p");
    for killed in 0..6 {
        wait_until("the call", || calls(&service) > killed);
        service.kill();
        service.start();
    }
    service.wait_for("p", "completed");
    assert_eq!(service.bench.read("effects.txt"), "z\n");
    let log = service.bench.log("p");
    let alone = log.iter().filter(|entry| entry["kind"] == "step_isolated");
    assert_eq!(alone.count(), 4, "after three of them it is called alone");
}
