//! Runs that belong to other runs, killed at every crash point: an undo, and a plan that runs
//! another one.

use crate::in_parallel;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

/// A workspace with one plan `killed` and perhaps another one that it runs.
/// Its second half is the home of its user.
struct Place(TempDir, TempDir);

impl Place {
    fn new(plans: &[Value]) -> Self {
        let place = Self(tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for plan in plans {
            let name = format!("{}.json", plan["id"].as_str().unwrap());
            std::fs::write(place.path().join(name), plan.to_string()).unwrap();
        }
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn execute(&self, args: &[&str], crash_at: Option<u64>) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planwright"));
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.1.path())
            .env("PLANWRIGHT_DIR", self.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        if let Some(at) = crash_at {
            command.env("PLANWRIGHT_CRASH_AT", at.to_string());
        }
        command.output().expect("the program starts")
    }

    fn must(&self, args: &[&str]) -> Output {
        let output = self.execute(args, None);
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_slice(&self.must(args).stdout).expect("one JSON document")
    }

    /// How often each line is in a file.
    fn lines(&self, file: &str) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in std::fs::read_to_string(self.path().join(file))
            .unwrap_or_default()
            .lines()
        {
            *counts.entry(line.to_owned()).or_insert(0) += 1;
        }
        counts
    }

    fn run_status(&self) -> Option<String> {
        let output = self.execute(&["show", "killed", "--json"], None);
        let shown: Value = serde_json::from_slice(&output.stdout).ok()?;
        Some(shown["runs"].get(0)?["status"].as_str()?.to_owned())
    }
}

fn killed(output: &Output) -> bool {
    output.status.signal() == Some(9)
}

/// Kills at every point, then also while it recovers. `cycle` returns `true` if the program was
/// killed at all.
fn at_every_point(cycle: impl Fn(&[u64]) -> bool + Sync) {
    let next = AtomicU64::new(1);
    let beyond = AtomicU64::new(u64::MAX);
    in_parallel(|| {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            // Other threads may already have tried points that lie beyond the last one.
            if !cycle(&[at]) {
                beyond.fetch_min(at, Ordering::Relaxed);
                break;
            }
        }
    });
    let points = beyond.into_inner() - 1;
    assert!(points > 5, "only {points} crash points");
    let next = AtomicU64::new(1);
    in_parallel(|| {
        while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at <= points) {
            cycle(&[at, at % 7 + 1]);
        }
    });
}

fn appends(id: &str, file: &str, after: &[&str]) -> Value {
    json!({ "id": id, "dependsOn": after, "tool": "append_file", "args": { "path": file, "content": format!("{id}\n") },
        "undo": { "tool": "append_file", "args": { "path": "undone.log", "content": format!("{id}\n") } } })
}

/// A person says what became of a call in doubt, from what the world shows.
fn settle(place: &Place, run: &str, path: &str, line: &str, file: &str) {
    let how = if place.lines(file).contains_key(line) {
        "--happened"
    } else {
        "--run-again"
    };
    place.must(&["resolve", run, path, how]);
}

#[test]
fn an_undo_killed_anywhere_takes_every_step_back_once() {
    let mut safe = appends("b", "effects.log", &["a"]);
    safe["undo"] =
        json!({ "tool": "write_file", "args": { "path": "out/b", "content": "${b.bytes}" } });
    let plan = json!({ "id": "killed", "steps": [
        appends("a", "effects.log", &[]), safe, appends("c", "effects.log", &["b"]),
    ] });
    at_every_point(|kills| {
        let place = Place::new(std::slice::from_ref(&plan));
        place.must(&["run", "killed.json", "--yes", "--json"]);
        let mut was_killed = false;
        for &at in kills {
            was_killed |= killed(&place.execute(&["undo", "killed", "--yes", "--json"], Some(at)));
        }
        for _ in 0..6 {
            let output = place.execute(&["undo", "killed", "--yes", "--json"], None);
            match output.status.code() {
                Some(0) => break,
                // It was complete when the program was killed.
                Some(3) if String::from_utf8_lossy(&output.stderr).contains("already undone") => {
                    break;
                }
                Some(4) => {
                    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
                    let steps = result["steps"].as_array().unwrap();
                    let unknown = steps
                        .iter()
                        .find(|step| step["status"] == "outcome_unknown")
                        .unwrap();
                    let run = result["runId"].as_str().unwrap();
                    let step = unknown["id"].as_str().unwrap();
                    settle(
                        &place,
                        run,
                        step,
                        step.strip_prefix("undo-").unwrap(),
                        "undone.log",
                    );
                }
                _ => panic!(
                    "killed at {kills:?}: {}",
                    String::from_utf8_lossy(&output.stderr)
                ),
            }
        }
        let undone = BTreeMap::from([("a".to_owned(), 1), ("c".to_owned(), 1)]);
        assert_eq!(place.lines("undone.log"), undone, "killed at {kills:?}");
        assert!(place.path().join("out/b").exists(), "killed at {kills:?}");
        let shown = String::from_utf8(place.must(&["show", "killed"]).stdout).unwrap();
        assert_eq!(
            shown.matches('↶').count(),
            3,
            "killed at {kills:?}: {shown}"
        );
        place.must(&["verify"]);
        was_killed
    });
}

#[test]
fn a_plan_that_runs_another_one_killed_anywhere_does_everything_once() {
    let child = json!({ "id": "child", "steps": [
        appends("in", "effects.log", &[]),
        { "id": "safe", "dependsOn": ["in"], "tool": "write_file", "args": { "path": "out/safe", "content": "x" } },
        appends("out", "effects.log", &["safe"]),
    ] });
    let parent = json!({ "id": "killed", "steps": [
        appends("before", "effects.log", &[]),
        { "id": "sub", "dependsOn": ["before"], "plan": { "id": "child" } },
        { "id": "after", "tool": "append_file", "dependsOn": ["sub"],
            "args": { "path": "effects.log", "content": "after\n" } },
    ] });
    at_every_point(|kills| {
        let place = Place::new(&[child.clone(), parent.clone()]);
        place.must(&["import", "child.json"]);
        let go_on = |crash_at: Option<u64>| {
            let output = place.execute(&["resume", "killed", "--json"], crash_at);
            if output.status.code() == Some(2) {
                return place.execute(&["run", "killed.json", "--yes", "--json"], crash_at);
            }
            output
        };
        let mut was_killed = false;
        for &at in kills {
            was_killed |= killed(&go_on(Some(at)));
        }
        for _ in 0..8 {
            let output = go_on(None);
            match output.status.code() {
                Some(0) => break,
                Some(3) if place.run_status().as_deref() == Some("completed") => break,
                Some(4) => {
                    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
                    for step in result["steps"].as_array().unwrap() {
                        if step["status"] == "outcome_unknown" {
                            let id = step["id"].as_str().unwrap();
                            settle(&place, "killed", id, id, "effects.log");
                        }
                        if let Some(child) = step["waitsFor"].as_str() {
                            let log =
                                String::from_utf8(place.must(&["log", child, "--json"]).stdout)
                                    .unwrap();
                            let lost = log
                                .lines()
                                .rfind(|line| line.contains("outcome_lost"))
                                .unwrap();
                            let lost: Value = serde_json::from_str(lost).unwrap();
                            let id = lost["step"].as_str().unwrap();
                            settle(&place, "killed", &format!("sub/{id}"), id, "effects.log");
                        }
                    }
                }
                _ => panic!(
                    "killed at {kills:?}: {}",
                    String::from_utf8_lossy(&output.stderr)
                ),
            }
        }
        let once: BTreeMap<String, usize> = ["before", "in", "out", "after"]
            .into_iter()
            .map(|line| (line.to_owned(), 1))
            .collect();
        assert_eq!(place.lines("effects.log"), once, "killed at {kills:?}");
        let children = place.json(&["show", "child", "--json"]);
        let runs = children["runs"].as_array().unwrap();
        assert_eq!(
            runs.len(),
            1,
            "killed at {kills:?}: the child was begun {} times",
            runs.len()
        );
        assert_eq!(runs[0]["status"], "completed", "killed at {kills:?}");
        place.must(&["verify"]);
        was_killed
    });
}
