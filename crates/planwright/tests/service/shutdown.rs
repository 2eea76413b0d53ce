//! Stopping and dying: nothing is lost, nothing is done twice.

use crate::client::Service;
use planwright_testing::steps::{echo, effect, sleep, step};
use planwright_testing::wait::wait_until;
use serde_json::json;
use std::io::Write as _;

#[test]
fn a_run_in_flight_finishes_its_call_and_goes_on_at_the_next_start() {
    let mut service = Service::new();
    service.plan(
        "p",
        json!([
            sleep("a", 4_000, &[]),
            effect("b", &["a"]),
            echo("c", 3, &["b"])
        ]),
    );
    service.approve("p");
    let run = service.run("p");
    service.bench.wait_for("p", "attempt_started", "a");
    assert_eq!(service.stop(), 0);
    assert!(service.bench.read("serve.err").contains("stopped"));
    let log = service.bench.log("p");
    assert!(
        log.iter()
            .any(|entry| entry["kind"] == "attempt_succeeded" && entry["step"] == "a"),
        "{log:?}"
    );
    service.start();
    service.wait_for("p", "completed");
    let result = service.result("p", &run);
    assert_eq!(step(&result, "a")["attempts"], 1);
    assert_eq!(service.bench.read("effects.txt"), "b\n");
}

#[test]
fn a_stderr_that_is_not_read_stops_nothing() {
    let mut service = Service::adjusted("", |_, command| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        // As much as a pipe holds: not one line more goes in, and the reader stays.
        writer.write_all(&[b'x'; 1 << 16]).unwrap();
        Box::leak(Box::new(reader));
        command.stderr(writer).env("PLANWRIGHT_LOG", "trace");
    });
    service.plan("p", json!([effect("a", &[])]));
    service.approve("p");
    service.run("p");
    service.wait_for("p", "completed");
    assert_eq!(service.stop(), 0);
}

#[test]
fn a_service_that_was_killed_goes_on_where_it_was() {
    let mut service = Service::new();
    service.plan(
        "p",
        json!([
            echo("a", 1, &[]),
            sleep("b", 4_000, &["a"]),
            effect("c", &["b"])
        ]),
    );
    service.approve("p");
    service.run("p");
    service.bench.wait_for("p", "attempt_started", "b");
    service.kill();
    service.start();
    service.wait_for("p", "completed");
    assert_eq!(service.bench.read("effects.txt"), "c\n");
}

#[test]
fn an_approval_at_the_command_line_reaches_a_run_of_the_service() {
    let service = Service::new();
    let mut gate = effect("a", &[]);
    gate["approvalRequired"] = json!(true);
    service.plan("p", json!([gate]));
    service.approve("p");
    service.run("p");
    service.wait_for("p", "waiting");
    service
        .bench
        .run(&["approve", "p", "--step", "a", "--version", "1"])
        .ends(0);
    service.wait_for("p", "completed");
    assert_eq!(service.bench.read("effects.txt"), "a\n");
}

#[test]
fn while_it_stops_it_is_not_ready() {
    let mut service = Service::new();
    service.plan("p", json!([sleep("a", 4_000, &[])]));
    service.run("p");
    service.bench.wait_for("p", "attempt_started", "a");
    assert_eq!(
        service.bare("GET", "/readyz").send().ends(200).json()["ready"],
        true
    );
    assert_eq!(service.stop(), 0);
    wait_until("the address to be free", || {
        std::net::TcpStream::connect(&service.host).is_err()
    });
}

#[test]
fn a_service_that_is_told_to_stop_as_soon_as_it_says_where_it_is_stops_in_good_order() {
    let mut service = Service::prepared("");
    for _ in 0..5 {
        service.start();
        assert_eq!(service.stop(), 0);
    }
}
