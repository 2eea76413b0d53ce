//! Looking at a run before it ends: when that is due, what follows from what was said, and the
//! bounds with which the work goes on.

use crate::plans::plan;
use crate::run_world::{History, person, started};
use planwright_core::adjust::{Reflected, StepProgress};
use planwright_core::digest::Digest;
use planwright_core::journal::Cause;
use planwright_core::model::{ModelRole, ModelUse, TokenUsage};
use planwright_core::plan::{Bounds, Limits, Plan};
use planwright_core::run::{
    CallReport, Command, CriterionCheck, Look, Reflection, ReflectionWish, Refusal, Resolution,
    RunEvent, Spent, StepError, StepErrorCode, StoredValue, agent_tool,
};
use planwright_core::status::StepStatus;
use planwright_core::tool::EffectClass;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Two steps: what `b` does comes after `a`.
fn two() -> Value {
    json!({"id": "p", "steps": [
        {"id": "a", "tool": "t.a"},
        {"id": "b", "tool": "t.b", "dependsOn": ["a"], "args": {"x": 1}},
    ]})
}

fn bounds() -> Reflection {
    Reflection {
        max_cycles: 3,
        max_replans: 1,
        ..Reflection::default()
    }
}

fn begin_guarded(document: Value, reflection: Option<Reflection>, guards: bool) -> History {
    let plan: Arc<Plan> = Arc::new(plan(document));
    let mut started = started(&plan, guards);
    if let RunEvent::RunStarted {
        reflection: own, ..
    } = &mut started
    {
        *own = reflection.map(Box::new);
    }
    History::begin_with(&plan, "run_looked".parse().unwrap(), started)
}

fn begin(document: Value, reflection: Reflection) -> History {
    begin_guarded(document, Some(reflection), true)
}

fn start_as(history: &mut History, step: &str, class: EffectClass) {
    let ix = history.run.find(step).unwrap();
    let tool = history.run.definition(ix).tool.clone();
    let tool = tool.map_or_else(agent_tool, |tool| tool.try_into().unwrap());
    let command = Command::Start {
        step: ix,
        tool,
        class,
        call: Digest::of_bytes(step.as_bytes()),
        facts: None,
    };
    history.give(&command, Cause::Schedule).unwrap();
}

fn start(history: &mut History, step: &str) {
    start_as(history, step, EffectClass::Safe);
}

fn report(history: &mut History, step: &str, answer: CallReport) {
    let ix = history.run.find(step).unwrap();
    let attempt = history.run.step(ix).tally().attempts;
    let command = Command::Report {
        step: ix,
        attempt,
        answer,
    };
    history.give(&command, Cause::Report).unwrap();
}

fn value(value: Value) -> StoredValue {
    StoredValue::Inline(Arc::new(value))
}

fn succeed(history: &mut History, step: &str) {
    start(history, step);
    report(history, step, CallReport::Succeeded(value(json!("seen"))));
}

fn fail(history: &mut History, step: &str) {
    start(history, step);
    let error = StepError::new(StepErrorCode::ToolError, "no");
    report(history, step, CallReport::Failed(error));
}

/// A run of which `a` succeeded and `b` failed.
fn failed(reflection: Reflection) -> History {
    let mut history = begin(two(), reflection);
    succeed(&mut history, "a");
    fail(&mut history, "b");
    history
}

/// A run of which every step succeeded.
fn succeeded(reflection: Reflection) -> History {
    let mut history = begin(two(), reflection);
    succeed(&mut history, "a");
    succeed(&mut history, "b");
    history
}

fn next(history: &History) -> Option<Look> {
    history.run.reflection().next_look()
}

fn settle(history: &mut History) -> &'static str {
    history.give(&Command::Settle, Cause::Schedule).unwrap();
    history.run.status().as_str()
}

fn used(tokens: u64) -> ModelUse {
    ModelUse {
        role: ModelRole::Reflector,
        model: "some/model".into(),
        usage: TokenUsage {
            input: tokens,
            output: 0,
            cached: 0,
            estimated: false,
        },
        cost: None,
    }
}

fn answered(assessment: &str, adjustments: &Value) -> Reflected {
    let text = json!({"assessment": assessment, "reasoning": "it looks elsewhere",
        "adjustments": adjustments});
    Reflected::read(&text.to_string(), &Bounds::default()).unwrap()
}

fn reflect_with(
    history: &mut History,
    reflected: Reflected,
    problem: Option<&str>,
) -> Result<usize, Refusal> {
    let command = Command::Reflect {
        reflected: Box::new(reflected),
        used: vec![used(10)],
        problem: problem.map(str::to_owned),
    };
    history.give(&command, Cause::Report)
}

fn reflect(history: &mut History, assessment: &str, adjustments: &Value) {
    reflect_with(history, answered(assessment, adjustments), None).unwrap();
}

fn retry_b() -> Value {
    json!([{"type": "retry", "step": "b", "args": {"x": 2}}])
}

fn adjust(history: &mut History, replanned: bool) -> Result<usize, Refusal> {
    let command = Command::Adjust {
        version: 2,
        replanned,
        used: vec![used(5)],
    };
    history.give(&command, Cause::Report)
}

fn abandon(history: &mut History) -> Result<usize, Refusal> {
    let command = Command::Abandon {
        reason: "no plan came back".into(),
        used: vec![used(5)],
    };
    history.give(&command, Cause::Report)
}

fn progress(history: &History, step: &str) -> StepProgress {
    let adjustable = history.run.reflection().adjustable();
    adjustable.progress(&step.parse().unwrap())
}

#[test]
fn a_run_that_nothing_reflects_on_ends_at_once() {
    let mut history = begin_guarded(two(), None, true);
    succeed(&mut history, "a");
    fail(&mut history, "b");
    assert_eq!(next(&history), None);
    assert_eq!(settle(&mut history), "failed");
}

#[test]
fn a_failed_run_is_looked_at_before_it_ends() {
    let mut history = failed(bounds());
    assert_eq!(next(&history), Some(Look::Reflect));
    assert_eq!(settle(&mut history), "executing");
}

#[test]
fn a_run_is_not_looked_at_while_there_is_something_to_do() {
    let mut history = begin(two(), bounds());
    assert_eq!(next(&history), None, "nothing has begun");
    succeed(&mut history, "a");
    assert_eq!(next(&history), None, "a step is left");
    start(&mut history, "b");
    assert_eq!(next(&history), None, "a call is in flight");
}

#[test]
fn a_failure_is_looked_at_when_the_last_call_has_come_back() {
    let steps =
        json!({"id": "p", "steps": [{"id": "a", "tool": "t.a"}, {"id": "b", "tool": "t.b"}]});
    let mut history = begin(steps, bounds());
    start(&mut history, "a");
    fail(&mut history, "b");
    assert_eq!(next(&history), None, "the call of `a` is in flight");
    report(&mut history, "a", CallReport::Succeeded(value(json!(1))));
    assert_eq!(next(&history), Some(Look::Reflect));
}

#[test]
fn what_is_left_of_a_paused_run_is_looked_at_like_any_other() {
    let mut history = begin(two(), bounds());
    succeed(&mut history, "a");
    start(&mut history, "b");
    history
        .give(&Command::Pause { by: person() }, Cause::Command)
        .unwrap();
    assert_eq!(next(&history), None);
    report(&mut history, "b", CallReport::Succeeded(value(json!(1))));
    assert_eq!(next(&history), Some(Look::Reflect));
}

#[test]
fn a_cancelled_run_is_not_looked_at() {
    let mut history = begin(two(), bounds());
    start(&mut history, "a");
    let cancel = Command::Cancel { by: person() };
    history.give(&cancel, Cause::Command).unwrap();
    let error = StepError::new(StepErrorCode::ToolError, "no");
    report(&mut history, "a", CallReport::Failed(error));
    assert_eq!(next(&history), None);
    assert_eq!(settle(&mut history), "cancelled");
    assert_eq!(next(&history), None);
}

#[test]
fn what_went_well_is_looked_at_only_at_the_end_of_the_first_run() {
    assert_eq!(next(&succeeded(bounds())), Some(Look::Reflect));
    let later = Reflection {
        cycles: 1,
        ..bounds()
    };
    let mut history = succeeded(later.clone());
    assert_eq!(next(&history), None);
    assert_eq!(settle(&mut history), "completed");
    assert_eq!(
        next(&failed(later)),
        Some(Look::Reflect),
        "a failure is looked at in every run"
    );
}

#[test]
fn where_only_failures_are_looked_at_a_run_that_went_well_just_ends() {
    let only = Reflection {
        failures_only: true,
        ..bounds()
    };
    assert_eq!(next(&succeeded(only.clone())), None);
    assert_eq!(next(&failed(only)), Some(Look::Reflect));
}

#[test]
fn a_run_is_looked_at_only_as_often_as_its_bounds_say() {
    let at = |cycles| {
        next(&failed(Reflection {
            cycles,
            max_replans: 0,
            ..bounds()
        }))
    };
    assert_eq!(at(2), Some(Look::Reflect));
    assert_eq!((at(3), at(4)), (None, None));
    let never = Reflection {
        max_cycles: 0,
        ..bounds()
    };
    assert_eq!(next(&succeeded(never)), None);
}

#[test]
fn a_failed_run_that_may_not_be_looked_at_is_planned_anew_once() {
    let replans = Reflection {
        max_cycles: 0,
        ..bounds()
    };
    assert_eq!(next(&failed(replans.clone())), Some(Look::Replan));
    assert_eq!(next(&succeeded(replans.clone())), None);
    let refused = [
        Reflection {
            replans: 1,
            ..replans.clone()
        },
        Reflection {
            replans: 2,
            ..replans.clone()
        },
        Reflection {
            max_replans: 3,
            replanned: true,
            ..replans.clone()
        },
        Reflection {
            max_tokens: Some(0),
            ..replans.clone()
        },
    ];
    for reflection in refused {
        assert_eq!(next(&failed(reflection.clone())), None, "{reflection:?}");
    }
    let more = Reflection {
        max_replans: 2,
        replans: 1,
        ..replans
    };
    assert_eq!(next(&failed(more)), Some(Look::Replan));
}

#[test]
fn no_model_is_asked_once_the_tokens_are_used_up() {
    let with = |max_tokens, tokens| {
        failed(Reflection {
            max_tokens: Some(max_tokens),
            spent: Spent {
                tokens,
                ..Spent::default()
            },
            ..bounds()
        })
    };
    let left = |history: &History| history.run.reflection().tokens_left();
    let some = with(100, 99);
    assert_eq!((left(&some), next(&some)), (Some(1), Some(Look::Reflect)));
    for spent in [100, 101] {
        let none = with(100, spent);
        assert_eq!((left(&none), next(&none)), (Some(0), None));
    }
}

#[test]
fn the_smaller_of_two_bounds_says_how_many_tokens_are_left() {
    let budgeted = || {
        let mut document = two();
        document["limits"] = json!({"budget": {"tokens": 50}});
        document
    };
    let own = |max_tokens| Reflection {
        max_tokens,
        ..bounds()
    };
    let left = |history: &History| history.run.reflection().tokens_left();
    assert_eq!(left(&begin(two(), own(None))), None);
    assert_eq!(left(&begin(two(), own(Some(70)))), Some(70));
    assert_eq!(left(&begin(budgeted(), own(None))), Some(50));
    assert_eq!(left(&begin(budgeted(), own(Some(70)))), Some(50));
    assert_eq!(left(&begin(budgeted(), own(Some(30)))), Some(30));
    assert_eq!(left(&begin_guarded(budgeted(), None, true)), Some(50));
    let unguarded = begin_guarded(budgeted(), Some(own(Some(70))), false);
    assert_eq!(left(&unguarded), Some(70), "the plan's budget is off");
    let mut history = begin(budgeted(), own(None));
    let note = RunEvent::ModelUsed {
        step: None,
        used: used(20),
    };
    history.write(note, Cause::Report);
    assert_eq!(left(&history), Some(30));
}

#[test]
fn what_is_on_track_ends_as_it_would_have() {
    for word in ["on_track", "complete", "failed"] {
        let mut history = failed(bounds());
        reflect(&mut history, word, &json!([]));
        assert_eq!(next(&history), None, "{word}");
        assert_eq!(settle(&mut history), "failed", "{word}");
        assert_eq!(history.run.reflection().why_given_up(), None);
    }
    for word in ["on_track", "complete"] {
        let mut history = succeeded(bounds());
        reflect(&mut history, word, &json!([]));
        assert_eq!(settle(&mut history), "completed", "{word}");
    }
}

#[test]
fn a_run_in_which_nothing_failed_fails_if_the_reflector_says_so() {
    for word in ["failed", "off_track", "needs_adjustment"] {
        let mut history = succeeded(bounds());
        reflect(&mut history, word, &json!([]));
        assert_eq!(history.run.status().as_str(), "failed");
        let why = history.run.reflection().why_given_up().unwrap();
        let said = word.replace('_', " ");
        assert_eq!(why, format!("{said}: it looks elsewhere"));
    }
    let mut history = succeeded(bounds());
    let silent = Reflected {
        reasoning: String::new(),
        ..answered("off_track", &json!([]))
    };
    reflect_with(&mut history, silent, None).unwrap();
    assert_eq!(history.run.reflection().why_given_up(), Some("off track"));
}

#[test]
fn what_was_said_is_kept_with_its_number() {
    let mut history = failed(Reflection {
        cycles: 1,
        ..bounds()
    });
    assert_eq!(history.run.reflection().looked_at(), None);
    let tokens = history.run.tokens();
    reflect(&mut history, "off_track", &retry_b());
    let looked = history.run.reflection().looked_at().unwrap();
    assert_eq!(looked.cycle, 2, "counted over all runs of the work");
    assert_eq!(looked.reasoning, "it looks elsewhere");
    assert_eq!(looked.adjustments.len(), 1);
    assert_eq!(history.run.tokens(), tokens + 10);
}

#[test]
fn a_change_that_was_asked_for_is_made_before_the_run_ends() {
    for word in ["needs_adjustment", "off_track"] {
        let mut history = failed(bounds());
        reflect(&mut history, word, &retry_b());
        assert_eq!(next(&history), Some(Look::Adjust), "{word}");
        assert_eq!(settle(&mut history), "executing");
        let again = reflect_with(&mut history, answered(word, &retry_b()), None);
        assert!(matches!(again, Err(Refusal::NothingToReflectOn { .. })));
        assert!(
            adjust(&mut history, true).is_err(),
            "it was not planned anew"
        );
        adjust(&mut history, false).unwrap();
        assert_eq!(history.run.status().as_str(), "adjusted");
        assert!(!history.run.reflection().was_replanned());
        assert_eq!(next(&history), None);
    }
}

#[test]
fn changes_that_were_not_asked_for_are_not_made() {
    let mut history = failed(bounds());
    let mut reflected = answered("needs_adjustment", &retry_b());
    reflected.assessment = answered("on_track", &json!([])).assessment;
    reflect_with(&mut history, reflected, None).unwrap();
    assert_eq!(next(&history), None);
    assert!(adjust(&mut history, false).is_err());
}

#[test]
fn a_failure_without_proposals_is_planned_anew_where_that_is_allowed() {
    let mut history = failed(bounds());
    reflect(&mut history, "off_track", &json!([]));
    assert_eq!(next(&history), Some(Look::Replan));
    assert!(adjust(&mut history, false).is_err());
    adjust(&mut history, true).unwrap();
    assert!(history.run.reflection().was_replanned());

    let mut history = failed(Reflection {
        max_replans: 0,
        ..bounds()
    });
    reflect(&mut history, "off_track", &json!([]));
    assert_eq!(history.run.status().as_str(), "failed");
    assert_eq!(
        history.run.reflection().why_given_up(),
        Some("off track: it looks elsewhere")
    );
}

#[test]
fn adjustments_that_cannot_be_made_end_the_run_and_say_why() {
    let completed = json!([{"type": "modify", "step": "a", "args": {}}]);
    let mut history = failed(bounds());
    reflect(&mut history, "needs_adjustment", &completed);
    assert_eq!(history.run.status().as_str(), "failed");
    let why = history.run.reflection().why_given_up().unwrap();
    assert!(why.starts_with("the adjustments cannot be made: "), "{why}");

    let mut history = failed(bounds());
    let reflected = answered("needs_adjustment", &retry_b());
    reflect_with(&mut history, reflected, Some("the tool is gone")).unwrap();
    let why = history.run.reflection().why_given_up();
    assert_eq!(
        why,
        Some("the adjustments cannot be made: the tool is gone")
    );
}

#[test]
fn a_change_that_is_due_can_be_abandoned_and_nothing_else() {
    let mut early = failed(bounds());
    assert!(abandon(&mut early).is_err(), "it was not looked at");
    let mut adjusting = failed(bounds());
    reflect(&mut adjusting, "off_track", &retry_b());
    let mut replanning = failed(Reflection {
        max_cycles: 0,
        ..bounds()
    });
    for history in [&mut adjusting, &mut replanning] {
        let tokens = history.run.tokens();
        abandon(history).unwrap();
        assert_eq!(
            history.run.reflection().why_given_up(),
            Some("no plan came back")
        );
        assert_eq!(history.run.tokens(), tokens + 5, "what was asked is paid");
        assert!(abandon(history).is_err(), "it has ended");
    }
}

#[test]
fn nothing_can_be_said_about_a_run_that_nothing_reflects_on() {
    let mut history = begin_guarded(two(), None, true);
    fail(&mut history, "a");
    let given = reflect_with(&mut history, answered("on_track", &json!([])), None);
    assert!(matches!(given, Err(Refusal::NothingToReflectOn { .. })));
    assert!(adjust(&mut history, true).is_err());
}

#[test]
fn a_journal_in_which_a_run_was_looked_at_twice_cannot_be_read() {
    let mut history = failed(bounds());
    reflect(&mut history, "off_track", &retry_b());
    let said = history.entries.last().unwrap().clone();
    let next_entry = |history: &History| {
        let mut entry = said.clone();
        entry.seq = history.entries.last().unwrap().seq + 1;
        entry
    };
    let entry = next_entry(&history);
    assert!(history.run.apply(&entry).is_err());
    let mut unreflected = begin_guarded(two(), None, true);
    let entry = next_entry(&unreflected);
    assert!(unreflected.run.apply(&entry).is_err());
    let mut other = failed(bounds());
    let entry = next_entry(&other);
    assert!(other.run.apply(&entry).is_ok());
}

#[test]
fn the_same_change_after_the_same_failure_is_no_progress() {
    let mut first = failed(bounds());
    reflect(&mut first, "needs_adjustment", &retry_b());
    adjust(&mut first, false).unwrap();
    let on = first.run.reflection().continuation().unwrap();

    let mut again = failed(on.clone());
    reflect(&mut again, "needs_adjustment", &retry_b());
    assert_eq!(again.run.status().as_str(), "failed");
    assert!(
        again
            .run
            .reflection()
            .why_given_up()
            .unwrap()
            .starts_with("no progress")
    );

    let mut other = failed(on.clone());
    let elsewhere = json!([{"type": "retry", "step": "b", "args": {"x": 3}}]);
    reflect(&mut other, "needs_adjustment", &elsewhere);
    assert_eq!(next(&other), Some(Look::Adjust), "another change");

    let mut document = two();
    document["steps"][1]["args"] = json!({"x": 7});
    let mut changed = begin(document, on.clone());
    succeed(&mut changed, "a");
    fail(&mut changed, "b");
    reflect(&mut changed, "needs_adjustment", &retry_b());
    assert_eq!(next(&changed), Some(Look::Adjust), "another call failed");

    let mut otherwise = begin(two(), on);
    succeed(&mut otherwise, "a");
    start(&mut otherwise, "b");
    let error = StepError::new(StepErrorCode::Timeout, "no");
    report(&mut otherwise, "b", CallReport::Failed(error));
    reflect(&mut otherwise, "needs_adjustment", &retry_b());
    assert_eq!(
        next(&otherwise),
        Some(Look::Adjust),
        "it failed in another way"
    );
}

#[test]
fn the_work_goes_on_with_what_is_left_of_its_bounds() {
    let before = Reflection {
        cycles: 1,
        max_replans: 2,
        replans: 1,
        max_tokens: Some(1_000),
        tried: vec![Digest::of_bytes(b"tried")],
        spent: Spent {
            calls: 4,
            tokens: 30,
            millis: 1_500,
            per_tool: [("t.a".to_owned(), 3)].into(),
            ..Spent::default()
        },
        ..bounds()
    };
    let mut history = failed(before.clone());
    assert_eq!(history.run.reflection().continuation(), None);
    history.advance(Duration::from_millis(500));
    reflect(&mut history, "needs_adjustment", &retry_b());
    adjust(&mut history, false).unwrap();
    let after = history.run.reflection().continuation().unwrap();
    assert_eq!((after.cycles, after.replans), (2, 1));
    assert!(!after.replanned);
    assert_eq!(after.continues.as_ref(), Some(history.run.id()));
    assert_eq!((after.tried.len(), &after.tried[0]), (2, &before.tried[0]));
    let spent = &after.spent;
    assert_eq!(
        (spent.calls, spent.tokens, spent.millis),
        (6, 45, 2_000),
        "two calls, two questions and half a second more"
    );
    assert_eq!(
        spent.per_tool,
        [("t.a".to_owned(), 4), ("t.b".to_owned(), 1)].into()
    );
    assert_eq!(
        (after.max_cycles, after.max_replans, after.max_tokens),
        (3, 2, Some(1_000))
    );
}

#[test]
fn a_work_that_was_planned_anew_stays_so() {
    let mut history = failed(Reflection {
        max_cycles: 0,
        ..bounds()
    });
    adjust(&mut history, true).unwrap();
    let after = history.run.reflection().continuation().unwrap();
    assert_eq!((after.cycles, after.replans, after.replanned), (0, 1, true));
    assert_eq!(after.tried, [], "no change was proposed");

    let mut later = failed(Reflection {
        replanned: true,
        ..bounds()
    });
    reflect(&mut later, "needs_adjustment", &retry_b());
    adjust(&mut later, false).unwrap();
    let after = later.run.reflection().continuation().unwrap();
    assert_eq!((after.replans, after.replanned), (0, true));
}

#[test]
fn budgets_count_what_the_runs_before_have_spent() {
    let spent = |calls, per_tool: u64, millis| Spent {
        calls,
        millis,
        per_tool: [("t.a".to_owned(), per_tool)].into(),
        same_call: [(Digest::of_bytes(b"a"), per_tool)].into(),
        ..Spent::default()
    };
    let outcome = |budget: Value, spent: Spent| {
        let mut document = two();
        document["limits"] = json!({"budget": budget});
        let mut history = begin(document, Reflection { spent, ..bounds() });
        start(&mut history, "a");
        let ix = history.run.find("a").unwrap();
        history.run.step(ix).status().as_str()
    };
    let budgets = [
        json!({"calls": 4}),
        json!({"perTool": {"t.a": 4}}),
        json!({"sameCall": 4}),
        json!({"seconds": 4}),
    ];
    for budget in budgets {
        let below = outcome(budget.clone(), spent(3, 3, 3_999));
        assert_eq!(below, "running", "{budget}");
        let reached = outcome(budget.clone(), spent(4, 4, 4_000));
        assert_eq!(reached, "failed", "{budget}");
    }
}

#[test]
fn steps_that_ran_cannot_be_changed_and_the_others_can() {
    let history = failed(bounds());
    assert_eq!(
        progress(&history, "a"),
        StepProgress::Done(StepStatus::Completed)
    );
    assert_eq!(progress(&history, "b"), StepProgress::Failed);
    assert_eq!(progress(&history, "c"), StepProgress::Absent);

    let mut history = begin(two(), bounds());
    assert_eq!(progress(&history, "a"), StepProgress::Open);
    assert_eq!(progress(&history, "b"), StepProgress::Open);
    start_as(&mut history, "a", EffectClass::Unsafe);
    assert_eq!(
        progress(&history, "a"),
        StepProgress::Done(StepStatus::Running)
    );
    let reason = "the line broke".into();
    report(&mut history, "a", CallReport::Lost { reason });
    assert_eq!(progress(&history, "a"), StepProgress::Unknown);
}

#[test]
fn a_step_that_waits_for_its_next_attempt_has_failed() {
    let mut document = two();
    document["steps"][0]["retry"] = json!({"max": 2, "backoff": 10});
    let mut history = begin(document, bounds());
    start(&mut history, "a");
    let error = StepError::new(StepErrorCode::ToolError, "not yet").retryable(true);
    report(&mut history, "a", CallReport::Failed(error));
    assert_eq!(progress(&history, "a"), StepProgress::Failed);
}

#[test]
fn a_step_that_a_person_lets_run_again_has_failed() {
    let mut history = begin(two(), bounds());
    start_as(&mut history, "a", EffectClass::Unsafe);
    let reason = "the line broke".into();
    report(&mut history, "a", CallReport::Lost { reason });
    let resolve = Command::Resolve {
        step: "a".into(),
        by: person(),
        resolution: Resolution::RunAgain,
    };
    history.give(&resolve, Cause::Command).unwrap();
    assert_eq!(progress(&history, "a"), StepProgress::Failed);
}

#[test]
fn a_loop_is_as_far_as_its_elements() {
    let looping = || {
        let steps = json!({"id": "p", "steps": [
            {"id": "a", "tool": "t.a", "forEach": [1, 2]},
        ]});
        let mut history = begin(steps, bounds());
        let open = Command::OpenLoop {
            step: history.run.find("a").unwrap(),
            items: value(json!([1, 2])),
            count: 2,
        };
        history.give(&open, Cause::Schedule).unwrap();
        let ix = history.run.find("a").unwrap();
        let elements: Vec<String> = history
            .run
            .open_loop(ix)
            .unwrap()
            .instances()
            .map(|ix| history.run.step_id(ix).to_string())
            .collect();
        (history, elements)
    };
    let (mut history, elements) = looping();
    assert_eq!(progress(&history, "a"), StepProgress::Open);
    succeed(&mut history, &elements[0]);
    assert_eq!(progress(&history, "a"), StepProgress::Partial);
    fail(&mut history, &elements[1]);
    assert_eq!(progress(&history, "a"), StepProgress::Partial);

    let (mut history, elements) = looping();
    fail(&mut history, &elements[0]);
    assert_eq!(progress(&history, "a"), StepProgress::Failed);

    let (mut history, elements) = looping();
    succeed(&mut history, &elements[0]);
    start_as(&mut history, &elements[1], EffectClass::Unsafe);
    let reason = "the line broke".into();
    report(&mut history, &elements[1], CallReport::Lost { reason });
    assert_eq!(progress(&history, "a"), StepProgress::Unknown);
}

#[test]
fn what_works_by_itself_may_have_done_part_of_it_when_it_fails() {
    let progress_of = |step: Value| {
        let document = json!({"id": "p", "toolsRequired": ["t.a"], "steps": [step]});
        let mut history = begin(document, bounds());
        assert_eq!(progress(&history, "a"), StepProgress::Open);
        fail(&mut history, "a");
        progress(&history, "a")
    };
    let agent = json!({"id": "a", "agent": {"instruction": "do it"}});
    assert_eq!(
        progress_of(agent),
        StepProgress::Failed,
        "it called nothing"
    );
    let executor = json!({"id": "a", "agent": {"instruction": "do it", "executor": "coder"}});
    assert_eq!(progress_of(executor), StepProgress::Partial);
}

#[test]
fn only_those_models_are_asked_that_the_caller_wants() {
    let roles = |reflect, replan| {
        let wish = ReflectionWish {
            reflect,
            replan,
            ..ReflectionWish::default()
        };
        let roles: Vec<ModelRole> = wish.roles().collect();
        (roles, wish.bounds(&Limits::default()))
    };
    assert_eq!(roles(false, false), (vec![], None));
    let (asked, bounds) = roles(true, false);
    assert_eq!(asked, [ModelRole::Reflector]);
    let bounds = bounds.unwrap();
    assert_eq!((bounds.max_cycles, bounds.max_replans), (3, 0));
    let (asked, bounds) = roles(false, true);
    assert_eq!(asked, [ModelRole::Planner]);
    let bounds = bounds.unwrap();
    assert_eq!((bounds.max_cycles, bounds.max_replans), (0, 1));
}

#[test]
fn the_caller_is_heard_before_the_plan_and_neither_gets_more_than_a_hundred_cycles() {
    let limits = Limits {
        max_cycles: Some(7),
        max_replans: Some(4),
        ..Limits::default()
    };
    let wish = ReflectionWish {
        reflect: true,
        replan: true,
        max_tokens: Some(9),
        ..ReflectionWish::default()
    };
    let bounds = wish.bounds(&limits).unwrap();
    assert_eq!((bounds.max_cycles, bounds.max_replans), (7, 4));
    assert_eq!(bounds.max_tokens, Some(9));
    let wish = ReflectionWish {
        max_cycles: Some(1_000),
        max_replans: Some(1_000),
        ..wish
    };
    let bounds = wish.bounds(&limits).unwrap();
    assert_eq!((bounds.max_cycles, bounds.max_replans), (100, 100));
}

#[test]
fn whether_the_criteria_hold_is_noted_after_the_end() {
    let mut history = succeeded(Reflection::default());
    let check = CriterionCheck {
        criterion: "it is seen".into(),
        holds: Some(true),
        evidence: "step `a`".into(),
    };
    let note = Command::NoteCriteria {
        checks: vec![check.clone()],
        used: Vec::new(),
    };
    let early = history.give(&note, Cause::Command);
    assert!(matches!(early, Err(Refusal::NotEnded { .. })));
    assert_eq!(settle(&mut history), "completed");
    assert_eq!(history.run.reflection().criteria(), []);
    history.give(&note, Cause::Command).unwrap();
    assert_eq!(history.run.reflection().criteria(), [check]);
}

#[test]
fn a_reflection_that_nothing_was_spent_on_is_written_without_what_was_spent() {
    let written = serde_json::to_value(bounds()).unwrap();
    assert_eq!(written.get("spent"), None);
    let spent = Spent {
        calls: 1,
        ..Spent::default()
    };
    let written = serde_json::to_value(Reflection { spent, ..bounds() }).unwrap();
    assert_eq!(written["spent"]["calls"], json!(1));
}
