//! Runs that go on from others, runs that do the work of a step, and what is told of their calls.

use crate::plans::plan;
use crate::run_world::{Conduct, History, PlanSpec, StepSpec, World, person, started};
use planwright_core::digest::Digest;
use planwright_core::id::StepId;
use planwright_core::journal::{Cause, Journaled as _};
use planwright_core::model::{ModelRole, ModelUse, TokenUsage};
use planwright_core::plan::StepIx;
use planwright_core::principal::Principal;
use planwright_core::run::{
    AttemptOutcome, CallReport, Command, Parent, RunEvent, StepHistories, StoredValue, carry_over,
    idempotency_key, reusable_results,
};
use planwright_core::stats::ModelCosts;
use planwright_core::tool::EffectClass;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// `c` comes after `b`, which comes after `a`; `d` stands alone.
fn chain() -> Value {
    json!({"id": "p", "variables": {"x": 1}, "steps": [
        {"id": "a", "tool": "t.a"},
        {"id": "b", "tool": "t.b", "dependsOn": ["a"]},
        {"id": "c", "tool": "t.c", "dependsOn": ["b"]},
        {"id": "d", "tool": "t.d"},
    ]})
}

fn begin(document: Value) -> History {
    History::begin(&Arc::new(plan(document)), true)
}

fn succeed(history: &mut History, step: &str) {
    let ix = history.run.find(step).unwrap();
    let tool = history.run.definition(ix).tool.clone().unwrap();
    let start = Command::Start {
        step: ix,
        tool: tool.try_into().unwrap(),
        class: EffectClass::Safe,
        call: Digest::ZERO,
        facts: None,
    };
    history.give(&start, Cause::Schedule).unwrap();
    let report = Command::Report {
        step: ix,
        attempt: 1,
        answer: CallReport::Succeeded(StoredValue::Inline(Arc::new(json!(step)))),
    };
    history.give(&report, Cause::Report).unwrap();
}

fn skip(history: &mut History, step: &str) {
    let skip = Command::Skip {
        step: history.run.find(step).unwrap(),
        reason: "not needed".into(),
    };
    history.give(&skip, Cause::Schedule).unwrap();
}

/// A run in which `a` succeeded, `b` was skipped and `c` succeeded.
fn source() -> History {
    let mut history = begin(chain());
    succeed(&mut history, "a");
    skip(&mut history, "b");
    succeed(&mut history, "c");
    history
}

fn taken_over(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut document = chain();
    change(&mut document);
    let described = |event: RunEvent| match event {
        RunEvent::ResultReused { step, .. } => format!("{step} reused"),
        RunEvent::StepSkipped { step, reason, .. } => format!("{step} skipped: {reason}"),
        event => panic!("{event:?}"),
    };
    let events = carry_over(&source().run, &plan(document));
    events.into_iter().map(described).collect()
}

#[test]
fn what_was_executed_or_skipped_is_taken_over() {
    let all = ["a reused", "b skipped: not needed", "c reused"];
    assert_eq!(taken_over(|_| ()), all);
    let last = taken_over(|plan| plan["steps"][3]["args"] = json!({"y": 1}));
    assert_eq!(last, all, "what has not run may change");
}

#[test]
fn a_step_that_was_changed_runs_again_with_all_that_follows() {
    let first = taken_over(|plan| plan["steps"][0]["args"] = json!({"y": 1}));
    assert_eq!(first, [""; 0]);
    let skipped = taken_over(|plan| plan["steps"][1]["args"] = json!({"y": 1}));
    assert_eq!(skipped, ["a reused"]);
    let last = taken_over(|plan| plan["steps"][2]["args"] = json!({"y": 1}));
    assert_eq!(last, ["a reused", "b skipped: not needed"]);
    let renamed = taken_over(|plan| plan["steps"][2]["id"] = json!("e"));
    assert_eq!(renamed, ["a reused", "b skipped: not needed"]);
}

#[test]
fn results_of_other_variables_are_not_taken_over() {
    let taken = taken_over(|plan| plan["variables"]["x"] = json!(2));
    assert_eq!(taken, [""; 0]);
}

#[test]
fn a_fork_runs_the_steps_it_names_again_with_all_that_follows() {
    let mut history = begin(chain());
    for step in ["a", "b", "c", "d"] {
        succeed(&mut history, step);
    }
    let reused = |document: Value, from: &[usize]| -> Vec<usize> {
        let from: Vec<StepIx> = from.iter().copied().map(StepIx::new).collect();
        let plan = plan(document);
        let results = reusable_results(&history.run, &plan, &from);
        let mut steps: Vec<usize> = results.iter().map(|reused| reused.step.index()).collect();
        steps.sort_unstable();
        steps
    };
    assert_eq!(reused(chain(), &[]), [0, 1, 2, 3]);
    assert_eq!(reused(chain(), &[1]), [0, 3]);
    let mut changed = chain();
    changed["steps"][0]["args"] = json!({"y": 1});
    assert_eq!(reused(changed, &[]), [3]);
    let mut variables = chain();
    variables["variables"]["x"] = json!(2);
    assert_eq!(reused(variables, &[]), [0; 0]);
}

#[test]
fn the_run_of_a_step_has_a_place_and_an_id_of_its_own() {
    let history = begin(chain());
    let a = StepIx::new(0);
    let b = StepIx::new(1);
    let place = history.run.child_runs(a).place();
    assert_eq!((&place.run, place.step.as_str()), (history.run.id(), "a"));
    assert_eq!((place.index, place.call), (None, None));
    let call = history.run.child_runs(a).call_place(3);
    assert_eq!((call.call, call.step.as_str()), (Some(3), "a"));
    let first = Parent {
        index: Some(0),
        ..place.clone()
    };
    let second = Parent {
        index: Some(1),
        ..place.clone()
    };
    let other = history.run.child_runs(b).place();
    let fourth = history.run.child_runs(a).call_place(4);
    let mut ids: Vec<String> = [&place, &call, &first, &second, &other, &fourth]
        .map(|place| place.child().to_string())
        .into();
    assert_eq!(place.child(), history.run.child_runs(a).place().child());
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6, "no two places share a run");
}

#[test]
fn the_id_of_a_child_never_changes() {
    let place = begin(chain()).run.child_runs(StepIx::new(0)).place();
    assert_eq!(place.child().as_str(), "run_5yqdpn7cm5ul");
}

#[test]
fn a_tool_recognises_a_repeated_call_by_its_key() {
    let run = |name: &str| name.parse().unwrap();
    let step = |name: &str| -> StepId { name.parse().unwrap() };
    let digest = Digest::of_bytes(b"shown");
    let key = idempotency_key(&run("run_1"), &digest, &step("a"));
    assert_eq!(key.len(), 32);
    assert_eq!(key, idempotency_key(&run("run_1"), &digest, &step("a")));
    let others = [
        idempotency_key(&run("run_2"), &digest, &step("a")),
        idempotency_key(&run("run_1"), &Digest::ZERO, &step("a")),
        idempotency_key(&run("run_1"), &digest, &step("b")),
    ];
    assert!(others.iter().all(|other| *other != key));
}

#[test]
fn an_entry_that_may_be_written_once_has_a_key() {
    let spec = PlanSpec::of(vec![StepSpec {
        retries: 1,
        conduct: Conduct::FailsFirst(1),
        ..StepSpec::plain(&[])
    }]);
    let mut history = History::begin(&spec.plan(), true);
    history
        .give(&Command::Pause { by: person() }, Cause::Command)
        .unwrap();
    World::new(&spec, 1).drain(&mut history);
    let keys: Vec<Option<String>> = history
        .entries
        .iter()
        .map(|entry| entry.event.unique_key())
        .collect();
    let expected = [
        Some("start"),
        None,
        None,
        Some("s0 start 1"),
        None,
        Some("s0 start 2"),
        Some("s0 end"),
        Some("end"),
    ];
    let keys: Vec<Option<&str>> = keys.iter().map(Option::as_deref).collect();
    assert_eq!(keys, expected);
}

fn told(history: &History) -> StepHistories {
    let mut told = StepHistories::default();
    for entry in &history.entries {
        told.record(entry);
    }
    told
}

#[test]
fn every_call_of_a_step_is_told_with_its_times_and_what_came_of_it() {
    let spec = PlanSpec::of(vec![StepSpec {
        retries: 1,
        conduct: Conduct::FailsFirst(1),
        ..StepSpec::plain(&[])
    }]);
    let mut history = History::begin(&spec.plan(), true);
    let began = history.now;
    World::new(&spec, 1).drain(&mut history);
    let told = told(&history);
    let step = told.get(&"s0".parse().unwrap()).unwrap();
    let words: Vec<&str> = step
        .attempts
        .iter()
        .map(|attempt| attempt.outcome.as_str())
        .collect();
    assert_eq!(words, ["failed", "succeeded"]);
    let [first, second] = step.attempts.as_slice() else {
        panic!("{step:?}");
    };
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_eq!((first.tool.as_str(), first.started_at), ("w.t0", began));
    assert!(first.error.is_some() && first.retry_at.is_some());
    assert!(second.error.is_none() && second.ended_at.is_some());
    assert_eq!(step.started_at, Some(began));
    assert_eq!(step.ended_at, second.ended_at);
    assert!(told.get(&"s1".parse().unwrap()).is_none());
}

#[test]
fn calls_that_did_not_come_back_are_told_apart() {
    let outcome = |class: EffectClass, then: &[Command]| {
        let spec = PlanSpec::of(vec![StepSpec {
            class,
            ..StepSpec::plain(&[])
        }]);
        let mut history = History::begin(&spec.plan(), true);
        World::new(&spec, 1).turn(&mut history);
        history.advance(Duration::from_secs(1));
        for command in then {
            history.give(command, Cause::Recovery).unwrap();
        }
        let told = told(&history);
        let step = told.get(&"s0".parse().unwrap()).unwrap();
        let call = step.attempts.last().unwrap();
        (call.outcome, call.reason.is_some(), call.ended_at.is_some())
    };
    let in_flight = outcome(EffectClass::Safe, &[]);
    assert_eq!(in_flight, (AttemptOutcome::Running, false, false));
    let crashed = outcome(EffectClass::Safe, &[Command::Recover]);
    assert_eq!(crashed, (AttemptOutcome::Interrupted, true, true));
    let lost = outcome(EffectClass::Unsafe, &[Command::Recover]);
    assert_eq!(lost, (AttemptOutcome::Unknown, true, true));
    // A worker makes the call: the owner that is gone did not.
    let carried = Command::RecoverOthers {
        carried: vec![StepIx::new(0)],
    };
    let goes_on = outcome(EffectClass::Unsafe, &[carried]);
    assert_eq!(goes_on, (AttemptOutcome::Running, false, false));
    let cancel = Command::Cancel { by: person() };
    let stopped = Command::Report {
        step: StepIx::new(0),
        attempt: 1,
        answer: CallReport::NotMade,
    };
    let cancelled = outcome(EffectClass::Safe, &[cancel, stopped]);
    assert_eq!(cancelled, (AttemptOutcome::Cancelled, false, true));
}

#[test]
fn only_the_latest_calls_of_a_step_are_kept() {
    let mut history = begin(chain());
    succeed(&mut history, "a");
    let started = history
        .entries
        .iter()
        .find(|entry| matches!(entry.event, RunEvent::AttemptStarted { .. }))
        .unwrap();
    let mut told = StepHistories::default();
    let most = StepHistories::MAX_ATTEMPTS;
    for number in 1..=most + 2 {
        let mut entry = started.clone();
        if let RunEvent::AttemptStarted { attempt, .. } = &mut entry.event {
            *attempt = u32::try_from(number).unwrap();
        }
        told.record(&entry);
    }
    let kept = &told.get(&"a".parse().unwrap()).unwrap().attempts;
    assert_eq!((kept.len(), kept[0].attempt), (most, 3));
}

#[test]
fn what_models_used_is_told_of_the_step_they_worked_on() {
    let mut history = begin(chain());
    let used = ModelUse {
        role: ModelRole::Executor,
        model: "some/model".into(),
        usage: TokenUsage {
            input: 7,
            output: 3,
            cached: 0,
            estimated: false,
        },
        cost: None,
    };
    let note = Command::NoteModel {
        step: StepIx::new(0),
        used,
    };
    history.give(&note, Cause::Report).unwrap();
    let told = told(&history);
    let step = told.get(&"a".parse().unwrap()).unwrap();
    assert_ne!(step.models, ModelCosts::default());
    assert_eq!(step.started_at, None, "it was not called");
}

#[test]
fn a_call_of_an_executor_knows_that_it_is_one() {
    let is_call = |parent: Option<Parent>| {
        let plan = Arc::new(plan(chain()));
        let mut started = started(&plan, true);
        if let RunEvent::RunStarted {
            by, parent: own, ..
        } = &mut started
        {
            *by = Principal::agent("executor");
            *own = parent.map(Box::new);
        }
        let mut history = History::begin_with(&plan, "run_child".parse().unwrap(), started);
        let stall = Command::Stall { since: history.now };
        let stalls = history.give(&stall, Cause::Timer).unwrap() > 0;
        (history.run.is_agent_call(), stalls)
    };
    let parent = begin(chain());
    let children = parent.run.child_runs(StepIx::new(0));
    assert_eq!(is_call(None), (false, true));
    assert_eq!(
        is_call(Some(children.place())),
        (false, false),
        "it stands still with the run it belongs to"
    );
    assert_eq!(is_call(Some(children.call_place(1))), (true, false));
}
