//! Commands and executors end with the program that started them, however it ends.
//!
//! Every process that a plan starts here has the workspace as its directory, and nothing else has:
//! that is how those that are left are found. A command leaves its one line in `effects.txt` as
//! the last thing it does.

use crate::service::Served;
use planwright_testing::steps::{call, echo, step};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running, started_by, with_default_signals};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The first call hangs, in all that it starts; a second one has its effect at once.
const HANGS_ONCE: &str = "
if [ -e begun ]; then echo effect >>effects.txt; exit 0; fi
sh -c 'trap \"\" HUP TERM; sleep 60; echo late >>effects.txt' &
setsid sh -c 'trap \"\" HUP TERM; echo $$ >left; sleep 60; echo late >>effects.txt' &
while [ ! -s left ]; do sleep 0.01; done
echo $$ >begun
sleep 60
echo late >>effects.txt
";

/// Takes two seconds, and then has its effect.
const TAKES_TIME: &str = "echo $$ >begun; sleep 2; echo effect >>effects.txt";

fn run_command(script: &str) -> (Bench, String) {
    let bench = Bench::new();
    bench.configure("[local]\nrun_command = true\n");
    let args = json!({ "command": "sh", "args": ["-c", script] });
    let plan = bench.plan(
        "p",
        json!([
            call("work", "run_command", args, &[]),
            echo("after", 1, &["work"])
        ]),
    );
    (bench, plan)
}

fn executor(script: &str) -> (Bench, String) {
    let bench = Bench::new();
    bench.write("worker.sh", script);
    bench
        .configure("[executors.worker]\ncommand = [\"sh\", \"worker.sh\"]\ntimeout_seconds = 60\n");
    let agent = json!({ "instruction": "do it", "executor": "worker" });
    let plan = bench.document(json!({ "id": "p", "goal": "see", "steps": [
        { "id": "work", "agent": agent },
        echo("after", 1, &["work"]),
    ]}));
    (bench, plan)
}

/// The same work, as a command and as an executor.
fn both(script: &str) -> [(Bench, String); 2] {
    [run_command(script), executor(script)]
}

fn start(bench: &Bench, plan: &str) -> Running {
    let arguments = ["run", plan, "--yes", "--json", "--trust-project-servers"];
    let running = bench.start(&arguments);
    wait_until("the call", || !bench.read("begun").is_empty());
    running
}

fn resume(bench: &Bench) -> planwright_testing::workbench::Said {
    bench.run(&["resume", "p", "--json", "--trust-project-servers"])
}

/// The processes that work in the workspace, without those that only wait to be reaped.
fn alive(bench: &Bench) -> Vec<i32> {
    let root = bench.root().canonicalize().unwrap();
    let numbers = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse().ok()
    });
    numbers
        .filter(|number: &i32| {
            std::fs::read_link(format!("/proc/{number}/cwd")).is_ok_and(|cwd| cwd == root)
        })
        .collect()
}

/// Ends the shell that ends what this process started, which works in `/`.
fn kill_watchdog(running: &Running) {
    let parent = running.id();
    let children = std::fs::read_dir(format!("/proc/{parent}/task"))
        .unwrap()
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap())
        .collect::<Vec<_>>()
        .join(" ");
    let watchdog = children
        .split_whitespace()
        .find(|child| {
            std::fs::read_link(format!("/proc/{child}/cwd")).is_ok_and(|cwd| cwd == Path::new("/"))
        })
        .expect("there is a watchdog");
    kill_process(
        Pid::from_raw(watchdog.parse().unwrap()).unwrap(),
        Signal::KILL,
    )
    .unwrap();
}

/// The call is not known to have happened; made again it happens once.
fn run_again(bench: &Bench) {
    let result = resume(bench).ends(4).json();
    assert_eq!(
        step(&result, "work")["status"],
        "outcome_unknown",
        "{result:#}"
    );
    assert_eq!(
        alive(bench),
        [] as [i32; 0],
        "offered while the old one runs"
    );
    bench.run(&["resolve", "p", "work", "--run-again"]).ends(0);
    resume(bench).ends(0);
    assert_eq!(bench.read("effects.txt"), "effect\n");
    assert_eq!(records(bench), [] as [String; 0]);
}

/// The files that say what was started.
fn records(bench: &Bench) -> Vec<String> {
    let Ok(directory) = std::fs::read_dir(bench.path(".plans/planwright.db-children")) else {
        return Vec::new();
    };
    directory
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn what_was_started_ends_with_a_program_that_is_killed() {
    for (bench, plan) in both(HANGS_ONCE) {
        start(&bench, &plan).kill();
        wait_until("the end of what was started", || alive(&bench).is_empty());
        assert_eq!(bench.read("effects.txt"), "");
        run_again(&bench);
    }
}

#[test]
fn what_outlived_a_killed_program_is_ended_before_its_call_is_offered_again() {
    for (bench, plan) in both(HANGS_ONCE) {
        let running = start(&bench, &plan);
        kill_watchdog(&running);
        running.kill();
        assert!(!alive(&bench).is_empty(), "nothing could have outlived it");
        run_again(&bench);
    }
}

#[test]
fn a_run_that_is_cancelled_or_commanded_after_a_crash_leaves_no_process() {
    let (bench, plan) = run_command(HANGS_ONCE);
    let running = start(&bench, &plan);
    kill_watchdog(&running);
    running.kill();
    bench.run(&["cancel", "p"]).ends(0);
    assert_eq!(alive(&bench), [] as [i32; 0]);
    assert_eq!(bench.read("effects.txt"), "");
}

#[test]
fn sigterm_and_a_closed_terminal_let_calls_finish_and_pause() {
    for signals in [
        &[Signal::TERM][..],
        &[Signal::HUP],
        &[Signal::HUP, Signal::HUP],
    ] {
        for (bench, plan) in both(TAKES_TIME) {
            let running = start(&bench, &plan);
            for signal in signals {
                running.signal(*signal);
                std::thread::sleep(Duration::from_millis(100));
            }
            let said = running.wait().ends(130);
            assert_eq!(alive(&bench), [] as [i32; 0]);
            assert_eq!(bench.read("effects.txt"), "effect\n", "{said:#?}");
            assert_eq!(said.json()["status"], "paused", "{signals:?}");
            resume(&bench).ends(0);
            assert_eq!(bench.read("effects.txt"), "effect\n");
        }
    }
}

#[test]
fn a_program_that_was_told_to_ignore_hangups_goes_on() {
    let (bench, plan) = run_command(TAKES_TIME);
    let program = bench.command(&["run", &plan, "--yes", "--json"]);
    let ignores = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"];
    let mut shell = started_by(&ignores, &program);
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running::of(shell);
    wait_until("the call", || !bench.read("begun").is_empty());
    running.signal(Signal::HUP);
    assert_eq!(running.wait().ends(0).json()["status"], "completed");
}

#[test]
fn a_second_sigterm_kills_what_was_started_at_once() {
    for (bench, plan) in both(HANGS_ONCE) {
        let running = start(&bench, &plan);
        running.signal(Signal::TERM);
        wait_until("the pause", || bench.status("p") == "paused");
        let since = Instant::now();
        running.signal(Signal::TERM);
        let said = running.wait().ends(1);
        assert_eq!(alive(&bench), [] as [i32; 0], "{said:#?}");
        assert_eq!(said.json()["status"], "cancelled");
        assert_eq!(bench.read("effects.txt"), "");
        // The polite signal, which its processes ignore, would have been given two seconds.
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "{:?}",
            since.elapsed()
        );
    }
}

/// A service that makes the call of this plan.
fn serve(bench: &Bench, plan: &str) -> Running {
    bench.run(&["import", plan]).ends(0);
    bench.run(&["approve", "p", "--version", "1"]).ends(0);
    let token = bench
        .run(&[
            "token", "create", "--role", "admin", "--kind", "person", "--name", "ada", "--json",
        ])
        .ends(0)
        .json()["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--json"];
    let served = Served::start(with_default_signals(&bench.command(&arguments)));
    let answer = served.ask(
        "POST",
        "/plan/p/run",
        &[("authorization", &format!("Bearer {token}"))],
        "",
    );
    assert_eq!(answer.status, 202, "{answer:?}");
    wait_until("the call", || !bench.read("begun").is_empty());
    served.into_running()
}

#[test]
fn a_service_that_stops_ends_what_it_started() {
    for (signals, polite) in [
        (&[Signal::TERM, Signal::TERM][..], false),
        (&[Signal::HUP], true),
    ] {
        let (bench, plan) = run_command(if polite { TAKES_TIME } else { HANGS_ONCE });
        let running = serve(&bench, &plan);
        for signal in signals {
            running.signal(*signal);
            std::thread::sleep(Duration::from_millis(100));
        }
        running.wait().ends(0);
        assert_eq!(alive(&bench), [] as [i32; 0]);
        if polite {
            assert_eq!(bench.read("effects.txt"), "effect\n");
        } else {
            assert_eq!(bench.read("effects.txt"), "");
            run_again(&bench);
        }
    }
}

#[test]
fn a_service_ends_calls_that_take_longer_than_it_waits() {
    let (bench, plan) = run_command(HANGS_ONCE);
    let running = serve(&bench, &plan);
    running.signal(Signal::TERM);
    running.wait().ends(0);
    assert_eq!(alive(&bench), [] as [i32; 0]);
    assert_eq!(bench.read("effects.txt"), "");
    run_again(&bench);
}

/// A group whose leader is gone, and a record that names it.
fn leaderless_group(bench: &Bench) -> i32 {
    let mut leader = Command::new("sh")
        .args(["-c", "sleep 60 >/dev/null 2>&1 & echo $! >member"])
        .current_dir(bench.root())
        .process_group(0)
        .spawn()
        .unwrap();
    leader.wait().unwrap();
    let record = records(bench).pop().unwrap();
    let path = bench.path(".plans/planwright.db-children").join(record);
    let mut written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    written["pid"] = json!(leader.id());
    std::fs::write(&path, written.to_string()).unwrap();
    bench.read("member").trim().parse().unwrap()
}

#[test]
fn a_process_that_may_be_the_call_is_named_and_not_killed() {
    let (bench, plan) = run_command(HANGS_ONCE);
    let running = start(&bench, &plan);
    kill_watchdog(&running);
    running.kill();
    let member = leaderless_group(&bench);
    let said = resume(&bench).complains(3, &format!("process {member}"));
    assert!(said.err.contains(&format!("kill -9 {member}")), "{said:#?}");
    assert_eq!(alive(&bench), [member]);
    kill_process(Pid::from_raw(member).unwrap(), Signal::KILL).unwrap();
    wait_until("its end", || alive(&bench).is_empty());
    run_again(&bench);
}

#[test]
fn a_process_with_the_number_of_an_old_one_is_left_alone() {
    let (bench, plan) = run_command(HANGS_ONCE);
    start(&bench, &plan).kill();
    wait_until("the end of what was started", || alive(&bench).is_empty());
    let mut other = Command::new("sleep")
        .arg("60")
        .current_dir("/")
        .process_group(0)
        .spawn()
        .unwrap();
    let path = bench
        .path(".plans/planwright.db-children")
        .join(records(&bench).pop().unwrap());
    let mut written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    written["pid"] = json!(other.id());
    std::fs::write(&path, written.to_string()).unwrap();
    run_again(&bench);
    assert!(other.try_wait().unwrap().is_none(), "it was killed");
    other.kill().unwrap();
    other.wait().unwrap();
}
