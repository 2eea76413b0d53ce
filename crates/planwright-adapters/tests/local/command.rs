use crate::workbench::{Workbench, call};
use planwright_core::run::CallEffect;
use planwright_engine::port::{CallError, Outcome, Tools as _};
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

async fn sh(bench: &Workbench, script: &str) -> Outcome {
    bench
        .call(
            "local.run_command",
            json!({ "command": "sh", "args": ["-c", script] }),
        )
        .await
}

/// Waits for a file that a command writes, and reads the process id in it.
pub(crate) async fn pid_in(path: PathBuf) -> Pid {
    for _ in 0..500 {
        if let Ok(text) = std::fs::read_to_string(&path)
            && let Some(pid) = text
                .strip_suffix('\n')
                .and_then(|text| text.parse().ok())
                .and_then(Pid::from_raw)
        {
            return pid;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} was not written", path.display());
}

/// Whether a process has ended, if need be in a moment. One that waits to be reaped by init has.
pub(crate) async fn is_gone(pid: Pid) -> bool {
    for _ in 0..300 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
            .unwrap_or_default();
        let zombie = stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" Z"));
        if zombie || test_kill_process(pid).is_err() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn a_command_returns_what_it_printed() {
    let bench = Workbench::new();
    let done = sh(&bench, "echo out; echo err >&2").await;
    assert_eq!(
        done,
        Ok(json!({ "exitCode": 0, "stdout": "out\n", "stderr": "err\n", "truncated": false }))
    );
}

#[tokio::test]
async fn arguments_reach_the_program_untouched() {
    let bench = Workbench::new();
    let hostile = [
        "$(id)",
        "`id`",
        "; rm -rf /",
        "a b",
        "*",
        "${x}",
        "",
        "-n",
        "'\"",
    ];
    let args = json!({ "command": "printf", "args": std::iter::once("%s|").chain(hostile).collect::<Vec<_>>() });
    let done = bench.call("local.run_command", args).await.unwrap();
    assert_eq!(done["stdout"], format!("{}|", hostile.join("|")));
}

#[tokio::test]
async fn input_reaches_the_program_and_need_not_be_read() {
    let bench = Workbench::new();
    let text = "x".repeat(3 << 20);
    let done = bench
        .call(
            "local.run_command",
            json!({ "command": "wc", "args": ["-c"], "stdin": text }),
        )
        .await;
    assert_eq!(
        done.unwrap()["stdout"].as_str().unwrap().trim(),
        (3 << 20).to_string()
    );
    let done = bench
        .call(
            "local.run_command",
            json!({ "command": "true", "stdin": text }),
        )
        .await;
    assert_eq!(done.unwrap()["exitCode"], 0);
    let done = bench
        .call("local.run_command", json!({ "command": "cat" }))
        .await;
    assert_eq!(
        done.unwrap()["stdout"],
        "",
        "without input there is none to wait for"
    );
}

#[tokio::test]
async fn the_environment_is_cleared() {
    let bench = Workbench::new();
    let args =
        json!({ "command": "env", "env": { "GIVEN": "${x}", "PLANWRIGHT_RUN_ID": "another" } });
    let done = bench.call("local.run_command", args).await.unwrap();
    let lines: Vec<&str> = done["stdout"].as_str().unwrap().lines().collect();
    let allowed = [
        "PATH",
        "HOME",
        "LANG",
        "TMPDIR",
        "GIVEN",
        "PLANWRIGHT_IDEMPOTENCY_KEY",
        "PLANWRIGHT_RUN_ID",
        "PLANWRIGHT_STEP_ID",
        "PLANWRIGHT_ATTEMPT",
        "PLANWRIGHT_AGENT",
        // The mark by which it is found.
        "PLANWRIGHT_CHILD",
    ];
    for line in &lines {
        assert!(
            allowed.contains(&line.split('=').next().unwrap()),
            "{line} leaked"
        );
    }
    assert!(
        std::env::var_os("CARGO_PKG_NAME").is_some(),
        "there was nothing to leak"
    );
    for line in [
        "GIVEN=${x}",
        "PLANWRIGHT_IDEMPOTENCY_KEY=key-d",
        "PLANWRIGHT_RUN_ID=run_b",
        "PLANWRIGHT_STEP_ID=step_c",
        "PLANWRIGHT_ATTEMPT=1",
        "PLANWRIGHT_AGENT=run run_b",
    ] {
        assert!(lines.contains(&line), "{line} is missing");
    }
}

#[tokio::test]
async fn a_command_starts_in_the_workspace_or_below() {
    let bench = Workbench::new();
    bench.put("dir/tool", "#!/bin/sh\npwd\n");
    std::fs::set_permissions(
        bench.path("dir/tool"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let root = bench.path("").canonicalize().unwrap();
    for (args, expected) in [
        (json!({ "command": "pwd" }), root.clone()),
        (json!({ "command": "pwd", "cwd": "dir" }), root.join("dir")),
        (json!({ "command": "dir/tool" }), root.clone()),
        (
            json!({ "command": "./dir/tool", "cwd": "dir" }),
            root.join("dir"),
        ),
        (json!({ "command": "/bin/pwd" }), root.clone()),
    ] {
        let done = bench.call("local.run_command", args.clone()).await.unwrap();
        assert_eq!(
            done["stdout"].as_str().unwrap().trim_end(),
            expected.to_str().unwrap(),
            "{args}"
        );
    }
    for (args, code) in [
        (
            json!({ "command": "pwd", "cwd": "dir/tool" }),
            "not_a_directory",
        ),
        (json!({ "command": "pwd", "cwd": "absent" }), "not_found"),
        (json!({ "command": "../tool" }), "outside_workspace"),
        (
            json!({ "command": "no-such-command" }),
            "command_not_started",
        ),
        (json!({ "command": "dir/absent" }), "command_not_started"),
        (json!({ "command": "a\u{0}" }), "invalid_args"),
        (
            json!({ "command": "env", "env": { "A=B": "" } }),
            "invalid_args",
        ),
        (
            json!({ "command": "env", "timeoutSeconds": 0 }),
            "invalid_args",
        ),
    ] {
        assert_eq!(
            bench.code("local.run_command", args.clone()).await,
            code,
            "{args}"
        );
    }
}

#[tokio::test]
async fn a_failed_command_says_how_it_ended() {
    let bench = Workbench::new();
    let cases = [
        (
            "echo noise; echo 'the reason' >&2; exit 3",
            "\"sh\" exited with code 3: the reason",
        ),
        ("exit 1", "\"sh\" exited with code 1"),
        ("kill -9 $$", "\"sh\" was ended by signal 9"),
    ];
    for (script, message) in cases {
        let expected = CallError::Failed {
            code: "command_failed".into(),
            message: message.into(),
            retryable: false,
            effect: CallEffect::Unknown,
        };
        assert_eq!(sh(&bench, script).await, Err(expected));
    }
    let Err(CallError::Failed { message, .. }) =
        sh(&bench, "yes x | head -c 3000000 >&2; echo end >&2; exit 1").await
    else {
        panic!("it was to fail");
    };
    assert!(
        message.len() < 3000 && message.ends_with("end"),
        "{message}"
    );
}

#[tokio::test]
async fn endless_output_is_cut_and_holds_nobody_up() {
    let bench = Workbench::new();
    let done = sh(
        &bench,
        "yes | head -c 30000000; head -c 3000000 /dev/zero >&2",
    )
    .await
    .unwrap();
    assert_eq!(done["stdout"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(done["stderr"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(done["truncated"], true);
    let done = sh(&bench, r"printf 'caf\351'").await.unwrap();
    assert_eq!(done["stdout"], "caf\u{fffd}");
}

#[tokio::test]
async fn a_command_past_its_time_is_stopped_and_its_outcome_is_unknown() {
    let bench = Workbench::new();
    let started = Instant::now();
    let args = json!({ "command": "sleep", "args": ["60"], "timeoutSeconds": 1 });
    let outcome = bench.call("local.run_command", args).await;
    assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn cancelling_ends_the_command_and_all_it_started() {
    let bench = Workbench::new();
    // The grandchild ignores the polite signal.
    let script = "sh -c 'trap \"\" TERM; echo $$ >grandchild; while :; do sleep 1; done' & echo $$ >child; wait";
    let call = call(
        "local.run_command",
        json!({ "command": "sh", "args": ["-c", script] }),
    );
    let cancelled = call.cancelled.clone();
    let (outcome, (child, grandchild)) = tokio::join!(bench.tools.call(call), async {
        let pids = (
            pid_in(bench.path("child")).await,
            pid_in(bench.path("grandchild")).await,
        );
        cancelled.cancel();
        pids
    });
    assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
    assert!(is_gone(child).await && is_gone(grandchild).await);
}

#[tokio::test]
async fn a_cancelled_command_may_tidy_up() {
    let bench = Workbench::new();
    let script =
        "trap 'echo tidy >tidied; exit 0' TERM; echo $$ >child; while :; do sleep 0.05; done";
    let call = call(
        "local.run_command",
        json!({ "command": "sh", "args": ["-c", script] }),
    );
    let cancelled = call.cancelled.clone();
    let (outcome, ()) = tokio::join!(bench.tools.call(call), async {
        pid_in(bench.path("child")).await;
        cancelled.cancel();
    });
    assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
    assert_eq!(bench.text("tidied"), "tidy\n");
}

#[tokio::test]
async fn a_command_cancelled_before_it_starts_is_not_started() {
    let bench = Workbench::new();
    let call = call(
        "local.run_command",
        json!({ "command": "touch", "args": ["made"] }),
    );
    call.cancelled.cancel();
    assert_eq!(bench.tools.call(call).await, Err(CallError::Cancelled));
    assert!(!bench.path("made").exists());
}

#[tokio::test]
async fn dropping_the_call_ends_the_command_and_all_it_started() {
    let bench = Workbench::new();
    let script = "sh -c 'echo $$ >grandchild; exec sleep 60' & echo $$ >child; wait";
    let running = bench.call(
        "local.run_command",
        json!({ "command": "sh", "args": ["-c", script] }),
    );
    let pids = tokio::select! {
        outcome = running => panic!("it ended: {outcome:?}"),
        pids = async { (pid_in(bench.path("child")).await, pid_in(bench.path("grandchild")).await) } => pids,
    };
    assert!(is_gone(pids.0).await && is_gone(pids.1).await);
}

#[tokio::test]
async fn what_a_finished_command_leaves_behind_is_ended() {
    let bench = Workbench::new();
    let started = Instant::now();
    let done = sh(&bench, "sleep 60 & echo $! >left; echo done")
        .await
        .unwrap();
    assert_eq!(done["stdout"], "done\n");
    assert!(is_gone(pid_in(bench.path("left")).await).await);
    sh(&bench, "sleep 60 >/dev/null 2>&1 & echo $! >silent")
        .await
        .unwrap();
    assert!(is_gone(pid_in(bench.path("silent")).await).await);
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_the_call() {
    let bench = Workbench::new();
    let started = Instant::now();
    let done = sh(
        &bench,
        "setsid sh -c 'echo $$ >left; exec sleep 60' & echo done",
    )
    .await
    .unwrap();
    assert_eq!(
        (&done["stdout"], &done["truncated"]),
        (&json!("done\n"), &Value::Bool(true))
    );
    assert!(started.elapsed() < Duration::from_secs(20));
    let left = pid_in(bench.path("left")).await;
    rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
}
