//! What people are asked: by a step, by a tool before it does anything, and by one in the middle of
//! its work.

use crate::plans::plan;
use crate::run_world::{History, person};
use planwright_core::digest::Digest;
use planwright_core::journal::Cause;
use planwright_core::plan::StepIx;
use planwright_core::run::{
    Asked, CallReport, Command, Question, Refusal, Reply, Run, RunEvent, StepError, StepErrorCode,
    StepState, StoredValue,
};
use planwright_core::tool::EffectClass;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

fn only() -> StepIx {
    StepIx::new(0)
}

fn question(schema: Value) -> Question {
    Question {
        key: "n".into(),
        message: "How many?".into(),
        schema,
        url: None,
    }
}

fn asked(count: usize) -> Asked {
    Asked {
        questions: vec![question(json!({"type": "object"})); count],
        state: None,
    }
}

/// A run whose only step is this one.
fn begin(step: Value) -> History {
    let document = json!({"id": "p", "steps": [step]});
    History::begin(&Arc::new(plan(document)), true)
}

/// A run whose only step is in flight.
fn in_flight(class: EffectClass) -> History {
    let mut history = begin(json!({"id": "a", "tool": "t.a"}));
    start(&mut history, class);
    history
}

fn start(history: &mut History, class: EffectClass) {
    let start = Command::Start {
        step: only(),
        tool: "t.a".to_owned().try_into().unwrap(),
        class,
        call: Digest::ZERO,
        facts: None,
    };
    history.give(&start, Cause::Schedule).unwrap();
}

fn report(history: &mut History, answer: CallReport) -> Result<usize, Refusal> {
    let attempt = history.run.step(only()).tally().attempts;
    let command = Command::Report {
        step: only(),
        attempt,
        answer,
    };
    history.give(&command, Cause::Report)
}

fn reply(history: &mut History, replies: Vec<Reply>) -> Result<usize, Refusal> {
    let open = history.run.step(only()).question().unwrap();
    let command = Command::GiveInput {
        step: "a".into(),
        by: person(),
        question: open.digest(),
        replies,
    };
    history.give(&command, Cause::Command)
}

fn values(value: Value) -> Reply {
    let Value::Object(values) = value else {
        panic!("values are an object")
    };
    Reply::Values(values)
}

fn status(history: &History) -> &'static str {
    history.run.step(only()).status().as_str()
}

fn error(history: &History) -> (&str, &str) {
    let StepState::Failed { error, .. } = history.run.step(only()) else {
        panic!("{:?}", history.run.step(only()));
    };
    (error.code.as_str(), &error.message)
}

fn ask(history: &mut History) -> Result<usize, Refusal> {
    let command = Command::AskInput {
        step: only(),
        message: Some("How many?".into()),
    };
    history.give(&command, Cause::Schedule)
}

/// What a step that asks for this comes to when a person answers like that.
fn answered(schema: Value, given: Value) -> Result<Value, ()> {
    let step = json!({"id": "a", "input": {"message": "How many?", "schema": schema}});
    let mut history = begin(step);
    ask(&mut history).unwrap();
    match reply(&mut history, vec![values(given)]) {
        Ok(_) => match history.run.step(only()).value() {
            Some(StoredValue::Inline(value)) => Ok((**value).clone()),
            other => panic!("{other:?}"),
        },
        Err(Refusal::BadInput { .. }) => Err(()),
        Err(refusal) => panic!("{refusal}"),
    }
}

#[test]
fn a_paused_run_asks_and_opens_nothing() {
    let input = json!({"id": "a", "input": {"message": "?", "schema": {"type": "object"}}});
    let mut history = begin(input);
    let pause = Command::Pause { by: person() };
    history.give(&pause, Cause::Command).unwrap();
    assert!(matches!(
        ask(&mut history),
        Err(Refusal::CannotStart { .. })
    ));
    let mut history = begin(json!({"id": "a", "tool": "t.a", "forEach": [1]}));
    history.give(&pause, Cause::Command).unwrap();
    let open = Command::OpenLoop {
        step: only(),
        items: StoredValue::Inline(Arc::new(json!([1]))),
        count: 1,
    };
    assert!(history.give(&open, Cause::Schedule).is_err());
}

#[test]
fn what_was_asked_or_opened_is_not_so_again() {
    let input = json!({"id": "a", "input": {"message": "?", "schema": {"type": "object"}}});
    let mut history = begin(input);
    ask(&mut history).unwrap();
    assert!(matches!(
        ask(&mut history),
        Err(Refusal::CannotStart { .. })
    ));
    let open = Command::OpenLoop {
        step: only(),
        items: StoredValue::Inline(Arc::new(json!([1]))),
        count: 1,
    };
    let mut history = begin(json!({"id": "a", "tool": "t.a", "forEach": [1]}));
    history.give(&open, Cause::Schedule).unwrap();
    assert!(history.give(&open, Cause::Schedule).is_err());
    let mut plain = begin(json!({"id": "a", "tool": "t.a"}));
    assert!(plain.give(&open, Cause::Schedule).is_err());
}

#[test]
fn a_step_that_asks_or_runs_over_a_list_makes_no_call_itself() {
    let steps = [
        json!({"id": "a", "input": {"message": "?", "schema": {"type": "object"}}}),
        json!({"id": "a", "tool": "t.a", "forEach": [1]}),
    ];
    for step in steps {
        let mut history = begin(step);
        let start = Command::Start {
            step: only(),
            tool: "t.a".to_owned().try_into().unwrap(),
            class: EffectClass::Safe,
            call: Digest::ZERO,
            facts: None,
        };
        assert!(history.give(&start, Cause::Schedule).is_err());
    }
}

#[test]
fn a_list_that_is_too_long_fails_the_step_that_runs_over_it() {
    let open = |count: usize| {
        let mut history = begin(json!({"id": "a", "tool": "t.a", "forEach": [1]}));
        let open = Command::OpenLoop {
            step: only(),
            items: StoredValue::Inline(Arc::new(json!("the list"))),
            count,
        };
        let events = history.run.decide(&open, history.now).unwrap();
        let opened = matches!(events[..], [RunEvent::LoopOpened { .. }]);
        if !opened {
            history.give(&open, Cause::Schedule).unwrap();
            assert_eq!(error(&history).0, "too_many_elements");
        }
        opened
    };
    assert!(open(Run::MAX_ELEMENTS));
    assert!(!open(Run::MAX_ELEMENTS + 1));
}

#[test]
fn a_value_that_is_no_object_is_given_under_a_name() {
    let number = || json!({"type": "integer"});
    assert_eq!(answered(number(), json!({"value": 3})), Ok(json!(3)));
    assert_eq!(answered(number(), json!({"value": "three"})), Err(()));
    assert_eq!(answered(number(), json!({"other": 3})), Err(()));
    let either = || json!({"type": ["string", "null"]});
    assert_eq!(answered(either(), json!({"value": "x"})), Ok(json!("x")));
    let chosen = || json!({"enum": ["red", "blue"]});
    assert_eq!(
        answered(chosen(), json!({"value": "red"})),
        Ok(json!("red"))
    );
    assert_eq!(answered(chosen(), json!({"value": "green"})), Err(()));
}

#[test]
fn an_object_is_given_as_it_is() {
    let object = || json!({"type": "object", "required": ["n"]});
    assert_eq!(answered(object(), json!({"n": 1})), Ok(json!({"n": 1})));
    assert_eq!(answered(object(), json!({})), Err(()));
    let maybe = json!({"type": ["object", "null"]});
    assert_eq!(answered(maybe, json!({"n": 1})), Ok(json!({"n": 1})));
    let properties = json!({"properties": {"n": {"type": "integer"}}});
    assert_eq!(answered(properties, json!({"n": 1})), Ok(json!({"n": 1})));
}

#[test]
fn an_answer_that_is_too_long_to_be_kept_is_refused() {
    let object = || json!({"type": "object"});
    let text = |bytes: usize| json!({"n": "x".repeat(bytes)});
    let around = serde_json::to_vec(&[values(text(0))]).unwrap().len();
    let most = StoredValue::MAX_INLINE_BYTES - around;
    assert!(answered(object(), text(most)).is_ok());
    assert!(answered(object(), text(most + 1)).is_err());
}

#[test]
fn a_page_that_was_opened_needs_no_values_and_everything_else_does() {
    let needed = json!({"type": "object", "required": ["n"]});
    let ask = |url: Option<&str>| {
        let mut history = in_flight(EffectClass::Safe);
        let question = Question {
            url: url.map(str::to_owned),
            ..question(needed.clone())
        };
        let asked = Asked {
            questions: vec![question],
            state: None,
        };
        report(&mut history, CallReport::Asked(Box::new(asked))).unwrap();
        reply(&mut history, vec![values(json!({}))]).is_ok()
    };
    assert!(ask(Some("https://example.org")));
    assert!(!ask(None));
}

#[test]
fn a_tool_asks_one_to_twenty_questions_at_once() {
    let ask = |count: usize| {
        let mut history = in_flight(EffectClass::Safe);
        report(&mut history, CallReport::Asked(Box::new(asked(count)))).unwrap();
        status(&history)
    };
    assert_eq!((ask(1), ask(20)), ("awaiting_input", "awaiting_input"));
    assert_eq!((ask(0), ask(21)), ("failed", "failed"));
}

#[test]
fn a_question_that_is_too_long_to_be_shown_is_not_asked() {
    let with = |bytes: usize| {
        let mut long = asked(1);
        long.questions[0].message = "x".repeat(bytes);
        long
    };
    let around = serde_json::to_vec(&with(0)).unwrap().len();
    let ask = |bytes: usize| {
        let mut history = in_flight(EffectClass::Safe);
        report(&mut history, CallReport::Asked(Box::new(with(bytes)))).unwrap();
        status(&history)
    };
    let most = StoredValue::MAX_INLINE_BYTES - around;
    assert_eq!((ask(most), ask(most + 1)), ("awaiting_input", "failed"));
}

#[test]
fn a_tool_that_asks_in_the_middle_waits_and_goes_on_with_the_answer() {
    let mut history = in_flight(EffectClass::Unsafe);
    assert_eq!(history.run.step(only()).question_asked_at(), None);
    history.advance(Duration::from_secs(1));
    let at = history.now;
    assert_eq!(
        report(&mut history, CallReport::Holds(Box::new(asked(1)))),
        Ok(1)
    );
    assert_eq!(status(&history), "awaiting_input");
    assert_eq!(
        history.run.schedule().running().len(),
        1,
        "the call is still in flight"
    );
    assert_eq!(history.run.step(only()).question_asked_at(), Some(at));
    let second = report(&mut history, CallReport::Holds(Box::new(asked(1))));
    assert!(
        matches!(second, Err(Refusal::NothingToAnswer { .. })),
        "one question at a time"
    );
    reply(&mut history, vec![values(json!({}))]).unwrap();
    assert!(history.run.step(only()).question().is_none());
    assert_eq!(history.run.answered(only()).len(), 1);
}

#[test]
fn a_tool_may_not_ask_in_the_middle_of_a_run_that_ends_or_too_often() {
    let hold = |history: &mut History, count: usize| {
        report(history, CallReport::Holds(Box::new(asked(count)))).is_ok()
    };
    let mut history = in_flight(EffectClass::Unsafe);
    let pause = Command::Pause { by: person() };
    history.give(&pause, Cause::Command).unwrap();
    assert!(hold(&mut history, 1), "a paused run lets its calls end");
    let mut history = in_flight(EffectClass::Unsafe);
    assert!(!hold(&mut history, 0) && !hold(&mut history, 21));
    let cancel = Command::Cancel { by: person() };
    history.give(&cancel, Cause::Command).unwrap();
    assert!(!hold(&mut history, 1));
    let mut history = in_flight(EffectClass::Unsafe);
    for _ in 0..10 {
        assert!(hold(&mut history, 1));
        reply(&mut history, vec![Reply::Decline]).unwrap();
    }
    assert!(!hold(&mut history, 1), "it asked ten times");
}

#[test]
fn a_call_that_asked_in_the_middle_in_vain_is_not_made_again_by_itself() {
    let midway = |class: EffectClass| {
        let mut history = in_flight(class);
        let mut long = asked(1);
        long.questions[0].message = "y".repeat(300);
        report(&mut history, CallReport::AskedMidway(Box::new(long))).unwrap();
        history
    };
    let history = midway(EffectClass::Unsafe);
    let StepState::OutcomeUnknown { reason, .. } = history.run.step(only()) else {
        panic!("{:?}", history.run.step(only()));
    };
    assert!(reason.contains("no person answered"), "{reason}");
    let quoted = "y".repeat(200);
    assert!(reason.contains(&quoted) && !reason.contains(&format!("{quoted}y")));
    assert_eq!(status(&midway(EffectClass::Safe)), "awaiting_input");
}

#[test]
fn the_child_that_waits_is_cancelled_with_its_parent() {
    let parked = || CallReport::Parked {
        run: "run_child".parse().unwrap(),
    };
    let mut history = in_flight(EffectClass::Unsafe);
    report(&mut history, parked()).unwrap();
    assert_eq!(status(&history), "awaiting_plan");
    let mut history = in_flight(EffectClass::Unsafe);
    let cancel = Command::Cancel { by: person() };
    history.give(&cancel, Cause::Command).unwrap();
    report(&mut history, parked()).unwrap();
    assert_eq!(status(&history), "cancelled");
}

#[test]
fn a_model_that_says_it_is_done_without_a_call_has_done_nothing() {
    let said = |agent: Value, tools: Value| {
        let document = json!({"id": "p", "toolsRequired": tools, "steps": [
            {"id": "a", "agent": agent},
        ]});
        let mut history = History::begin(&Arc::new(plan(document)), true);
        start(&mut history, EffectClass::Keyed);
        let value = StoredValue::Inline(Arc::new(json!("done")));
        report(&mut history, CallReport::Succeeded(value)).unwrap();
        status(&history)
    };
    let agent = |more: Value| {
        let mut agent = Map::from_iter([("instruction".to_owned(), json!("do it"))]);
        let Value::Object(more) = more else {
            panic!("settings are an object")
        };
        agent.extend(more);
        Value::Object(agent)
    };
    let tools = || json!(["t.a"]);
    assert_eq!(said(agent(json!({})), tools()), "failed");
    assert_eq!(
        said(agent(json!({})), json!([])),
        "completed",
        "there is nothing to call"
    );
    assert_eq!(
        said(agent(json!({"maxCalls": 0})), tools()),
        "completed",
        "it may call nothing"
    );
    assert_eq!(
        said(agent(json!({"executor": "coder"})), tools()),
        "completed",
        "what else a program does cannot be seen"
    );
    assert_eq!(
        said(agent(json!({"converse": true})), tools()),
        "completed",
        "the answer is the work"
    );
}

#[test]
fn pauses_before_retries_differ_between_steps_and_stay_in_their_bounds() {
    let pause = |id: usize| {
        let steps: Vec<Value> = (0..8)
            .map(|n| {
                json!({"id": format!("s{n}"), "tool": "t.a",
                    "retry": {"max": 1, "backoff": 10, "jitter": 0.5}})
            })
            .collect();
        let document = json!({"id": "p", "limits": {"maxConcurrency": 8}, "steps": steps});
        let mut history = History::begin(&Arc::new(plan(document)), true);
        let step = StepIx::new(id);
        let start = Command::Start {
            step,
            tool: "t.a".to_owned().try_into().unwrap(),
            class: EffectClass::Safe,
            call: Digest::ZERO,
            facts: None,
        };
        history.give(&start, Cause::Schedule).unwrap();
        let failed = StepError::new(StepErrorCode::ToolError, "not yet");
        let report = Command::Report {
            step,
            attempt: 1,
            answer: CallReport::Failed(failed.retryable(true)),
        };
        history.give(&report, Cause::Report).unwrap();
        let due = history.run.schedule().next_timer(history.now).unwrap();
        due.since(history.now)
    };
    let pauses: Vec<Duration> = (0..8).map(pause).collect();
    let bounds = Duration::from_secs(5)..=Duration::from_secs(15);
    assert!(
        pauses.iter().all(|pause| bounds.contains(pause)),
        "{pauses:?}"
    );
    let mut different = pauses.clone();
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 4, "{pauses:?}");
    assert_eq!(pauses[0], pause(0), "a replay waits as long");
}
