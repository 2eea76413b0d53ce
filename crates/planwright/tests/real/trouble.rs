//! Servers that take too long, and programs that are stopped while servers work.

use planwright_testing::peers::Project;
use planwright_testing::steps::{call, step};
use planwright_testing::terminal::Terminal;
use planwright_testing::wait::wait_until;
use rustix::process::Signal;
use serde_json::json;
use std::time::{Duration, Instant};

/// The server goes on when it is told to stop.
#[test]
fn a_call_that_ignores_its_cancellation_ends_with_its_timeout() {
    let project = Project::with(&["everything"]);
    let plan = project.bench.plan(
        "long",
        json!([{ "id": "long", "title": "Too long",
        "tool": "everything.trigger-long-running-operation", "args": { "duration": 60, "steps": 60 },
        "timeoutSeconds": 1 }]),
    );
    let result = project
        .run(&["run", &plan, "--yes", "--json"])
        .ends(1)
        .json();
    let long = step(&result, "long");
    assert_eq!(
        (&long["status"], &long["error"]["code"]),
        (&json!("failed"), &json!("timeout")),
        "{long:#}"
    );
    assert!(long["durationMs"].as_u64().unwrap() <= 6_000, "{long:#}");
    project.leaves_no_server_behind();
}

#[test]
fn a_program_that_is_stopped_at_its_prompt_leaves_no_server_behind() {
    let project = Project::with(&["memory", "time"]);
    let plan = project.bench.plan(
        "asked",
        json!([
            call(
                "a",
                "memory.create_entities",
                json!({ "entities": [] }),
                &[]
            ),
            call(
                "b",
                "time.get_current_time",
                json!({ "timezone": "UTC" }),
                &[]
            ),
        ]),
    );
    let mut terminal = Terminal::of(project.command(&["run", &plan]));
    terminal.wait_for("Approve and run?");
    assert!(project.has_servers());
    terminal.interrupt();
    assert_ne!(terminal.ends(), Some(0));
    project.leaves_no_server_behind();
}

#[test]
fn pausing_and_killing_leave_no_server_behind() {
    let project = Project::with(&["workshop", "everything"]);
    let plan = project.bench.plan(
        "slow",
        json!([
            call(
                "work",
                "workshop.polish",
                json!({ "name": "a", "milliseconds": 1500 }),
                &[]
            ),
            call(
                "more",
                "workshop.polish",
                json!({ "name": "b", "milliseconds": 1500 }),
                &["work"]
            ),
            call(
                "long",
                "everything.trigger-long-running-operation",
                json!({ "duration": 2, "steps": 2 }),
                &[]
            ),
        ]),
    );
    let running = project.start(&["run", &plan, "--yes"]);
    wait_until("both calls", || {
        project.count("slow", "attempt_started") >= 2
    });
    running.signal(Signal::INT);
    assert_eq!(running.wait().code, 130);
    project.leaves_no_server_behind();

    let running = project.start(&["resume", "slow"]);
    wait_until("a call", || {
        project.has_servers() && project.count("slow", "run_resumed") >= 1
    });
    running.kill();
    project.leaves_no_server_behind();
    project.run(&["resume", "slow"]).ends(0);
    assert_eq!(
        project.effects().iter().filter(|line| *line == "a").count(),
        1
    );
    project.leaves_no_server_behind();
}

#[test]
fn a_server_that_never_answers_is_given_up_in_time() {
    let project = Project::with(&["time"]);
    project.bench.configure(
        "[servers.silent]\ncommand = 'sleep'\nargs = ['600']\nstart_timeout_seconds = 1\n",
    );
    let since = Instant::now();
    let checked = project
        .run(&["servers", "check", "silent", "--json"])
        .ends(1)
        .json();
    assert_eq!(checked[0]["ok"], false);
    assert!(
        since.elapsed() < Duration::from_secs(10),
        "{:?}",
        since.elapsed()
    );
}
