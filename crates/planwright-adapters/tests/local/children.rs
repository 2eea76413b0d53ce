//! Commands end with the process that started them, and leave a record while they run.

use crate::command::{is_gone, pid_in};
use crate::workbench::{Workbench, call};
use planwright_adapters::process::Children;
use planwright_core::id::RunId;
use planwright_engine::port::{Call, CallError, Leftovers as _, Tools as _};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A workbench whose commands are recorded in this directory.
fn recording(records: &Path) -> (Workbench, Children) {
    let children = Children::new(Some(records.to_owned()));
    let bench = Workbench::with(|options| {
        options.run_command = true;
        options.children = children.clone();
    });
    (bench, children)
}

fn script(text: &str) -> Call {
    call(
        "local.run_command",
        json!({ "command": "sh", "args": ["-c", text] }),
    )
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Starts a grandchild in a session of its own that does not listen.
const ESCAPES: &str = "setsid sh -c 'trap \"\" TERM; echo $$ >left; exec sleep 60' & \
                       while [ ! -s left ]; do sleep 0.01; done; echo $$ >child; sleep 60";

#[tokio::test]
async fn a_command_is_recorded_while_it_runs() {
    let records = TempDir::new().unwrap();
    let directory = records.path().join("children");
    let (bench, _) = recording(&directory);
    let running = bench.tools.call(script(
        "echo $$ >child; while [ ! -e go ]; do sleep 0.01; done",
    ));
    let (outcome, ()) = tokio::join!(running, async {
        let child = pid_in(bench.path("child")).await;
        let found = files(&directory);
        assert_eq!(found.len(), 1);
        let name = found[0].file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("run_b~"), "{name}");
        let said: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&found[0]).unwrap()).unwrap();
        assert_eq!(said["pid"], child.as_raw_nonzero().get());
        assert_eq!(
            (&said["step"], &said["attempt"]),
            (&json!("step_c"), &json!(1))
        );
        bench.put("go", "");
    });
    outcome.unwrap();
    assert_eq!(files(&directory), [] as [PathBuf; 0]);
    let outcome = bench.tools.call(script("exit 3")).await;
    assert!(matches!(outcome, Err(CallError::Failed { .. })));
    let absent = call("local.run_command", json!({ "command": "no-such-command" }));
    bench.tools.call(absent).await.unwrap_err();
    assert_eq!(files(&directory), [] as [PathBuf; 0]);
}

#[tokio::test]
async fn a_command_that_cannot_be_recorded_is_not_started() {
    let records = TempDir::new().unwrap();
    let file = records.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (bench, _) = recording(&file);
    let Err(CallError::Failed { code, message, .. }) = bench.tools.call(script("touch made")).await
    else {
        panic!("it was to fail");
    };
    assert_eq!(code.as_str(), "command_not_started");
    assert!(message.contains("cannot be recorded"), "{message}");
    assert!(!bench.path("made").exists());
}

#[tokio::test]
async fn a_cancelled_command_ends_with_what_left_its_group() {
    let bench = Workbench::new();
    let call = script(ESCAPES);
    let cancelled = call.cancelled.clone();
    let (outcome, left) = tokio::join!(bench.tools.call(call), async {
        pid_in(bench.path("child")).await;
        let left = pid_in(bench.path("left")).await;
        cancelled.cancel();
        left
    });
    assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
    assert!(is_gone(left).await);
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_with_what_left_its_group_and_its_record() {
    let records = TempDir::new().unwrap();
    let directory = records.path().join("children");
    let (bench, _) = recording(&directory);
    let running = bench.tools.call(script(ESCAPES));
    let left = tokio::select! {
        outcome = running => panic!("it ended: {outcome:?}"),
        left = async {
            pid_in(bench.path("child")).await;
            pid_in(bench.path("left")).await
        } => left,
    };
    assert!(is_gone(left).await);
    planwright_testing::wait::wait_until("the end of the record", || files(&directory).is_empty());
}

#[tokio::test]
async fn a_command_may_tidy_up_when_everything_ends() {
    let records = TempDir::new().unwrap();
    let (bench, children) = recording(&records.path().join("children"));
    let running = bench.tools.call(script(
        "trap 'echo tidy >tidied; exit 0' TERM; echo $$ >child; while :; do sleep 0.05; done",
    ));
    let (outcome, ()) = tokio::join!(running, async {
        pid_in(bench.path("child")).await;
        children.end().await;
    });
    // It did end by itself, for an unknown reason.
    let Err(CallError::Lost(reason)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(reason.contains("when Planwright ended"), "{reason}");
    assert_eq!(bench.text("tidied"), "tidy\n");
    let late = bench.tools.call(script("touch late"));
    let late = tokio::time::timeout(Duration::from_millis(200), late).await;
    assert!(late.is_err(), "it was reported: {late:?}");
    assert!(!bench.path("late").exists());
}

#[tokio::test]
async fn what_does_not_listen_is_killed_when_everything_ends() {
    for at_once in [false, true] {
        let records = TempDir::new().unwrap();
        let (bench, children) = recording(&records.path().join("children"));
        let running = bench
            .tools
            .call(script(&format!("trap '' TERM; {ESCAPES}; sleep 60")));
        let since = Instant::now();
        let (outcome, pids) = tokio::join!(running, async {
            let pids = (
                pid_in(bench.path("child")).await,
                pid_in(bench.path("left")).await,
            );
            if at_once {
                children.kill().await;
            } else {
                children.end().await;
            }
            pids
        });
        assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
        assert!(is_gone(pids.0).await && is_gone(pids.1).await);
        if at_once {
            assert!(since.elapsed() < Duration::from_secs(20));
        }
    }
}

#[tokio::test]
async fn what_a_finished_command_left_in_another_group_ends_at_the_end() {
    let records = TempDir::new().unwrap();
    let (bench, children) = recording(&records.path().join("children"));
    let outcome = bench.tools.call(script(
        "setsid sh -c 'echo $$ >left; exec sleep 60' >/dev/null 2>&1 & while [ ! -s left ]; do sleep 0.01; done",
    ));
    outcome.await.unwrap();
    let left = pid_in(bench.path("left")).await;
    assert!(rustix::process::test_kill_process(left).is_ok());
    children.end().await;
    assert!(is_gone(left).await);
}

#[tokio::test]
async fn records_from_before_a_restart_of_the_system_name_nothing() {
    let records = TempDir::new().unwrap();
    let directory = records.path().join("children");
    std::fs::create_dir(&directory).unwrap();
    let run: RunId = "run_b".parse().unwrap();
    let other = directory.join("run_bb~mark-1");
    std::fs::write(&other, "{}").unwrap();
    // Our own number and time, from another start of the system.
    let us = rustix::process::getpid().as_raw_nonzero();
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let started = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19);
    let started: u64 = started.unwrap().parse().unwrap();
    let text = json!({ "step": "a", "attempt": 1, "boot": "another", "pid": us.get(), "started": started });
    std::fs::write(directory.join("run_b~mark-0"), text.to_string()).unwrap();
    let (_, children) = recording(&directory);
    children.end_leftovers(&run).await.unwrap();
    assert_eq!(files(&directory), [other]);
}
