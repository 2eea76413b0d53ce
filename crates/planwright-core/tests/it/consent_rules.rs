//! Single rules of consent, and a journal that has all of its entries.

use crate::run_world::{History, person};
use planwright_core::digest::{Digest, canonical_json};
use planwright_core::journal::Cause;
use planwright_core::plan::{Bounds, Document, Plan};
use planwright_core::policy::{Policy, PolicyDocument, Subject};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::Pin;
use planwright_core::run::{
    CallFacts, CallReport, Command, Consent, Refusal, RunEvent, Shown, StepReport, StoredValue,
};
use planwright_core::tool::{Catalog, EffectClass, KnownTool, ToolDefinition};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

fn catalog() -> Catalog {
    Catalog::new(["write", "erase"].map(|name| {
        let definition = ToolDefinition::new("w", name, "scripted", json!({"type": "object"}));
        KnownTool::new(definition, EffectClass::Safe)
    }))
}

fn policy(text: Value) -> Policy {
    let document: PolicyDocument = serde_json::from_value(text).unwrap();
    Policy::read(&document).unwrap()
}

fn plan(value: Value) -> Arc<Plan> {
    let document: Document = serde_json::from_value(value).unwrap();
    Arc::new(Plan::compile(document, &Bounds::default()).unwrap())
}

fn consent() -> Consent {
    let pins = catalog()
        .iter()
        .map(|tool| {
            (
                tool.name.to_string(),
                Pin {
                    digest: tool.digest,
                    definition: None,
                },
            )
        })
        .collect();
    Consent {
        approved_by: vec![person()],
        pins,
        ..Consent::default()
    }
}

fn begin(plan: &Arc<Plan>, consent: Consent) -> History {
    let started = RunEvent::RunStarted {
        plan: plan.id().clone(),
        version: 1,
        digest: Digest::of_bytes(b"shown"),
        variables: Map::new(),
        max_concurrency: 4,
        guards: true,
        by: person(),
        forked_from: None,
        undoes: None,
        parent: None,
        document: None,
        consent: Some(Box::new(consent)),
        trace: None,
        reflection: None,
        call_timeout_ms: None,
        stepwise: false,
    };
    History::begin_with(plan, "run_golden".parse().unwrap(), started)
}

/// The start of a step's call, with what is known about it.
fn start(plan: &Plan, policy: &Policy, step: &str, tool: &str, args: Value) -> Command {
    let catalog = catalog();
    let ix = plan.find(step).unwrap();
    let tool = catalog.resolve(tool).unwrap();
    let args = Arc::new(args);
    let subject = Subject {
        tool: Some(tool),
        args: &args,
        unknown: &BTreeSet::new(),
        step: plan.step(ix),
        step_id: step,
        plan: "p",
        chosen_by_model: false,
    };
    let late = !planwright_core::policy::late_arguments(plan, ix).is_empty();
    let facts = CallFacts::new(policy, tool, Arc::clone(&args), late, &subject);
    let call = Digest::of_parts(&[tool.name.to_string().as_bytes(), &canonical_json(&args)]);
    Command::Start {
        step: ix,
        tool: tool.name.clone(),
        class: tool.class,
        call,
        facts: Some(Box::new(facts)),
    }
}

fn code(history: &History, step: &str) -> String {
    let ix = history.run.find(step).unwrap();
    StepReport::new(&history.run, ix, history.now)
        .error
        .map(|error| error.code.to_string())
        .unwrap_or_default()
}

#[test]
fn a_tool_outside_the_scope_is_not_called() {
    let plan = plan(
        json!({"id": "p", "toolsRequired": ["w.write"], "steps": [{"id": "a", "tool": "w.write"}]}),
    );
    let mut history = begin(&plan, consent());
    history
        .give(
            &start(&plan, &Policy::default(), "a", "w.erase", json!({})),
            Cause::Schedule,
        )
        .unwrap();
    let error = StepReport::new(&history.run, plan.find("a").unwrap(), history.now)
        .error
        .unwrap();
    assert_eq!(error.code.as_str(), "out_of_scope");
    assert_eq!(
        error.message,
        "Tool w.write not available in plan scope. Only [w.write] are available."
    );
}

#[test]
fn a_call_that_was_not_judged_or_not_pinned_is_not_made() {
    let plan = plan(json!({"id": "p", "steps": [{"id": "a", "tool": "w.write"}]}));
    let mut history = begin(&plan, consent());
    let Command::Start {
        step,
        tool,
        class,
        call,
        ..
    } = start(&plan, &Policy::default(), "a", "w.write", json!({}))
    else {
        panic!("it is a start")
    };
    history
        .give(
            &Command::Start {
                step,
                tool,
                class,
                call,
                facts: None,
            },
            Cause::Schedule,
        )
        .unwrap();
    assert_eq!(code(&history, "a"), "policy_denied");
    let mut history = begin(
        &plan,
        Consent {
            pins: BTreeMap::new(),
            ..consent()
        },
    );
    history
        .give(
            &start(&plan, &Policy::default(), "a", "w.write", json!({})),
            Cause::Schedule,
        )
        .unwrap();
    assert_eq!(code(&history, "a"), "tool_changed");
}

#[test]
fn a_run_that_only_policy_approved_asks_before_it_does_what_policy_asks_about() {
    let plan = plan(json!({"id": "p", "steps": [{"id": "a", "tool": "w.write"}]}));
    let by_policy = Consent {
        approved_by: vec![Policy::default().principal()],
        ..consent()
    };
    let mut history = begin(&plan, by_policy);
    history
        .give(
            &start(&plan, &Policy::default(), "a", "w.write", json!({})),
            Cause::Schedule,
        )
        .unwrap();
    assert_eq!(
        history.run.step(plan.find("a").unwrap()).status().as_str(),
        "awaiting_approval"
    );
}

#[test]
fn a_budget_counts_a_tool_under_every_spelling_of_its_name() {
    for name in ["write", "w.write", "mcp__w__write", "W.Write", "wr*"] {
        let plan = plan(
            json!({"id": "p", "limits": {"budget": {"perTool": {name: 1}}}, "steps": [
                {"id": "a", "tool": "w.write"}, {"id": "b", "tool": "write", "critical": false},
            ]}),
        );
        let mut history = begin(&plan, consent());
        for step in ["a", "b"] {
            history
                .give(
                    &start(&plan, &Policy::default(), step, "w.write", json!({})),
                    Cause::Schedule,
                )
                .unwrap();
        }
        assert_eq!(code(&history, "b"), "guard_blocked", "{name}");
    }
}

/// A call is asked about, approved by the wrong one and the right one, tried again, and asked about
/// when it changes.
pub(crate) fn asked_story() -> (History, Document) {
    let plan = plan(json!({"id": "p", "steps": [
        {"id": "a", "tool": "w.write", "args": {"to": "x"}},
        {"id": "b", "tool": "w.write", "args": {"to": "${a}"}, "retry": {"max": 2, "on": ["busy"]}},
        {"id": "c", "tool": "w.erase", "approvalRequired": true, "critical": false},
    ]}));
    let rules = policy(json!({"approval": {"step_expires_after": "1h", "four_eyes": true}}));
    let author = Principal::agent("planner");
    let late = BTreeMap::from([(
        "b".to_owned(),
        vec!["args.to != 'evil'".parse().unwrap(), "ask".parse().unwrap()],
    )]);
    let span = rules.approval.step_expires_after;
    let consent = Consent {
        late,
        step_expires_after: span,
        proposed_by: Some(author),
        same_call: Some(9),
        ..consent()
    };
    let mut history = begin(&plan, consent);
    let said = |text: &str| StoredValue::Inline(Arc::new(json!(text)));
    let done = |history: &mut History, step: &str, attempt, answer| {
        let step = history.run.find(step).unwrap();
        history
            .give(
                &Command::Report {
                    step,
                    attempt,
                    answer,
                },
                Cause::Report,
            )
            .unwrap();
        history.advance(Duration::from_secs(1));
    };
    let call = |to: &str| start(&plan, &rules, "b", "w.write", json!({"to": to}));
    history
        .give(&Command::AskApprovals, Cause::Schedule)
        .unwrap();
    history
        .give(
            &start(&plan, &rules, "a", "w.write", json!({"to": "x"})),
            Cause::Schedule,
        )
        .unwrap();
    done(&mut history, "a", 1, CallReport::Succeeded(said("x")));
    history.give(&call("x"), Cause::Schedule).unwrap();
    let Command::Start { call: digest, .. } = call("x") else {
        panic!("it is a start")
    };
    let approve = |by: Principal, shown| Command::Approve {
        step: "b".into(),
        by,
        assurance: Assurance::Terminal,
        shown,
    };
    for (by, shown) in [
        (person(), Shown::Digest(Digest::of_bytes(b"shown"))),
        (person(), Shown::Version(1)),
        (Principal::agent("planner"), Shown::Digest(digest)),
    ] {
        assert!(
            history
                .run
                .decide(&approve(by, shown), history.now)
                .is_err()
        );
    }
    history
        .give(&approve(person(), Shown::Digest(digest)), Cause::Command)
        .unwrap();
    history.give(&call("x"), Cause::Schedule).unwrap();
    let busy = planwright_core::run::StepError::new("busy".into(), "later");
    done(&mut history, "b", 1, CallReport::Failed(busy));
    // The same call again is the one that was approved; another one is not.
    history.advance(Duration::from_secs(60));
    let other = history.run.decide(&call("y"), history.now).unwrap();
    assert!(
        matches!(
            &other[..],
            [RunEvent::ApprovalRequested { call: Some(_), .. }]
        ),
        "{other:?}"
    );
    let evil = history.run.decide(&call("evil"), history.now).unwrap();
    assert!(
        matches!(&evil[..], [RunEvent::StepFailed { error, .. }] if error.code.as_str() == "constraint_violated")
    );
    history.give(&call("x"), Cause::Schedule).unwrap();
    done(&mut history, "b", 2, CallReport::Succeeded(said("y")));
    history.advance(Duration::from_secs(3_600));
    let late = Command::Approve {
        step: "c".into(),
        by: person(),
        assurance: Assurance::Terminal,
        shown: Shown::Version(1),
    };
    let refused = history.run.decide(&late, history.now).unwrap_err();
    assert!(
        matches!(refused, Refusal::ApprovalExpired { .. }),
        "{refused}"
    );
    history.give(&Command::Tick, Cause::Timer).unwrap();
    history.give(&Command::Settle, Cause::Schedule).unwrap();
    let document = Document::clone(plan.document());
    (history, document)
}

#[test]
fn an_approval_covers_one_call_through_retries_and_no_other() {
    let (history, _) = asked_story();
    assert_eq!(code(&history, "c"), "approval_expired");
    assert_eq!(history.run.status().as_str(), "completed");
}
