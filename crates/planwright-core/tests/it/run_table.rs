//! The state tables, looked at from outside: what can follow what, which states can be reached,
//! what an ended run says.

use crate::run_files;
use crate::run_world::{
    BEGIN, Conduct, History, PlanSpec, StepSpec, World, asked, person, value_of,
};
use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::journal::{Cause, Entry};
use planwright_core::plan::StepIx;
use planwright_core::principal::Assurance;
use planwright_core::run::{
    Asked, AskedCall, CallReport, Command, Corrupt, HeldQuestion, Refusal, Reply, Resolution,
    RunEvent, RunState, Shown, StepError, StepErrorCode, StepEvent, StepState, StoredValue, Tally,
};
use planwright_core::time::Timestamp;
use planwright_core::tool::{EffectClass, ToolName};
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

const LATER: Timestamp = Timestamp::from_millis(BEGIN.as_millis() + 1000);

fn tally(attempts: u32) -> Tally {
    Tally {
        attempts,
        failures: 1,
        interruptions: 1,
    }
}

fn value() -> StoredValue {
    StoredValue::Inline(Arc::new(json!("v")))
}

fn states() -> Vec<(&'static str, StepState)> {
    let tally = tally(2);
    let none = Tally::default();
    let error = Box::new(StepError::new(StepErrorCode::ToolError, "no"));
    let awaiting_input = |tally, attempt| StepState::AwaitingInput {
        tally,
        asked_at: BEGIN,
        attempt,
        asked: Box::new(asked()),
    };
    let awaiting = |call| StepState::AwaitingApproval {
        asked_at: BEGIN,
        tally: none,
        call,
        expires_at: Some(LATER),
    };
    let running = |class| StepState::Running {
        tally,
        class,
        started_at: BEGIN,
        deadline: Some(LATER),
        question: None,
    };
    vec![
        ("pending(1)", StepState::Pending { waits_for: 1 }),
        ("pending(2)", StepState::Pending { waits_for: 2 }),
        ("blocked", StepState::Blocked { by: StepIx::new(0) }),
        (
            "ready",
            StepState::Ready {
                tally: none,
                approved: false,
            },
        ),
        (
            "ready, approved",
            StepState::Ready {
                tally: none,
                approved: true,
            },
        ),
        (
            "ready, again",
            StepState::Ready {
                tally,
                approved: true,
            },
        ),
        ("awaiting_approval", awaiting(None)),
        (
            "awaiting_approval of a call",
            awaiting(Some(Box::new(asked_call()))),
        ),
        ("awaiting_input", awaiting_input(none, None)),
        ("awaiting_input, of a call", awaiting_input(tally, Some(2))),
        (
            "looping",
            StepState::Looping {
                opened_at: BEGIN,
                count: 3,
            },
        ),
        (
            "awaiting_plan",
            StepState::AwaitingPlan {
                tally,
                run: "run_child".parse().unwrap(),
            },
        ),
        ("running, safe", running(EffectClass::Safe)),
        ("running, keyed", running(EffectClass::Keyed)),
        ("running, unsafe", running(EffectClass::Unsafe)),
        (
            "running, and asks",
            StepState::Running {
                tally,
                class: EffectClass::Unsafe,
                started_at: BEGIN,
                deadline: Some(LATER),
                question: Some(Box::new(HeldQuestion {
                    asked: asked(),
                    asked_at: BEGIN,
                })),
            },
        ),
        (
            "retry_due",
            StepState::RetryDue {
                tally,
                due_at: LATER,
            },
        ),
        (
            "completed",
            StepState::Completed {
                tally,
                took: Duration::from_secs(1),
                value: value(),
            },
        ),
        (
            "failed",
            StepState::Failed {
                tally,
                took: Duration::from_secs(1),
                error,
            },
        ),
        (
            "denied",
            StepState::Denied {
                reason: "no".into(),
            },
        ),
        (
            "skipped",
            StepState::Skipped {
                reason: "no tool".into(),
            },
        ),
        (
            "cancelled",
            StepState::Cancelled {
                tally,
                reason: "cancelled".into(),
            },
        ),
        (
            "outcome_unknown",
            StepState::OutcomeUnknown {
                tally,
                reason: "lost".into(),
            },
        ),
        ("undone", StepState::Undone { tally }),
    ]
}

fn asked_call() -> AskedCall {
    AskedCall {
        digest: Digest::ZERO,
        tool: ToolName {
            server: "w".into(),
            tool: "call".into(),
        },
        args: value(),
        reason: "why not".into(),
    }
}

fn events<'a>(
    value: &'a StoredValue,
    error: &'a StepError,
    (asked, call): (&'a Asked, &'a AskedCall),
) -> Vec<(&'static str, StepEvent<'a>)> {
    static CHILD: std::sync::LazyLock<RunId> =
        std::sync::LazyLock::new(|| "run_child".parse().unwrap());
    let child: &RunId = &CHILD;
    let started = |attempt| StepEvent::AttemptStarted {
        attempt,
        class: EffectClass::Safe,
        at: LATER,
        deadline: None,
    };
    let requested = |call| StepEvent::ApprovalRequested {
        at: LATER,
        call,
        expires_at: None,
    };
    let failed = |attempt, retry_at| StepEvent::AttemptFailed {
        attempt,
        error,
        retry_at,
        at: LATER,
    };
    vec![
        ("dependency done", StepEvent::DependencyDone),
        (
            "dependency failed",
            StepEvent::DependencyFailed {
                root: StepIx::new(1),
            },
        ),
        (
            "run ended",
            StepEvent::RunEnded {
                reason: "the run ended",
            },
        ),
        ("reused", StepEvent::Reused { value }),
        ("approval requested", requested(None)),
        ("approval of a call requested", requested(Some(call))),
        (
            "approval granted",
            StepEvent::ApprovalGranted { call: None },
        ),
        (
            "approval of the call granted",
            StepEvent::ApprovalGranted {
                call: Some(call.digest),
            },
        ),
        (
            "approval of another call granted",
            StepEvent::ApprovalGranted {
                call: Some(Digest::of_bytes(b"x")),
            },
        ),
        (
            "approval denied",
            StepEvent::ApprovalDenied { reason: "no" },
        ),
        ("attempt 1 started", started(1)),
        ("attempt 3 started", started(3)),
        (
            "attempt 2 succeeded",
            StepEvent::AttemptSucceeded {
                attempt: 2,
                value,
                at: LATER,
            },
        ),
        (
            "attempt 1 succeeded",
            StepEvent::AttemptSucceeded {
                attempt: 1,
                value,
                at: LATER,
            },
        ),
        ("attempt 2 failed", failed(2, None)),
        ("attempt 2 failed, retry", failed(2, Some(LATER))),
        ("attempt 1 failed", failed(1, None)),
        (
            "attempt 2 interrupted",
            StepEvent::AttemptInterrupted { attempt: 2 },
        ),
        (
            "attempt 1 interrupted",
            StepEvent::AttemptInterrupted { attempt: 1 },
        ),
        (
            "attempt 2 cancelled",
            StepEvent::AttemptCancelled { attempt: 2 },
        ),
        (
            "attempt 1 cancelled",
            StepEvent::AttemptCancelled { attempt: 1 },
        ),
        (
            "outcome 2 lost",
            StepEvent::OutcomeLost {
                attempt: 2,
                reason: "lost",
            },
        ),
        (
            "outcome 1 lost",
            StepEvent::OutcomeLost {
                attempt: 1,
                reason: "lost",
            },
        ),
        (
            "child of 2 parked",
            StepEvent::ChildParked {
                attempt: 2,
                run: child,
            },
        ),
        (
            "child of 1 parked",
            StepEvent::ChildParked {
                attempt: 1,
                run: child,
            },
        ),
        ("child resumed", StepEvent::ChildResumed),
        ("undone", StepEvent::Undone),
        ("it happened", StepEvent::Happened { value }),
        ("it did not happen", StepEvent::DidNotHappen),
        ("run again", StepEvent::RunAgain),
        (
            "failed without call",
            StepEvent::FailedWithoutCall { error },
        ),
        ("skipped", StepEvent::Skipped { reason: "no tool" }),
        (
            "loop stopped",
            StepEvent::LoopStopped {
                reason: "another failed",
            },
        ),
        (
            "element failed",
            StepEvent::ElementFailed { index: 1, error },
        ),
        (
            "element denied",
            StepEvent::ElementDenied {
                index: 1,
                reason: "no",
            },
        ),
        (
            "loop opened",
            StepEvent::LoopOpened {
                count: 3,
                at: LATER,
            },
        ),
        ("loop closed", StepEvent::LoopClosed { value, at: LATER }),
        (
            "input requested",
            StepEvent::InputRequested {
                attempt: None,
                asked,
                at: LATER,
            },
        ),
        (
            "attempt 2 asks",
            StepEvent::InputRequested {
                attempt: Some(2),
                asked,
                at: LATER,
            },
        ),
        (
            "attempt 1 asks",
            StepEvent::InputRequested {
                attempt: Some(1),
                asked,
                at: LATER,
            },
        ),
        (
            "attempt 2 asks and waits",
            StepEvent::QuestionHeld {
                attempt: 2,
                asked,
                at: LATER,
            },
        ),
        (
            "attempt 1 asks and waits",
            StepEvent::QuestionHeld {
                attempt: 1,
                asked,
                at: LATER,
            },
        ),
        (
            "attempt 2 is answered",
            StepEvent::QuestionAnswered { attempt: 2 },
        ),
        (
            "attempt 1 is answered",
            StepEvent::QuestionAnswered { attempt: 1 },
        ),
        ("input given", StepEvent::InputGiven { value, at: LATER }),
        (
            "input declined",
            StepEvent::InputDeclined { reason: "declined" },
        ),
    ]
}

fn describe(state: &StepState) -> String {
    let Tally {
        attempts,
        failures,
        interruptions,
    } = state.tally();
    let detail = match state {
        StepState::Pending { waits_for } => format!("({waits_for})"),
        StepState::Ready { approved: true, .. } => ", approved".to_owned(),
        _ => String::new(),
    };
    let counts = if attempts == 0 {
        String::new()
    } else {
        format!(" [{attempts} attempts, {failures} failed, {interruptions} interrupted]")
    };
    format!("{}{detail}{counts}", state.status().as_str())
}

#[test]
fn the_step_table_is_what_is_written_down() {
    let value = value();
    let error = StepError::new(StepErrorCode::ToolError, "no");
    let asked = asked();
    let mut text = String::from(
        "What can happen to a step: state, event, the state that follows. Running states have made 2 attempts.\n\
         Every pair that is not listed cannot be in a journal. Rewritten with UPDATE_DOCS=1.\n",
    );
    for (name, state) in states() {
        writeln!(text, "\n{name}").unwrap();
        let mut accepted = 0;
        for (event_name, event) in events(&value, &error, (&asked, &asked_call())) {
            if let Some(next) = state.after(&event) {
                writeln!(text, "  {event_name:<24} -> {}", describe(&next)).unwrap();
                accepted += 1;
            }
        }
        if accepted == 0 {
            writeln!(text, "  (nothing)").unwrap();
        }
    }
    run_files::check("scenarios/step_table.txt", &text);
}

#[test]
fn a_step_that_has_ended_accepts_nothing() {
    let value = value();
    let error = StepError::new(StepErrorCode::ToolError, "no");
    let asked = asked();
    for (name, state) in states()
        .into_iter()
        .filter(|(_, state)| state.is_terminal())
    {
        for (event_name, event) in events(&value, &error, (&asked, &asked_call())) {
            // More news about dependencies leaves a blocked step blocked, by the step that failed
            // first. What completed may be taken back.
            if matches!(
                (&state, &event),
                (StepState::Completed { .. }, StepEvent::Undone)
            ) {
                continue;
            }
            let next = state.after(&event);
            let blocked = matches!(state, StepState::Blocked { .. });
            assert!(
                next.is_none() || blocked && next == Some(state.clone()),
                "{name} accepts {event_name}"
            );
        }
    }
}

/// Goes through the histories of many seeds and collects what states were seen.
fn seen_states() -> (BTreeSet<&'static str>, BTreeSet<String>) {
    let mut steps = BTreeSet::new();
    let mut runs = BTreeSet::new();
    for seed in 0..300 {
        let mut dice = planwright_testing::dice::Dice::new(seed);
        let spec = PlanSpec::random(&mut dice, 6);
        let mut history = History::begin(&spec.plan(), true);
        let mut world = World::new(&spec, seed);
        world.disturb(&mut history, 20);
        world.drain(&mut history);
        world.undo(&mut history);
        for count in 1..=history.entries.len() {
            let prefix = history.fold(count);
            steps.extend(
                prefix
                    .run
                    .indices()
                    .map(|ix| prefix.run.step(ix).status().as_str()),
            );
            let state = format!("{:?}", prefix.run.state());
            runs.insert(
                state
                    .split([' ', '{'])
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
    }
    (steps, runs)
}

#[test]
fn every_state_can_be_reached() {
    let (steps, runs) = seen_states();
    let all: BTreeSet<&str> = states()
        .iter()
        .map(|(_, state)| state.status().as_str())
        .collect();
    let later = BTreeSet::new();
    assert_eq!(steps, &all - &later);
    let all = [
        "Running",
        "Paused",
        "Stopping",
        "Cancelling",
        "Completed",
        "Failed",
        "Cancelled",
    ];
    assert_eq!(runs, all.into_iter().map(str::to_owned).collect());
}

/// Four steps: one completes, one fails, one is lost, one is gated.
fn ended(how: RunState) -> History {
    let mut spec = PlanSpec::of(vec![
        StepSpec::plain(&[]),
        StepSpec::plain(&[]),
        StepSpec::plain(&[0]),
    ]);
    spec.steps[2].gated = true;
    spec.steps[1].class = EffectClass::Unsafe;
    spec.steps[1].conduct = Conduct::LosesFirst(1);
    if matches!(how, RunState::Failed { .. }) {
        spec.steps[0].conduct = Conduct::FailsForGood;
    }
    let mut history = History::begin(&spec.plan(), true);
    let mut world = World::new(&spec, 1);
    if how == RunState::Cancelled {
        world.turn(&mut history);
        world.let_one_answer(&mut history);
        history
            .give(&Command::Cancel { by: person() }, Cause::Command)
            .unwrap();
    }
    world.drain(&mut history);
    assert_eq!(
        std::mem::discriminant(history.run.state()),
        std::mem::discriminant(&how)
    );
    history
}

fn ends() -> [History; 3] {
    let failed = StepIx::new(0);
    [
        RunState::Completed,
        RunState::Failed { failed },
        RunState::Cancelled,
    ]
    .map(ended)
}

fn all_commands(step: StepIx) -> Vec<Command> {
    let by = person();
    let shown = Shown::Version(1);
    let name = format!("s{}", step.index());
    let tool = ToolName {
        server: "w".into(),
        tool: "t0".into(),
    };
    let report = |answer| Command::Report {
        step,
        attempt: 1,
        answer,
    };
    let resolve = |resolution| Command::Resolve {
        step: name.clone(),
        by: person(),
        resolution,
    };
    vec![
        Command::Start {
            step,
            tool,
            class: EffectClass::Safe,
            call: Digest::ZERO,
            facts: None,
        },
        Command::Fail {
            step,
            error: StepError::new("x".into(), "x"),
        },
        Command::Skip {
            step,
            reason: "x".into(),
        },
        report(CallReport::Succeeded(value())),
        report(CallReport::Failed(StepError::new("x".into(), "x"))),
        report(CallReport::NotMade),
        report(CallReport::Lost { reason: "x".into() }),
        report(CallReport::Asked(Box::new(asked()))),
        report(CallReport::Holds(Box::new(asked()))),
        report(CallReport::AskedMidway(Box::new(asked()))),
        Command::OpenLoop {
            step,
            items: value(),
            count: 1,
        },
        Command::CloseLoop {
            step,
            value: value(),
        },
        Command::AskInput {
            step,
            message: None,
        },
        Command::GiveInput {
            step: name.clone(),
            by: by.clone(),
            question: asked().digest(),
            replies: vec![Reply::Decline],
        },
        Command::Tick,
        Command::Recover,
        Command::RecoverOthers {
            carried: Vec::new(),
        },
        Command::AskApprovals,
        Command::Approve {
            step: name.clone(),
            by: by.clone(),
            assurance: Assurance::Terminal,
            shown,
        },
        Command::Deny {
            step: name.clone(),
            by: by.clone(),
            shown,
            reason: "x".into(),
        },
        resolve(Resolution::Happened { value: value() }),
        resolve(Resolution::DidNotHappen),
        resolve(Resolution::RunAgain),
        Command::Pause { by: by.clone() },
        Command::Resume { by: by.clone() },
        Command::Cancel { by },
        Command::Settle,
        Command::ResumeChildren,
        report(CallReport::Parked {
            run: "run_child".parse().unwrap(),
        }),
    ]
}

fn all_events(history: &History, ix: StepIx) -> Vec<RunEvent> {
    let step = history.run.plan().step_id(ix).clone();
    let attempt = history.run.step(ix).tally().attempts;
    let by = person();
    let error = StepError::new("x".into(), "x");
    let reason = "x".to_owned();
    let tool = ToolName {
        server: "w".into(),
        tool: "t0".into(),
    };
    let steps_digest = history.run.steps_digest();
    let resolved = |resolution| RunEvent::OutcomeResolved {
        step: step.clone(),
        resolution,
        by: person(),
    };
    vec![
        history.entries[0].event.clone(),
        RunEvent::ResultReused {
            step: step.clone(),
            value: value(),
        },
        RunEvent::AttemptStarted {
            step: step.clone(),
            attempt: attempt + 1,
            tool,
            class: EffectClass::Safe,
            call: Digest::ZERO,
        },
        RunEvent::AttemptSucceeded {
            step: step.clone(),
            attempt,
            value: value(),
        },
        RunEvent::AttemptFailed {
            step: step.clone(),
            attempt,
            error: error.clone(),
            retry_at: None,
        },
        RunEvent::AttemptFailed {
            step: step.clone(),
            attempt,
            error: error.clone(),
            retry_at: Some(LATER),
        },
        RunEvent::AttemptInterrupted {
            step: step.clone(),
            attempt,
            reason: reason.clone(),
        },
        RunEvent::AttemptCancelled {
            step: step.clone(),
            attempt,
        },
        RunEvent::OutcomeLost {
            step: step.clone(),
            attempt,
            reason: reason.clone(),
        },
        RunEvent::ChildParked {
            step: step.clone(),
            attempt,
            run: "run_child".parse().unwrap(),
        },
        RunEvent::ChildResumed { step: step.clone() },
        // No undo was ordered.
        RunEvent::StepUndone {
            step: step.clone(),
            run: "run_undo".parse().unwrap(),
        },
        resolved(Resolution::Happened { value: value() }),
        resolved(Resolution::DidNotHappen),
        resolved(Resolution::RunAgain),
        RunEvent::StepFailed {
            step: step.clone(),
            error,
        },
        RunEvent::StepSkipped {
            step: step.clone(),
            reason: reason.clone(),
            by: None,
        },
        RunEvent::ApprovalRequested {
            step: step.clone(),
            call: None,
            expires_at: None,
        },
        RunEvent::ApprovalGranted {
            step: step.clone(),
            by: by.clone(),
            assurance: Assurance::Terminal,
            call: None,
        },
        RunEvent::ApprovalDenied {
            step: step.clone(),
            by: by.clone(),
            reason,
        },
        RunEvent::LoopOpened {
            step: step.clone(),
            items: value(),
            count: 1,
        },
        RunEvent::LoopClosed {
            step: step.clone(),
            value: value(),
        },
        RunEvent::InputRequested {
            step: step.clone(),
            attempt: None,
            asked: Box::new(asked()),
            held: false,
        },
        RunEvent::InputRequested {
            step: step.clone(),
            attempt: Some(attempt),
            asked: Box::new(asked()),
            held: false,
        },
        RunEvent::InputRequested {
            step: step.clone(),
            attempt: Some(attempt),
            asked: Box::new(asked()),
            held: true,
        },
        RunEvent::InputGiven {
            step: step.clone(),
            attempt: None,
            by: by.clone(),
            replies: vec![Reply::Decline],
        },
        RunEvent::InputGiven {
            step,
            attempt: Some(attempt),
            by: by.clone(),
            replies: vec![Reply::Decline],
        },
        RunEvent::RunPaused { by: by.clone() },
        RunEvent::RunResumed { by: by.clone() },
        RunEvent::CancelRequested { by },
        RunEvent::RunCompleted {
            steps_digest,
            failures: 0,
        },
        RunEvent::RunFailed { steps_digest },
        RunEvent::RunCancelled { steps_digest },
    ]
}

fn apply_next(history: &History, event: RunEvent) -> (Result<(), Corrupt>, History) {
    let mut history = history.clone();
    let entry = Entry {
        seq: history.run.seq() + 1,
        at: history.now,
        epoch: 1,
        cause: Cause::Command,
        event,
    };
    (history.run.apply(&entry), history)
}

#[test]
fn an_ended_run_refuses_every_command_or_ignores_it() {
    for history in ends() {
        for command in history.run.plan().indices().flat_map(all_commands) {
            match history.run.decide(&command, LATER) {
                Ok(events) => assert!(events.is_empty(), "{command:?} led to {events:?}"),
                Err(refusal) => assert!(matches!(refusal, Refusal::RunEnded { .. }), "{refusal}"),
            }
        }
    }
}

#[test]
fn no_event_can_follow_the_end_of_a_run() {
    for history in ends() {
        for ix in history.run.plan().indices() {
            for event in all_events(&history, ix) {
                let (applied, after) = apply_next(&history, event.clone());
                assert!(
                    applied.is_err(),
                    "{event:?} follows the end ({})",
                    history.run.status().as_str()
                );
                assert_eq!(
                    after.run.seq(),
                    history.run.seq(),
                    "a refused entry changes nothing"
                );
                assert_eq!(after.outcome(), history.outcome());
            }
        }
    }
}

#[test]
fn entries_must_follow_each_other_and_name_steps_the_plan_has() {
    let mut history = History::begin(&PlanSpec::of(vec![StepSpec::plain(&[])]).plan(), true);
    let unknown: planwright_core::id::StepId = "nowhere".parse().unwrap();
    let mut named = 0;
    for event in all_events(&history, StepIx::new(0)) {
        let mut json = serde_json::to_value(&event).unwrap();
        let fields = json
            .as_object_mut()
            .and_then(|tagged| tagged.values_mut().next())
            .unwrap();
        if fields.get("step").is_none() {
            continue;
        }
        fields["step"] = json!(unknown.as_str());
        named += 1;
        let event: RunEvent = serde_json::from_value(json).unwrap();
        let (applied, _) = apply_next(&history, event.clone());
        assert!(
            matches!(applied, Err(Corrupt::UnknownStep { .. })),
            "{event:?}: {applied:?}"
        );
    }
    assert_eq!(named, 26, "every event about a step was tried");
    let entry = |seq| Entry {
        seq,
        at: BEGIN,
        epoch: 1,
        cause: Cause::Command,
        event: RunEvent::RunPaused { by: person() },
    };
    assert_eq!(
        history.run.apply(&entry(1)),
        Err(Corrupt::Gap { last: 1, found: 1 })
    );
    assert_eq!(
        history.run.apply(&entry(3)),
        Err(Corrupt::Gap { last: 1, found: 3 })
    );
    assert_eq!(history.run.apply(&entry(2)), Ok(()));
}

#[test]
fn an_outcome_that_is_not_in_question_cannot_be_resolved() {
    let history = History::begin(&PlanSpec::of(vec![StepSpec::plain(&[])]).plan(), true);
    for resolution in [
        Resolution::DidNotHappen,
        Resolution::RunAgain,
        Resolution::Happened { value: value() },
    ] {
        let step = history.run.plan().step_id(StepIx::new(0)).clone();
        let event = RunEvent::OutcomeResolved {
            step,
            resolution,
            by: person(),
        };
        let (applied, _) = apply_next(&history, event.clone());
        assert!(
            matches!(applied, Err(Corrupt::StepTransition { .. })),
            "{event:?}: {applied:?}"
        );
    }
}

#[test]
fn a_gated_step_that_is_ready_does_not_start_before_anybody_was_asked() {
    let mut spec = PlanSpec::of(vec![StepSpec::plain(&[])]);
    spec.steps[0].gated = true;
    let history = History::begin(&spec.plan(), true);
    assert_eq!(history.run.step(StepIx::new(0)).status().as_str(), "ready");
    let start = all_commands(StepIx::new(0)).remove(0);
    assert!(matches!(
        history.run.decide(&start, LATER),
        Err(Refusal::CannotStart { .. })
    ));
}

#[test]
fn a_run_ends_only_when_nothing_is_left_to_do() {
    let spec = PlanSpec::of(vec![StepSpec::plain(&[]), StepSpec::plain(&[0])]);
    let mut history = History::begin(&spec.plan(), true);
    let mut world = World::new(&spec, 1);
    for in_flight in [false, true] {
        let steps_digest = history.run.steps_digest();
        let completed = RunEvent::RunCompleted {
            steps_digest,
            failures: 0,
        };
        assert!(
            apply_next(&history, completed).0.is_err(),
            "completed with open steps"
        );
        history
            .give(&Command::Cancel { by: person() }, Cause::Command)
            .unwrap();
        let cancelled = apply_next(&history, RunEvent::RunCancelled { steps_digest }).0;
        assert_eq!(
            cancelled.is_err(),
            in_flight,
            "cancelled with calls in flight: {cancelled:?}"
        );
        history = History::begin(&spec.plan(), true);
        world.turn(&mut history);
    }
}

#[test]
fn a_run_with_a_denied_critical_step_cannot_have_completed() {
    let mut spec = PlanSpec::of(vec![StepSpec::plain(&[])]);
    spec.steps[0].gated = true;
    let mut history = History::begin(&spec.plan(), true);
    history
        .give(&Command::AskApprovals, Cause::Schedule)
        .unwrap();
    let shown = Shown::Version(1);
    let deny = Command::Deny {
        step: "s0".into(),
        by: person(),
        shown,
        reason: "no".into(),
    };
    history.give(&deny, Cause::Command).unwrap();
    let steps_digest = history.run.steps_digest();
    assert!(
        apply_next(
            &history,
            RunEvent::RunCompleted {
                steps_digest,
                failures: 0
            }
        )
        .0
        .is_err()
    );
    assert_eq!(
        apply_next(&history, RunEvent::RunFailed { steps_digest }).0,
        Ok(())
    );
}

#[test]
fn an_end_with_another_digest_is_corrupt() {
    let spec = PlanSpec::of(vec![StepSpec::plain(&[])]);
    let mut history = History::begin(&spec.plan(), true);
    let mut world = World::new(&spec, 1);
    world.turn(&mut history);
    history
        .give(
            &Command::Report {
                step: StepIx::new(0),
                attempt: 1,
                answer: CallReport::Succeeded(value_of(&history.run, StepIx::new(0))),
            },
            Cause::Report,
        )
        .unwrap();
    let (applied, after) = apply_next(
        &history,
        RunEvent::RunCompleted {
            steps_digest: Digest::ZERO,
            failures: 0,
        },
    );
    assert!(matches!(applied, Err(Corrupt::StateMismatch { .. })));
    assert_eq!(after.run.state(), &RunState::Running);
}
