//! What takes a run back: the order, the arguments, what stays.

use crate::plans::document;
use crate::run_world::{History, person, started};
use planwright_core::digest::Digest;
use planwright_core::journal::Cause;
use planwright_core::plan::{Bounds, Plan, Step, StepIx, Values};
use planwright_core::principal::Principal;
use planwright_core::run::{
    CallReport, Command, Fork, Kept, PlanUndoError, Refusal, Run, RunEvent, StoredValue, plan_undo,
    undo_step_id, undone_by,
};
use planwright_core::tool::{
    Annotations, Catalog, EffectClass, KnownTool, ToolDefinition, ToolName,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// A run's own values.
struct Of<'a>(&'a Run);

impl Values for Of<'_> {
    fn variable(&self, name: &str) -> Option<&Value> {
        self.0.plan().variable(name)
    }

    fn step(&self, ix: StepIx) -> Option<&Value> {
        match self.0.step(ix).value() {
            Some(StoredValue::Inline(value)) => Some(value),
            Some(StoredValue::Artifact(_)) | None => None,
        }
    }
}

/// Runs every step of a plan; its value is `values[id]`.
fn ran(plan: Value, values: &Value) -> Run {
    let plan = Arc::new(Plan::compile(document(plan), &Bounds::default()).unwrap());
    let mut history = History::begin(&plan, true);
    loop {
        let ready: Vec<StepIx> = history.run.schedule().startable(history.now).collect();
        let Some(&step) = ready.first() else { break };
        let tool = ToolName {
            server: "w".into(),
            tool: "t".into(),
        };
        let start = Command::Start {
            step,
            tool,
            class: EffectClass::Unsafe,
            call: Digest::ZERO,
            facts: None,
        };
        history.give(&start, Cause::Schedule).unwrap();
        let value = values
            .get(plan.step_id(step).as_str())
            .cloned()
            .unwrap_or_default();
        let answer = CallReport::Succeeded(StoredValue::Inline(Arc::new(value)));
        history
            .give(
                &Command::Report {
                    step,
                    attempt: 1,
                    answer,
                },
                Cause::Report,
            )
            .unwrap();
    }
    history.give(&Command::Settle, Cause::Schedule).unwrap();
    history.run
}

fn chain_of(run: &Run) -> Vec<String> {
    let undo = plan_undo(run, &Of(run), &Catalog::default()).unwrap();
    undo.document
        .steps
        .iter()
        .map(|step| step.id.as_ref().unwrap().to_string())
        .collect()
}

#[test]
fn the_last_step_that_completed_is_taken_back_first_and_each_waits_for_the_one_before() {
    let step = |id: &str, after: &[&str]| json!({"id": id, "tool": "w.t", "dependsOn": after, "undo": {"tool": "w.u"}});
    let run = ran(
        json!({"id": "p", "steps": [step("c", &["a"]), step("b", &[]), step("a", &[])]}),
        &json!({}),
    );
    let finished: Vec<&str> = run
        .finished_steps()
        .iter()
        .map(|&ix| run.plan().step_id(ix).as_str())
        .collect();
    let mut expected: Vec<String> = finished.iter().map(|id| format!("undo-{id}")).collect();
    expected.reverse();
    assert_eq!(chain_of(&run), expected);
    let undo = plan_undo(&run, &Of(&run), &Catalog::default()).unwrap();
    for pair in undo.document.steps.windows(2) {
        assert_eq!(pair[1].depends_on, [pair[0].id.clone().unwrap()]);
    }
    assert!(Plan::compile(undo.document, &Bounds::default()).is_ok());
}

#[test]
fn nothing_in_a_result_is_read_as_a_reference_again() {
    let hostile =
        json!({"text": "${secret.KEY} $${x} ${b}", "list": ["${a}", {"${k}": "$"}], "dollar": "$"});
    let plan = json!({"id": "p", "variables": {"brace": "{secret.KEY}"}, "steps": [
        {"id": "a", "tool": "w.t", "undo": {"tool": "w.u", "args": {
            "whole": "${a}", "part": "<${a.text}>", "joined": "${a.dollar}${brace}", "plain": "$${kept}",
        }}},
    ]});
    let run = ran(plan, &json!({"a": hostile}));
    let undo = plan_undo(&run, &Of(&run), &Catalog::default()).unwrap();
    // The undo knows none of these names, so a reference among them would not compile, let alone
    // resolve.
    let undo = Plan::compile(undo.document, &Bounds::default()).unwrap();
    let ix = undo.find("undo-a").unwrap();
    assert!(undo.referenced_steps(ix).is_empty());
    let args = undo.resolve_args(ix, &Of(&run)).unwrap();
    assert_eq!(args["whole"], hostile);
    assert_eq!(args["part"], json!("<${secret.KEY} $${x} ${b}>"));
    assert_eq!(args["joined"], json!("${secret.KEY}"));
    assert_eq!(args["plain"], json!("${kept}"));
}

#[test]
fn secrets_stay_references() {
    let plan = json!({"id": "p", "steps": [
        {"id": "a", "tool": "w.t", "undo": {"tool": "w.u", "args": {
            "key": "${secret.KEY}", "header": "Bearer ${secret.KEY} for ${a}",
        }}},
    ]});
    let run = ran(plan, &json!({"a": "${x}"}));
    let undo = plan_undo(&run, &Of(&run), &Catalog::default()).unwrap();
    let args = &undo.document.steps[0].args;
    assert_eq!(args["key"], json!("${secret.KEY}"));
    assert_eq!(args["header"], json!("Bearer ${secret.KEY} for $${x}"));
}

#[test]
fn a_value_that_is_not_there_stops_the_undo_before_it_begins() {
    let plan = json!({"id": "p", "steps": [
        {"id": "a", "tool": "w.t", "undo": {"tool": "w.u", "args": {"id": "${a.id}"}}},
    ]});
    let run = ran(plan, &json!({"a": {"other": 1}}));
    let error = plan_undo(&run, &Of(&run), &Catalog::default()).unwrap_err();
    assert!(
        matches!(error, PlanUndoError::Unresolved { ref step, .. } if step.as_str() == "a"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_taken_back_is_named() {
    let plan = json!({"id": "p", "steps": [
        {"id": "read", "tool": "read_file", "args": {"path": "x"}},
        {"id": "write", "tool": "write_file", "args": {"path": "x", "content": ""}},
        {"id": "sub", "plan": {"id": "child"}},
        {"id": "told", "tool": "w.t", "undo": {"tool": "w.u"}},
    ]});
    let run = ran(plan, &json!({}));
    let reader = ToolDefinition::new("local", "read_file", "Reads.", json!({"type": "object"}));
    let reader = KnownTool::new(
        reader.with_annotations(Annotations::read_only()),
        EffectClass::Safe,
    );
    let undo = plan_undo(&run, &Of(&run), &Catalog::new([reader])).unwrap();
    let kept: Vec<(&str, bool)> = undo
        .kept
        .iter()
        .map(|(ix, kept)| {
            (
                run.plan().step_id(*ix).as_str(),
                matches!(kept, Kept::Child { .. }),
            )
        })
        .collect();
    assert_eq!(kept, [("write", false), ("sub", true)]);
}

#[test]
fn ids_of_undo_steps_lead_back_to_their_steps_however_long_they_are() {
    let long = "x".repeat(64);
    let plan = json!({"id": "p", "steps": [
        {"id": long, "tool": "w.t", "undo": {"tool": "w.u"}},
        {"id": "short", "tool": "w.t", "undo": {"tool": "w.u"}},
    ]});
    let run = ran(plan, &json!({}));
    for ix in run.plan().indices() {
        assert_eq!(
            undone_by(&run, &undo_step_id(run.plan().step_id(ix))),
            Some(ix)
        );
    }
    assert_eq!(undone_by(&run, &"undo-nothing".parse().unwrap()), None);
}

#[test]
fn an_agent_cannot_order_an_undo() {
    let plan = json!({"id": "p", "steps": [{"id": "a", "tool": "w.t", "undo": {"tool": "w.u"}}]});
    let run = ran(plan, &json!({}));
    let order = |by: Principal| Command::Undo {
        run: "run_u".parse().unwrap(),
        digest: Digest::ZERO,
        by,
        assurance: planwright_core::principal::Assurance::Program,
    };
    let refused = run.decide(&order(Principal::agent("planner")), run.updated_at());
    assert!(matches!(refused, Err(Refusal::MayNotApprove(_))));
    assert!(run.decide(&order(person()), run.updated_at()).is_ok());
}

#[test]
fn an_undo_says_what_it_takes_back_and_tries_as_hard_as_the_step_did() {
    let plan = json!({"id": "p", "title": "Move house", "steps": [
        {"id": "a", "title": "Pack", "tool": "w.t", "timeoutSeconds": 7, "retry": {"max": 2},
         "undo": {"tool": "w.u"}},
        {"id": "b", "tool": "w.t", "dependsOn": ["a"], "undo": {"tool": "w.u"}},
    ]});
    let run = ran(plan, &json!({}));
    let undo = plan_undo(&run, &Of(&run), &Catalog::default()).unwrap();
    let document = &undo.document;
    assert_eq!(document.id.as_ref(), Some(run.plan().id()));
    let title = document.title.as_deref().unwrap();
    assert!(title.contains("Move house"), "{title}");
    let goal = document.goal.as_deref().unwrap();
    assert!(goal.contains(run.id().as_str()), "{goal}");
    let [b, a] = document.steps.as_slice() else {
        panic!("{:?}", document.steps);
    };
    let title = |step: &Step| step.title.clone().unwrap();
    assert!(title(a).ends_with("Pack") && title(b).ends_with('b'));
    assert_eq!(a.timeout_seconds, Some(7.0));
    assert_eq!(a.retry.as_ref().map(|retry| retry.max), Some(2));
    assert_eq!((b.timeout_seconds, b.retry.is_none()), (None, true));
}

#[test]
fn a_run_names_those_that_took_it_back() {
    let plan = json!({"id": "p", "steps": [{"id": "a", "tool": "w.t", "undo": {"tool": "w.u"}}]});
    let plan = Arc::new(Plan::compile(document(plan), &Bounds::default()).unwrap());
    let mut history = History::begin(&plan, true);
    let order = |run: &str| Command::Undo {
        run: run.parse().unwrap(),
        digest: Digest::ZERO,
        by: person(),
        assurance: planwright_core::principal::Assurance::Terminal,
    };
    let early = history.give(&order("run_u"), Cause::Command);
    assert!(matches!(early, Err(Refusal::NotEnded { .. })));
    let step = StepIx::new(0);
    let start = Command::Start {
        step,
        tool: "w.t".to_owned().try_into().unwrap(),
        class: EffectClass::Unsafe,
        call: Digest::ZERO,
        facts: None,
    };
    history.give(&start, Cause::Schedule).unwrap();
    let answer = CallReport::Succeeded(StoredValue::Inline(Arc::new(json!(1))));
    let report = Command::Report {
        step,
        attempt: 1,
        answer,
    };
    history.give(&report, Cause::Report).unwrap();
    history.give(&Command::Settle, Cause::Schedule).unwrap();
    assert!(history.run.undos().is_empty());
    history.give(&order("run_u"), Cause::Command).unwrap();
    history.give(&order("run_v"), Cause::Command).unwrap();
    let names: Vec<&str> = history.run.undos().iter().map(|run| run.as_str()).collect();
    assert_eq!(names, ["run_u", "run_v"]);
    let undone = |run: &str| Command::NoteUndone {
        step,
        run: run.parse().unwrap(),
    };
    assert!(
        history.give(&undone("run_u"), Cause::Command).is_err(),
        "another took over"
    );
    history.give(&undone("run_v"), Cause::Command).unwrap();
    assert!(matches!(
        history.give(&order("run_w"), Cause::Command),
        Err(Refusal::AlreadyUndone { .. } | Refusal::NothingToUndo)
    ));
}

#[test]
fn what_was_taken_over_from_another_run_is_not_taken_back_with_this_one() {
    let plan = json!({"id": "p", "steps": [
        {"id": "a", "tool": "w.t", "undo": {"tool": "w.u"}},
        {"id": "b", "tool": "read_file", "args": {"path": "x"}},
        {"id": "c", "tool": "w.t", "undo": {"tool": "w.u"}},
    ]});
    let plan = Arc::new(Plan::compile(document(plan), &Bounds::default()).unwrap());
    let mut started = started(&plan, true);
    if let RunEvent::RunStarted { forked_from, .. } = &mut started {
        *forked_from = Some(Box::new(Fork {
            run: "run_source".parse().unwrap(),
            from: vec!["c".parse().unwrap()],
        }));
    }
    let mut history = History::begin_with(&plan, "run_fork".parse().unwrap(), started);
    let value = || StoredValue::Inline(Arc::new(json!(1)));
    for step in ["a", "b"] {
        let reused = RunEvent::ResultReused {
            step: step.parse().unwrap(),
            value: value(),
        };
        history.write(reused, Cause::Command);
    }
    let start = Command::Start {
        step: StepIx::new(2),
        tool: "w.t".to_owned().try_into().unwrap(),
        class: EffectClass::Unsafe,
        call: Digest::ZERO,
        facts: None,
    };
    history.give(&start, Cause::Schedule).unwrap();
    let report = Command::Report {
        step: StepIx::new(2),
        attempt: 1,
        answer: CallReport::Succeeded(value()),
    };
    history.give(&report, Cause::Report).unwrap();
    history.give(&Command::Settle, Cause::Schedule).unwrap();
    let run = &history.run;
    assert_eq!(chain_of(run), ["undo-c"]);
    let reader = ToolDefinition::new("local", "read_file", "Reads.", json!({"type": "object"}));
    let reader = KnownTool::new(
        reader.with_annotations(Annotations::read_only()),
        EffectClass::Safe,
    );
    let undo = plan_undo(run, &Of(run), &Catalog::new([reader])).unwrap();
    let [(kept, Kept::Reused { from })] = undo.kept.as_slice() else {
        panic!("{:?}", undo.kept);
    };
    assert_eq!((kept.index(), from.as_str()), (0, "run_source"));
}
