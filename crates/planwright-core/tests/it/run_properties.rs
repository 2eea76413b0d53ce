//! Laws over random plans and random histories. More cases with `PROPTEST_CASES`.

use crate::run_files::setting;
use crate::run_laws::check_journal;
use crate::run_world::{Condition, Conduct, History, PlanSpec, StepSpec, World};
use planwright_core::digest::Digest;
use planwright_core::id::StepId;
use planwright_core::journal::{Cause, Entry, Head, StreamName, check_chain, decode, encode};
use planwright_core::principal::Principal;
use planwright_core::run::{
    Asked, Command, Question, Reply, Resolution, RunEvent, StepError, StoredValue,
};
use planwright_core::time::Timestamp;
use planwright_core::tool::EffectClass;
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any};
use proptest::{option, prop_oneof, proptest};
use serde_json::{Map, Value};
use std::sync::Arc;

fn conduct() -> impl Strategy<Value = Conduct> {
    prop_oneof![
        8 => Just(Conduct::Succeeds),
        3 => (1..4_u32).prop_map(Conduct::FailsFirst),
        1 => Just(Conduct::FailsForGood),
        1 => Just(Conduct::Hangs),
        1 => (1..9_u32).prop_map(Conduct::LosesFirst),
        1 => (1..9_u32).prop_map(Conduct::NotMadeFirst),
        1 => (1..4_u32).prop_map(Conduct::ParksFirst),
        1 => (1..4_u32).prop_map(Conduct::AsksFirst),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    prop_oneof![
        16 => Just(Condition::Always),
        1 => Just(Condition::Never),
        1 => Just(Condition::Undecidable),
        2 => Just(Condition::EvenElements),
    ]
}

fn class() -> impl Strategy<Value = EffectClass> {
    prop_oneof![2 => Just(EffectClass::Safe), 1 => Just(EffectClass::Keyed), 1 => Just(EffectClass::Unsafe)]
}

fn step() -> impl Strategy<Value = StepSpec> {
    let edges = vec(0..1000_usize, 0..4);
    let flags = (
        any::<bool>(),
        0..8_u8,
        0..16_u8,
        any::<bool>(),
        any::<bool>(),
        0..3_u8,
    );
    let flow = (
        condition(),
        option::weighted(0.2, 0..5_usize),
        option::weighted(0.5, 1..4_u32),
        0..10_u8,
    );
    (
        edges,
        class(),
        conduct(),
        0..4_u32,
        option::weighted(0.25, 20..400_u32),
        flags,
        flow,
    )
        .prop_map(
            |(
                depends_on,
                class,
                conduct,
                retries,
                timeout_ms,
                (critical, gated, missing, optional, undo, call),
                (condition, elements, max_parallel, asks),
            )| {
                let gated = gated == 7;
                let missing = missing == 15;
                StepSpec {
                    depends_on,
                    class,
                    conduct,
                    retries,
                    timeout_ms,
                    critical,
                    gated,
                    missing,
                    optional,
                    undo,
                    call,
                    condition,
                    elements,
                    max_parallel,
                    asks: asks == 9,
                }
            },
        )
}

fn plan(size: usize) -> impl Strategy<Value = PlanSpec> {
    let steps = vec(step(), 0..=size).prop_map(|mut steps| {
        for (at, step) in steps.iter_mut().enumerate() {
            let mut edges: Vec<usize> = step
                .depends_on
                .iter()
                .filter(|_| at > 0)
                .map(|d| d % at.max(1))
                .collect();
            edges.sort_unstable();
            edges.dedup();
            step.depends_on = edges;
        }
        steps
    });
    let budget = (
        option::weighted(0.1, 0..40_u64),
        option::weighted(0.1, 0..12_u64),
        option::weighted(0.1, 1..6_u64),
        option::weighted(0.1, 0..8_u32),
    );
    (steps, 1..6_u32, budget, any::<bool>(), any::<bool>()).prop_map(
        |(steps, max_concurrency, (calls, per_tool, same_call, seconds), go_on, reversed)| {
            PlanSpec {
                steps,
                max_concurrency,
                calls,
                per_tool,
                same_call,
                seconds,
                on_failure_continue: go_on,
                reversed,
            }
        },
    )
}

/// `default` cases, unless the environment says otherwise.
fn cases(default: u32) -> ProptestConfig {
    let cases = setting("PROPTEST_CASES")
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(default);
    ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    }
}

/// Folds what was written, without one call, and compares.
fn check_replay(history: &History) {
    let stream = StreamName::Run(history.run.id().clone());
    check_chain(Head::EMPTY, &stream, &history.records).unwrap();
    let replayed = history.fold(history.records.len());
    assert_eq!(replayed.run.steps_digest(), history.run.steps_digest());
    assert_eq!(replayed.run.state(), history.run.state());
    for ix in history.run.indices() {
        assert_eq!(replayed.run.step(ix), history.run.step(ix));
    }
}

/// Crashes after `kept` entries, recovers, and goes on to the end.
fn go_on_after_crash<'a>(
    spec: &'a PlanSpec,
    history: &History,
    kept: usize,
    seed: u64,
) -> (History, World<'a>) {
    let mut again = history.fold(kept);
    let mut world = World::after(spec, seed, &again);
    again.give(&Command::Recover, Cause::Recovery).unwrap();
    again
        .give(&Command::ResumeChildren, Cause::Recovery)
        .unwrap();
    assert_eq!(
        again.run.schedule().running().len(),
        0,
        "a new owner has no calls in flight"
    );
    world.drain(&mut again);
    check_journal(again.run.plan(), &again.entries);
    (again, world)
}

proptest! {
    #![proptest_config(cases(2000))]

    /// P1 to P4, guards, gates and limits in every history; every prefix of its journal folds, a
    /// crash at any of them can be recovered from, and a replay reaches the same state.
    #[test]
    fn every_history_keeps_the_promises(spec in plan(30), seed in any::<u64>(), guards in any::<bool>()) {
        let plan = spec.plan();
        let mut history = History::begin(&plan, guards);
        let mut world = World::new(&spec, seed);
        world.disturb(&mut history, 10 + 3 * spec.len());
        world.drain(&mut history);
        world.undo(&mut history);
        check_journal(&plan, &history.entries);
        check_replay(&history);
        for _ in 0..2 {
            let kept = 1 + world.dice.below(history.records.len());
            let (again, _) = go_on_after_crash(&spec, &history, kept, seed ^ kept as u64);
            check_replay(&again);
        }
    }

    /// In a world where nothing depends on luck, a crash changes nothing about what the steps come
    /// to. A lost outcome of an unsafe step is settled by a person who tells the truth.
    #[test]
    fn a_crash_at_any_point_changes_no_outcome(spec in plan(30), seed in any::<u64>()) {
        let spec = spec.benign();
        let plan = spec.plan();
        let mut history = History::begin(&plan, true);
        World::new(&spec, seed).drain(&mut history);
        let mut dice = planwright_testing::dice::Dice::new(seed);
        for _ in 0..3 {
            let kept = 1 + dice.below(history.records.len());
            let (again, _) = go_on_after_crash(&spec, &history, kept, dice.roll());
            assert_eq!(again.outcome(), history.outcome());
            assert_eq!(again.run.status().as_str(), history.run.status().as_str());
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    /// The same, at every single prefix and with a second crash in the recovery.
    #[test]
    fn two_crashes_at_every_prefix_change_no_outcome(spec in plan(6), seed in any::<u64>()) {
        let spec = spec.benign();
        let plan = spec.plan();
        let mut history = History::begin(&plan, true);
        World::new(&spec, seed).drain(&mut history);
        for kept in 1..=history.records.len() {
            let (once, mut world) = go_on_after_crash(&spec, &history, kept, seed);
            assert_eq!(once.outcome(), history.outcome());
            let kept = 1 + world.dice.below(once.records.len());
            let (twice, _) = go_on_after_crash(&spec, &once, kept, seed);
            assert_eq!(twice.outcome(), history.outcome());
        }
    }
}

fn asked(text: &str, schema: &Value) -> Asked {
    let url = Some(text.to_owned());
    let question = Question {
        key: text.into(),
        message: text.into(),
        schema: schema.clone(),
        url,
    };
    Asked {
        questions: vec![question],
        state: Some(text.into()),
    }
}

/// JSON of every kind, with the journal's own words as keys.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(Value::from("\u{0}\u{1b}]52;\u{202e}${a}")),
    ];
    let key = prop_oneof![
        3 => ".{0,4}",
        1 => Just("kind".to_owned()),
        1 => Just("v".to_owned()),
        1 => Just("inline".to_owned()),
        1 => Just("$serde_json::private::Number".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((key.clone(), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(cases(500))]

    /// Every value a tool returns and every text people write comes back from the journal
    /// unchanged.
    #[test]
    fn every_value_and_text_survives_being_written_down(value in json(), text in ".{0,20}", at in 0..4_000_000_000_000_i64) {
        let step: StepId = "a".parse().unwrap();
        let stored = || StoredValue::Inline(Arc::new(value.clone()));
        let at = Timestamp::from_millis(at);
        let error = StepError::new(text.clone().into(), text.clone());
        let variables = Map::from_iter([(text.clone(), value.clone()), ("v".to_owned(), value.clone())]);
        let by = Principal::person(text.clone());
        let events = [
            RunEvent::RunStarted {
                plan: "p".parse().unwrap(), version: 1, digest: Digest::ZERO, variables, max_concurrency: 4,
                guards: true, by: by.clone(), forked_from: None, consent: None, undoes: None, parent: None,
                document: None,
                trace: None,
                reflection: None, call_timeout_ms: None, stepwise: false, },
            RunEvent::ResultReused { step: step.clone(), value: stored() },
            RunEvent::AttemptSucceeded { step: step.clone(), attempt: u32::MAX, value: stored() },
            RunEvent::AttemptFailed { step: step.clone(), attempt: 1, error, retry_at: Some(at) },
            RunEvent::OutcomeLost { step: step.clone(), attempt: 1, reason: text.clone() },
            RunEvent::OutcomeResolved {
                step: step.clone(), resolution: Resolution::Happened { value: stored() }, by: by.clone(),
            },
            RunEvent::ApprovalDenied { step: step.clone(), by: by.clone(), reason: text.clone() },
            RunEvent::LoopOpened { step: step.clone(), items: stored(), count: 7 },
            RunEvent::LoopClosed { step: step.instance(3), value: stored() },
            RunEvent::InputRequested {
                step: step.clone(), attempt: Some(2), asked: Box::new(asked(&text, &value)),
                held: false,
            },
            RunEvent::InputRequested {
                step: step.clone(), attempt: Some(2), asked: Box::new(asked(&text, &value)),
                held: true,
            },
            RunEvent::InputGiven {
                step, attempt: None, by,
                replies: vec![Reply::Decline, Reply::Values(Map::from_iter([(text, value.clone())]))],
            },
        ];
        let stream: StreamName = "run/run_x".parse().unwrap();
        for event in events {
            let record = encode(Head::EMPTY, &stream, at, 7, Cause::Report, &event);
            let entry: Entry<RunEvent> = decode(&record).unwrap();
            assert_eq!((&entry.event, entry.at, entry.epoch, entry.cause), (&event, at, 7, Cause::Report));
            assert_eq!(serde_json::to_string(&entry.event).unwrap(), serde_json::to_string(&event).unwrap());
        }
    }
}

/// A random history found that steps started after a critical call had failed, because a person had
/// denied another element of its loop before.
#[test]
fn a_critical_call_that_fails_after_its_loop_was_denied_stops_the_run() {
    let step = |conduct| StepSpec {
        depends_on: vec![],
        class: EffectClass::Safe,
        conduct,
        retries: 0,
        timeout_ms: None,
        critical: false,
        gated: false,
        missing: false,
        optional: false,
        undo: false,
        call: 0,
        condition: Condition::Always,
        elements: None,
        max_parallel: None,
        asks: false,
    };
    let plain = || step(Conduct::Succeeds);
    let spec = PlanSpec {
        steps: vec![
            step(Conduct::ParksFirst(1)),
            StepSpec {
                gated: true,
                ..plain()
            },
            plain(),
            plain(),
            StepSpec {
                condition: Condition::Never,
                ..plain()
            },
            plain(),
            plain(),
            StepSpec {
                asks: true,
                ..plain()
            },
            StepSpec {
                depends_on: vec![5],
                ..plain()
            },
            StepSpec {
                gated: true,
                ..plain()
            },
            StepSpec {
                critical: true,
                gated: true,
                elements: Some(4),
                ..step(Conduct::FailsFirst(1))
            },
        ],
        max_concurrency: 4,
        calls: None,
        per_tool: None,
        same_call: None,
        seconds: None,
        on_failure_continue: false,
        reversed: false,
    };
    let plan = spec.plan();
    let mut history = History::begin(&plan, false);
    let mut world = World::new(&spec, 18_167_993_832_876_712_996);
    world.disturb(&mut history, 10 + 3 * spec.len());
    world.drain(&mut history);
    let place = |wanted: fn(&RunEvent) -> bool| {
        history
            .entries
            .iter()
            .position(|entry| wanted(&entry.event))
    };
    let denied = place(
        |event| matches!(event, RunEvent::ApprovalDenied { step, .. } if step.as_str() == "s10[0]"),
    );
    let failed = place(
        |event| matches!(event, RunEvent::AttemptFailed { step, .. } if step.as_str() == "s10[2]"),
    );
    assert!(denied.is_some() && denied < failed, "{denied:?} {failed:?}");
    check_journal(&plan, &history.entries);
}
