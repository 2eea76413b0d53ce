//! What must be true, judged by what the tools left in the world.

use crate::program::Workspace;
use crate::shapes::Does;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn lines(workspace: &Workspace, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(workspace.path().join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn steps(workspace: &Workspace, does: Does) -> impl Iterator<Item = &str> {
    workspace
        .shape
        .steps
        .iter()
        .filter(move |step| step.does == does)
        .map(|step| step.id.as_str())
}

/// How often each step's line is in the log that must never have one twice.
fn effects(workspace: &Workspace) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in lines(workspace, "effects.log") {
        *counts.entry(line).or_insert(0) += 1;
    }
    counts
}

pub(crate) fn check_no_unsafe_repeat(workspace: &Workspace, context: &str) {
    let effects = effects(workspace);
    for step in steps(workspace, Does::Appends) {
        let times = effects.get(step).copied().unwrap_or_default();
        assert!(
            times <= 1,
            "{context}: the unsafe step {step} had its effect {times} times"
        );
    }
}

/// The unsafe steps whose call had started and not ended by the journal: exactly these must become
/// unknown.
pub(crate) fn started_without_end(workspace: &Workspace) -> BTreeSet<String> {
    let mut open = BTreeSet::new();
    for entry in workspace.journal() {
        let step = entry["step"].as_str().unwrap_or_default().to_owned();
        match entry["kind"].as_str().unwrap_or_default() {
            "attempt_started" if entry["class"] == "unsafe" => {
                open.insert(step);
            }
            "attempt_succeeded" | "attempt_failed" | "outcome_resolved" => {
                open.remove(&step);
            }
            _ => {}
        }
    }
    open
}

/// Checks that the unknown outcomes are the predicted ones and settles them from what the world
/// shows.
pub(crate) fn settle_unknown(
    workspace: &Workspace,
    predicted: &BTreeSet<String>,
    context: &str,
) -> usize {
    let unknown: BTreeSet<String> =
        workspace
            .journal()
            .iter()
            .fold(BTreeSet::new(), |mut unknown, entry| {
                let step = entry["step"].as_str().unwrap_or_default().to_owned();
                match entry["kind"].as_str() {
                    Some("outcome_lost") => {
                        unknown.insert(step);
                    }
                    Some("outcome_resolved") => {
                        unknown.remove(&step);
                    }
                    _ => {}
                }
                unknown
            });
    assert_eq!(
        unknown, *predicted,
        "{context}: other outcomes are unknown than predicted"
    );
    let effects = effects(workspace);
    for step in &unknown {
        let happened = effects.contains_key(step);
        let how = if happened {
            "--happened"
        } else {
            "--run-again"
        };
        let output = workspace.execute(&["resolve", "killed", step, how], None);
        assert!(
            output.status.success(),
            "{context}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    unknown.len()
}

/// Answers the questions of steps that have no answer yet. Returns how many questions there were.
pub(crate) fn answer_questions(workspace: &Workspace, context: &str) -> usize {
    let mut asked: BTreeSet<String> = BTreeSet::new();
    for entry in workspace.journal() {
        let step = entry["step"].as_str().unwrap_or_default().to_owned();
        match entry["kind"].as_str() {
            Some("input_requested") => {
                assert!(asked.insert(step), "{context}: a question was asked twice");
            }
            Some("input_given") => {
                assert!(asked.remove(&step), "{context}: an answer was taken twice");
            }
            _ => {}
        }
    }
    for step in &asked {
        let output = workspace.execute(&["input", "killed", step, "--set", "n=3"], None);
        assert!(
            output.status.success(),
            "{context}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    asked.len()
}

/// Checks a run that has ended. The journal's fold is part of `verify`; now and then it is replayed
/// as well.
pub(crate) fn check_end(workspace: &Workspace, replay: bool, context: &str) {
    let journal = workspace.journal();
    check_effects(workspace, context);
    check_recorded_once(workspace, &journal, context);
    let verified = workspace.execute(&["verify", "--json"], None);
    assert!(
        verified.status.success(),
        "{context}: {}",
        String::from_utf8_lossy(&verified.stdout)
    );
    let ends: Vec<&Value> = journal
        .iter()
        .map(|entry| &entry["kind"])
        .filter(|kind| *kind == "run_completed")
        .collect();
    assert_eq!(ends.len(), 1, "{context}: the run has {} ends", ends.len());
    if replay {
        let replayed = workspace
            .json(&["replay", "killed", "--offline", "--json"])
            .expect("a replay succeeds");
        assert_eq!(
            replayed["status"], "completed",
            "{context}: the replay came to another end"
        );
    }
}

/// Nothing is lost and nothing was done twice that must not be.
fn check_effects(workspace: &Workspace, context: &str) {
    let effects = effects(workspace);
    for step in steps(workspace, Does::Appends) {
        let times = effects.get(step).copied().unwrap_or_default();
        assert_eq!(
            times, 1,
            "{context}: the unsafe step {step} had its effect {times} times"
        );
    }
    for step in steps(workspace, Does::Writes) {
        assert!(
            workspace.path().join("out").join(step).exists(),
            "{context}: the effect of {step} is lost"
        );
    }
    let keyed = lines(workspace, "keyed.log");
    for step in steps(workspace, Does::Keyed) {
        let keys: BTreeSet<&str> = keyed
            .iter()
            .filter_map(|line| line.strip_prefix(&format!("{step} ")))
            .collect();
        assert_eq!(
            keys.len(),
            1,
            "{context}: the keyed step {step} was called with the keys {keys:?}"
        );
    }
}

/// Every step has one end in the journal, and every attempt one start.
fn check_recorded_once(workspace: &Workspace, journal: &[Value], context: &str) {
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    let mut starts: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    for entry in journal {
        let step = entry["step"].as_str().unwrap_or_default();
        match entry["kind"].as_str().unwrap_or_default() {
            "attempt_succeeded" | "step_skipped" | "loop_closed" | "input_given" => {
                *ends.entry(step).or_default() += 1;
            }
            "attempt_failed" if entry.get("retryAt").is_none() => {
                *ends.entry(step).or_default() += 1;
            }
            "outcome_resolved" if entry["resolution"].get("happened").is_some() => {
                *ends.entry(step).or_default() += 1;
            }
            "attempt_started" => {
                *starts
                    .entry((step, entry["attempt"].as_u64().unwrap()))
                    .or_default() += 1;
            }
            _ => {}
        }
    }
    for step in &workspace.shape.steps {
        let times = ends.get(step.id.as_str()).copied().unwrap_or_default();
        assert_eq!(
            times, 1,
            "{context}: step {} has {times} ends in the journal",
            step.id
        );
    }
    assert!(
        starts.values().all(|times| *times == 1),
        "{context}: an attempt was started twice"
    );
}
