//! Two services over the plans of one workspace.

use crate::client::Service;
use planwright_testing::http::HttpRequest;
use planwright_testing::steps::{effect, sleep};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Running;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Starts a second service beside the first and returns it with its address.
fn beside(service: &Service) -> (Running, String) {
    let mut command = service
        .bench
        .command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    command.stdout(std::fs::File::create(service.bench.path("second.out")).unwrap());
    command.stderr(std::fs::File::create(service.bench.path("second.err")).unwrap());
    let running = Running::of(command);
    wait_until("the second service", || {
        service.bench.read("second.out").ends_with('\n')
    });
    let said: Value = serde_json::from_str(&service.bench.read("second.out")).unwrap();
    (
        running,
        said["url"]
            .as_str()
            .unwrap()
            .strip_prefix("http://")
            .unwrap()
            .to_owned(),
    )
}

#[test]
fn two_services_share_the_work_and_do_nothing_twice() {
    let mut service = Service::new();
    let (second, host) = beside(&service);
    let to_second = HttpRequest::to(&host);
    let post = |path: &str, body: &Value| {
        to_second("POST", path)
            .token(&service.admin)
            .json(body)
            .send()
    };
    let names: Vec<String> = (0..12).map(|n| format!("plan-{n}")).collect();
    for (n, id) in names.iter().enumerate() {
        service.plan(
            id,
            json!([
                effect(&format!("{id}-a"), &[]),
                effect(&format!("{id}-b"), &[&format!("{id}-a")])
            ]),
        );
        service.approve(id);
        // Either is asked; what one of them was told is known to the other.
        let run = format!("/plan/{id}/run");
        let (started, again) = if n % 2 == 0 {
            (service.post(&run, &json!({})), post(&run, &json!({})))
        } else {
            (post(&run, &json!({})), service.post(&run, &json!({})))
        };
        assert_eq!(
            (started.status, again.status),
            (202, 409),
            "{} {}",
            started.text(),
            again.text()
        );
    }
    for id in &names {
        service.wait_for(id, "completed");
        let seen = to_second("GET", &format!("/plan/{id}"))
            .token(&service.admin)
            .send()
            .ends(200)
            .json();
        assert_eq!(seen["status"], "completed", "{seen}");
    }
    let effects = service.bench.read("effects.txt");
    let mut lines: Vec<&str> = effects.lines().collect();
    assert_eq!(lines.len(), 24, "{effects}");
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 24, "{effects}");
    // What one of them began and did not end goes on in the other.
    service.plan("last", json!([sleep("a", 3_000, &[]), effect("z", &["a"])]));
    service.approve("last");
    service.run("last");
    wait_until("the call", || service.status("last") == "executing");
    service.kill();
    wait_until("the other one to go on", || {
        let seen = to_second("GET", "/plan/last")
            .token(&service.admin)
            .send()
            .ends(200)
            .json();
        seen["status"] == "completed"
    });
    assert_eq!(
        service
            .bench
            .read("effects.txt")
            .lines()
            .filter(|line| *line == "z")
            .count(),
        1
    );
    second.signal(rustix::process::Signal::TERM);
    assert_eq!(second.wait().code, 0);
}

#[test]
fn the_runs_of_a_service_that_died_go_on_in_the_other_at_once() {
    let mut service = Service::new();
    let (second, _host) = beside(&service);
    service.plan("p", json!([sleep("a", 1_500, &[]), effect("z", &["a"])]));
    service.approve("p");
    service.run("p");
    service.bench.wait_for("p", "attempt_started", "a");
    // The other one has found out who executes it.
    std::thread::sleep(Duration::from_millis(500));
    let died = Instant::now();
    service.kill();
    service.bench.wait_for("p", "attempt_interrupted", "a");
    let taken = died.elapsed();
    assert!(
        taken < Duration::from_secs(8),
        "{taken:?}: its lease lasts for 30 s, its lock was free at once"
    );
    wait_until("the effect", || service.bench.read("effects.txt") == "z\n");
    second.signal(rustix::process::Signal::TERM);
    assert_eq!(second.wait().code, 0);
}
