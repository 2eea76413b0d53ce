//! File descriptors: few of them, and runs go on all the same.

use crate::client::Service;
use crate::trouble::faulty_disk;
use planwright_testing::steps::{call, sleep};
use planwright_testing::workbench::{Bench, Running};
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// The same command with so many descriptors and no more.
pub(crate) fn with_few_descriptors(command: &Command, most: u32) -> Command {
    let mut limited = Command::new("/bin/sh");
    limited
        .arg("-c")
        .arg(format!("ulimit -n {most} && exec \"$0\" \"$@\""))
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    if let Some(directory) = command.get_current_dir() {
        limited.current_dir(directory);
    }
    limited
}

/// A step that starts a program.
fn program(id: &str, after: &[&str]) -> Value {
    let args = json!({ "command": "true" });
    call(id, "local.run_command", args, after)
}

/// A connection that asks once, and stays. The service may close it again, or not answer.
fn connect(service: &Service) -> TcpStream {
    let mut stream = TcpStream::connect(&service.host).unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", service.host);
    // It may have been closed at once.
    drop(stream.write_all(request.as_bytes()));
    stream
}

#[test]
fn connections_that_only_sit_there_fail_no_run() {
    let mut service = Service::prepared("[local]\nrun_command = true\n");
    service.descriptors = Some(256);
    service.start();
    let plans: Vec<String> = (0..5).map(|number| format!("p{number}")).collect();
    for plan in &plans {
        // The programs are started when all descriptors are taken.
        service.plan(plan, json!([sleep("a", 3_000, &[]), program("b", &["a"])]));
        service.approve(plan);
        service.run(plan);
    }
    let held: Vec<TcpStream> = (0..300).map(|_| connect(&service)).collect();
    for plan in &plans {
        service.wait_for(plan, "completed");
    }
    drop(held);
}

#[test]
fn a_program_that_finds_no_descriptor_is_started_a_little_later() {
    let bench = Bench::new();
    bench.configure("[local]\nrun_command = true\n");
    let plan = bench.plan("p", json!([program("a", &[])]));
    bench.write("order", "pipes");
    let mut command = bench.command(&["run", &plan, "--yes"]);
    command.envs(faulty_disk(&bench));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running::of(command);
    bench.wait_for("p", "attempt_started", "a");
    bench.write("order", "");
    let said = running.wait();
    assert_eq!(said.code, 0, "{said:#?}");
    assert_eq!(
        bench
            .log("p")
            .iter()
            .filter(|entry| entry["kind"] == "attempt_started")
            .count(),
        1
    );
}
