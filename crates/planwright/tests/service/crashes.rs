//! A service that is killed again and again.

use crate::client::Service;
use planwright_testing::steps::{call, effect, sleep};
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

/// How often the service may die of one call before that call is given up.
const MOST_DEATHS: usize = 15;

#[test]
fn a_call_that_kills_the_service_fails_alone() {
    let config =
        "[local]\nrun_command = true\n\n[tools.\"local.run_command\"]\nclass = \"keyed\"\n";
    let mut service = Service::configured(config);
    let kills = json!({ "command": "sh", "args": ["-c", "kill -9 $PPID"] });
    service.plan(
        "poison",
        json!([call("kill", "local.run_command", kills, &[])]),
    );
    let neighbours = ["one", "two", "three"];
    for id in neighbours {
        let slow = format!("{id}-slow");
        let steps = json!([
            sleep(&slow, 1_500, &[]),
            effect(&format!("{id}-end"), &[&slow])
        ]);
        service.plan(id, steps);
        service.approve(id);
        service.run(id);
    }
    service.approve("poison");
    // It may die before it can answer.
    drop(service.request("POST", "/plan/poison/run").try_send());
    let mut deaths = 0;
    let over = |service: &Service| {
        let status = |id: &str| {
            let answer = service.request("GET", &format!("/plan/{id}")).try_send();
            answer.map(|answer| {
                answer.json()["status"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            })
        };
        let completed = |id: &&str| status(id).as_deref() == Some("completed");
        status("poison").as_deref() == Some("failed") && neighbours.iter().all(completed)
    };
    wait_until("the poison to fail and the others to complete", || {
        if service.is_over() {
            deaths += 1;
            assert!(deaths <= MOST_DEATHS, "the service dies again and again");
            service.start();
        }
        over(&service)
    });
    assert!(deaths >= 3, "it died {deaths} times only");
    let effects = service.bench.read("effects.txt");
    let mut lines: Vec<&str> = effects.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["one-end", "three-end", "two-end"]);
}
