//! Runs that stand still: paused, queued, stalled, held by a rule, or with a call that is made
//! alone because the process died beside it.

use crate::plans::plan;
use crate::run_world::{Conduct, History, PlanSpec, StepSpec, World, person};
use planwright_core::digest::Digest;
use planwright_core::error::{ClassifiedError as _, Hint};
use planwright_core::journal::Cause;
use planwright_core::plan::StepIx;
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::run::{
    CallReport, Command, Refusal, Run, RunEvent, StepReport, StepState, StoredValue,
};
use planwright_core::tool::EffectClass;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn rule() -> Principal {
    Principal {
        kind: PrincipalKind::Policy,
        ..person()
    }
}

fn agent() -> Principal {
    Principal::agent("planner")
}

fn chain() -> PlanSpec {
    PlanSpec::of(vec![StepSpec::plain(&[]), StepSpec::plain(&[0])])
}

fn begin(spec: &PlanSpec) -> History {
    History::begin(&spec.plan(), true)
}

fn pause(history: &mut History, by: Principal) -> Result<usize, Refusal> {
    history.give(&Command::Pause { by }, Cause::Command)
}

fn resume(history: &mut History, by: Principal) -> Result<usize, Refusal> {
    history.give(&Command::Resume { by }, Cause::Command)
}

fn status(history: &History) -> &'static str {
    history.run.status().as_str()
}

#[test]
fn a_run_tells_by_whose_order_it_stands_still_and_goes_on() {
    let mut history = begin(&chain());
    assert!(history.run.pause().pause_order().is_none());
    assert!(history.run.pause().resume_order().is_none());
    history.advance(Duration::from_secs(1));
    pause(&mut history, person()).unwrap();
    let order = history.run.pause().pause_order().unwrap();
    assert_eq!((&order.by, order.at), (&person(), history.now));
    assert!(history.run.pause().is_by_person());
    history.advance(Duration::from_secs(1));
    resume(&mut history, person()).unwrap();
    assert!(history.run.pause().pause_order().is_none());
    let order = history.run.pause().resume_order().unwrap();
    assert_eq!((&order.by, order.at), (&person(), history.now));
}

#[test]
fn what_a_person_paused_only_a_person_lets_go_on() {
    let mut history = begin(&chain());
    pause(&mut history, agent()).unwrap();
    assert!(!history.run.pause().is_by_person());
    assert_eq!(pause(&mut history, agent()), Ok(0), "it stands still");
    assert_eq!(
        pause(&mut history, person()),
        Ok(1),
        "a person's counts more"
    );
    assert_eq!(pause(&mut history, person()), Ok(0));
    assert_eq!(pause(&mut history, agent()), Ok(0));
    let refused = resume(&mut history, agent()).unwrap_err();
    let expected = Refusal::PausedByPerson {
        paused_by: person(),
        by: agent(),
    };
    assert_eq!(refused, expected);
    resume(&mut history, person()).unwrap();
    pause(&mut history, agent()).unwrap();
    resume(&mut history, agent()).unwrap();
    assert_eq!(resume(&mut history, agent()), Err(Refusal::NotPaused));
}

#[test]
fn a_run_that_a_rule_holds_can_only_be_ended() {
    let mut history = begin(&chain());
    assert!(!history.run.is_held());
    pause(&mut history, person()).unwrap();
    assert!(!history.run.is_held());
    assert_eq!(pause(&mut history, rule()), Ok(1));
    assert!(history.run.is_held());
    assert_eq!(pause(&mut history, rule()), Ok(0), "it is held already");
    assert_eq!(pause(&mut history, person()), Ok(0));
    assert_eq!(resume(&mut history, person()), Err(Refusal::HeldRun));
    assert_eq!(history.run.schedule().free_slots(), 0);
    history
        .give(&Command::Cancel { by: person() }, Cause::Command)
        .unwrap();
    history.give(&Command::Settle, Cause::Schedule).unwrap();
    assert_eq!(status(&history), "cancelled");
}

#[test]
fn a_rule_holds_also_a_run_that_no_process_executes() {
    let mut history = begin(&chain());
    let since = history.now;
    let stall = Command::Stall { since };
    history.give(&stall, Cause::Timer).unwrap();
    assert_eq!(status(&history), "stalled");
    assert_eq!(history.give(&stall, Cause::Timer), Ok(0), "said once");
    assert!(
        matches!(
            pause(&mut history, person()),
            Err(Refusal::CannotPause { .. })
        ),
        "a person resumes it or gives it up"
    );
    pause(&mut history, rule()).unwrap();
    assert_eq!(status(&history), "paused");
    assert!(history.run.is_held());
}

#[test]
fn a_run_that_waits_for_a_person_does_not_stall() {
    let gated = PlanSpec::of(vec![StepSpec {
        gated: true,
        ..StepSpec::plain(&[])
    }]);
    let mut history = begin(&gated);
    let stall = Command::Stall { since: history.now };
    World::new(&gated, 1).turn(&mut history);
    assert_eq!(status(&history), "waiting");
    assert_eq!(history.give(&stall, Cause::Timer), Ok(0));
    let queue = Command::Queue { slots: 2 };
    assert_eq!(history.give(&queue, Cause::Schedule), Ok(0));

    let mut paused = begin(&chain());
    pause(&mut paused, person()).unwrap();
    assert_eq!(paused.give(&stall, Cause::Timer), Ok(0));
    assert_eq!(paused.give(&queue, Cause::Schedule), Ok(0));
}

#[test]
fn a_run_says_once_that_it_waits_for_its_turn() {
    let spec = chain();
    let mut history = begin(&spec);
    let queue = |slots| Command::Queue { slots };
    assert_eq!(history.run.schedule().queued_behind(), None);
    assert_eq!(history.give(&queue(3), Cause::Schedule), Ok(1));
    assert_eq!(history.run.schedule().queued_behind(), Some(3));
    assert_eq!(history.give(&queue(3), Cause::Schedule), Ok(0));
    assert_eq!(history.give(&queue(4), Cause::Schedule), Ok(1));
    assert_eq!(history.run.schedule().queued_behind(), Some(4));
    let mut world = World::new(&spec, 1);
    world.turn(&mut history);
    assert_eq!(
        history.run.schedule().queued_behind(),
        None,
        "it has its turn"
    );
    assert_eq!(
        history.give(&queue(4), Cause::Schedule),
        Ok(0),
        "its calls are in flight"
    );

    let mut paused = begin(&spec);
    paused.give(&queue(3), Cause::Schedule).unwrap();
    pause(&mut paused, person()).unwrap();
    assert_eq!(
        paused.run.schedule().queued_behind(),
        None,
        "it waits for a person"
    );
}

#[test]
fn a_run_is_given_up_only_when_nothing_is_in_flight() {
    let spec = chain();
    let give_up = Command::GiveUp {
        by: person(),
        reason: "it takes too long".into(),
    };
    let mut history = begin(&spec);
    let mut world = World::new(&spec, 1);
    world.turn(&mut history);
    assert_eq!(
        history.give(&give_up, Cause::Command),
        Err(Refusal::InFlight { calls: 1 })
    );
    assert!(world.let_one_answer(&mut history));
    history.give(&give_up, Cause::Command).unwrap();
    assert_eq!(status(&history), "failed");
    assert_eq!(
        history.run.reflection().why_given_up(),
        Some("it takes too long")
    );

    let mut cancelled = begin(&spec);
    World::new(&spec, 1).turn(&mut cancelled);
    cancelled
        .give(&Command::Cancel { by: person() }, Cause::Command)
        .unwrap();
    assert_eq!(
        cancelled.give(&give_up, Cause::Command),
        Ok(0),
        "it ends by itself"
    );
}

#[test]
fn steps_know_whether_others_wait_for_them() {
    let mut history = begin(&PlanSpec::of(vec![
        StepSpec {
            elements: Some(1),
            ..StepSpec::plain(&[])
        },
        StepSpec::plain(&[0]),
    ]));
    let waited = |history: &History| -> Vec<bool> {
        let steps = history.run.indices();
        steps
            .map(|ix| history.run.schedule().is_waited_for(ix))
            .collect()
    };
    assert_eq!(waited(&history), [true, false]);
    let open = Command::OpenLoop {
        step: StepIx::new(0),
        items: StoredValue::Inline(Arc::new(json!([1]))),
        count: 1,
    };
    history.give(&open, Cause::Schedule).unwrap();
    assert_eq!(
        waited(&history),
        [true, false, true],
        "an element is waited for like its loop"
    );
}

#[test]
fn a_loop_is_closed_when_each_of_its_elements_had_a_turn() {
    let mut history = begin(&PlanSpec::of(vec![StepSpec {
        elements: Some(1),
        ..StepSpec::plain(&[])
    }]));
    let step = StepIx::new(0);
    let list = || StoredValue::Inline(Arc::new(json!([1])));
    let open = Command::OpenLoop {
        step,
        items: list(),
        count: 1,
    };
    history.give(&open, Cause::Schedule).unwrap();
    let element = history.run.find("s0[0]").unwrap();
    assert_eq!(history.run.find("s0[1]"), None, "there is one element");
    let close = Command::CloseLoop {
        step,
        value: list(),
    };
    assert!(history.give(&close, Cause::Schedule).is_err());
    start(&mut history, element);
    let report = Command::Report {
        step: element,
        attempt: 1,
        answer: CallReport::Succeeded(list()),
    };
    history.give(&report, Cause::Report).unwrap();
    history.give(&close, Cause::Schedule).unwrap();
}

/// The process dies while the calls of these steps are in flight.
fn crash(history: &mut History, world: &mut World<'_>) {
    world.turn(history);
    *history = history.fold(history.entries.len());
    history.give(&Command::Recover, Cause::Recovery).unwrap();
    history.advance(Duration::from_secs(60));
}

#[test]
fn a_call_beside_which_the_process_died_often_is_made_alone() {
    let spec = PlanSpec::of(vec![StepSpec::plain(&[]), StepSpec::plain(&[])]);
    let mut history = begin(&spec);
    let mut world = World::new(&spec, 1);
    let first = StepIx::new(0);
    let isolate = Command::Isolate { step: first };
    for times in 1..=Run::ISOLATED_AFTER {
        assert_eq!(history.run.schedule().needs_isolation(first), None);
        assert!(history.give(&isolate, Cause::Schedule).is_err());
        crash(&mut history, &mut world);
        let crashes = history.run.schedule().needs_isolation(first);
        assert_eq!(crashes.is_some(), times == Run::ISOLATED_AFTER);
    }
    let crashes = history.run.schedule().needs_isolation(first).unwrap();
    assert_eq!((crashes.all, crashes.alone), (Run::ISOLATED_AFTER, 0));
    assert_eq!(history.give(&isolate, Cause::Schedule), Ok(1));
    assert_eq!(history.give(&isolate, Cause::Schedule), Ok(0), "said once");
    assert_eq!(
        history.run.schedule().isolated_step(),
        None,
        "it is not in flight yet"
    );
    assert_eq!(history.give(&Command::EndIsolation, Cause::Schedule), Ok(0));
    start(&mut history, first);
    assert_eq!(history.run.schedule().isolated_step(), Some(first));
    assert_eq!(history.run.schedule().free_slots(), 0, "nothing beside it");
    let mut ended = history.clone();
    assert_eq!(ended.give(&Command::EndIsolation, Cause::Schedule), Ok(1));
    assert_eq!(ended.run.schedule().isolated_step(), None);
    assert!(ended.run.schedule().free_slots() > 0);
    history = history.fold(history.entries.len());
    history.give(&Command::Recover, Cause::Recovery).unwrap();
    let crashes = history.run.schedule().needs_isolation(first).unwrap();
    assert_eq!((crashes.all, crashes.alone), (Run::ISOLATED_AFTER + 1, 1));
}

fn start(history: &mut History, step: StepIx) {
    let command = Command::Start {
        step,
        tool: "w.t0".to_owned().try_into().unwrap(),
        class: EffectClass::Safe,
        call: Digest::ZERO,
        facts: None,
    };
    history.give(&command, Cause::Schedule).unwrap();
}

#[test]
fn a_call_that_ends_the_process_alone_too_often_fails() {
    let spec = PlanSpec::of(vec![StepSpec::plain(&[])]);
    let mut history = begin(&spec);
    let mut world = World::new(&spec, 1);
    let step = StepIx::new(0);
    for _ in 0..Run::ISOLATED_AFTER {
        crash(&mut history, &mut world);
    }
    for _ in 0..=Run::MAX_INTERRUPTIONS {
        assert!(!history.run.step(step).is_terminal());
        let isolate = Command::Isolate { step };
        history.give(&isolate, Cause::Schedule).unwrap();
        start(&mut history, step);
        history = history.fold(history.entries.len());
        history.give(&Command::Recover, Cause::Recovery).unwrap();
        history.advance(Duration::from_secs(60));
    }
    let StepState::Failed { error, .. } = history.run.step(step) else {
        panic!("{:?}", history.run.step(step));
    };
    assert!(
        error.message.contains("6 times while no other call"),
        "{}",
        error.message
    );
}

#[test]
fn a_call_beside_which_the_process_died_a_hundred_times_fails() {
    let spec = PlanSpec::of(vec![StepSpec::plain(&[])]);
    let mut history = begin(&spec);
    let mut world = World::new(&spec, 1);
    for _ in 0..Run::MAX_CRASHES {
        crash(&mut history, &mut world);
        assert!(!history.run.step(StepIx::new(0)).is_terminal());
    }
    crash(&mut history, &mut world);
    let StepState::Failed { error, .. } = history.run.step(StepIx::new(0)) else {
        panic!("{:?}", history.run.step(StepIx::new(0)));
    };
    assert!(error.message.contains("101 times"), "{}", error.message);
}

#[test]
fn an_executor_and_a_sub_plan_are_never_made_to_work_alone() {
    let document = json!({"id": "p", "toolsRequired": ["t.a"], "steps": [
        {"id": "a", "agent": {"instruction": "do it"}},
    ]});
    let mut history = History::begin(&Arc::new(plan(document)), true);
    for _ in 0..=Run::ISOLATED_AFTER {
        start(&mut history, StepIx::new(0));
        history = history.fold(history.entries.len());
        history.give(&Command::Recover, Cause::Recovery).unwrap();
        history.advance(Duration::from_secs(60));
    }
    assert_eq!(history.run.schedule().needs_isolation(StepIx::new(0)), None);
}

#[test]
fn a_clock_that_jumped_forwards_ends_no_call() {
    let spec = PlanSpec::of(vec![StepSpec {
        timeout_ms: Some(1_000),
        ..StepSpec::plain(&[])
    }]);
    let mut history = begin(&spec);
    World::new(&spec, 1).turn(&mut history);
    let due = history.now.plus(Duration::from_secs(1));
    assert_eq!(history.run.schedule().next_timer(history.now), Some(due));
    history.run.delay_timers(Duration::from_secs(60));
    let later = due.plus(Duration::from_secs(60));
    assert_eq!(history.run.schedule().next_timer(history.now), Some(later));
    history.advance(Duration::from_secs(60));
    assert_eq!(history.give(&Command::Tick, Cause::Timer), Ok(0));
    history.advance(Duration::from_secs(1));
    let ended = history.run.decide(&Command::Tick, history.now).unwrap();
    assert!(matches!(
        ended.as_slice(),
        [RunEvent::AttemptFailed { .. } | RunEvent::StepFailed { .. }]
    ));
}

#[test]
fn a_clock_that_jumped_forwards_brings_no_retry_nearer() {
    let spec = PlanSpec::of(vec![StepSpec {
        retries: 2,
        conduct: Conduct::FailsFirst(1),
        ..StepSpec::plain(&[])
    }]);
    let mut history = begin(&spec);
    let mut world = World::new(&spec, 1);
    world.turn(&mut history);
    assert!(world.let_one_answer(&mut history));
    let due = history.run.schedule().next_timer(history.now).unwrap();
    history.run.delay_timers(Duration::from_secs(60));
    let later = due.plus(Duration::from_secs(60));
    assert_eq!(history.run.schedule().next_timer(history.now), Some(later));
    let startable = |history: &History, at| history.run.schedule().startable(at).count();
    assert_eq!(
        (startable(&history, due), startable(&history, later)),
        (0, 1)
    );
}

#[test]
fn refusals_of_a_run_say_who_can_help() {
    let by = agent();
    let paused_by = person();
    let paused = Refusal::PausedByPerson { paused_by, by };
    assert_eq!(paused.hint(), Some(Hint::AskPersonToResume));
    assert_eq!(Refusal::HeldRun.hint(), Some(Hint::EndHeldRun));
    assert_eq!(Refusal::NotPaused.hint(), None);
}

#[test]
fn a_report_says_how_long_a_step_took_and_a_run_keeps_its_values() {
    let spec = chain();
    let mut history = begin(&spec);
    let mut world = World::new(&spec, 1);
    let took = |history: &History, step: usize| {
        StepReport::new(&history.run, StepIx::new(step), history.now).duration
    };
    world.turn(&mut history);
    assert_eq!(history.run.stored_values().count(), 0);
    history.advance(Duration::from_secs(3));
    assert_eq!(took(&history, 0), Duration::from_secs(3), "so far");
    assert!(world.let_one_answer(&mut history));
    history.advance(Duration::from_secs(5));
    assert_eq!(took(&history, 0), Duration::from_secs(3));
    assert_eq!(took(&history, 1), Duration::ZERO);
    assert_eq!(history.run.stored_values().count(), 1);
}

#[test]
fn nothing_is_asked_any_more_in_a_run_that_ends() {
    let spec = PlanSpec::of(vec![
        StepSpec::plain(&[]),
        StepSpec {
            gated: true,
            ..StepSpec::plain(&[])
        },
    ]);
    let mut history = begin(&spec);
    assert_eq!(history.run.schedule().unasked_steps().count(), 1);
    start(&mut history, StepIx::new(0));
    history
        .give(&Command::Cancel { by: person() }, Cause::Command)
        .unwrap();
    assert_eq!(history.run.schedule().unasked_steps().count(), 0);
}
