//! Single rules of consent, and a journal that has all of its entries.

use crate::run_world::{History, person, started};
use planwright_core::digest::{Digest, canonical_json};
use planwright_core::journal::Cause;
use planwright_core::plan::{Bounds, Document, Plan};
use planwright_core::policy::{CallToJudge, LateChoice, Policy, PolicyDocument};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::Pin;
use planwright_core::run::{
    CallFacts, CallReport, Command, Consent, Parent, Refusal, RunEvent, Shown, StepReport,
    StoredValue, Verdict, agent_tool,
};
use planwright_core::tool::{Catalog, EffectClass, KnownTool, ToolDefinition};
use serde_json::{Value, json};
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
                    digest: tool.digest(),
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
    begin_for(plan, consent, None)
}

fn begin_for(plan: &Arc<Plan>, consent: Consent, parent: Option<Parent>) -> History {
    let mut started = started(plan, true);
    if let RunEvent::RunStarted {
        consent: own,
        parent: above,
        ..
    } = &mut started
    {
        *own = Some(Box::new(consent));
        *above = parent.map(Box::new);
    }
    History::begin_with(plan, "run_golden".parse().unwrap(), started)
}

/// The start of a step's call, with what is known about it.
fn start(plan: &Plan, policy: &Policy, step: &str, tool: &str, args: Value) -> Command {
    let catalog = catalog();
    let ix = plan.find(step).unwrap();
    let tool = catalog.resolve(tool).unwrap();
    let args = Arc::new(args);
    let subject = CallToJudge {
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

fn status(history: &History) -> &'static str {
    let ix = history.run.find("a").unwrap();
    history.run.step(ix).status().as_str()
}

fn one_step() -> Arc<Plan> {
    plan(json!({"id": "p", "steps": [{"id": "a", "tool": "w.write"}]}))
}

fn by_policy() -> Consent {
    Consent {
        approved_by: vec![Policy::default().principal()],
        ..consent()
    }
}

fn late(choices: &[LateChoice]) -> BTreeMap<String, Vec<LateChoice>> {
    [("a".to_owned(), choices.to_vec())].into()
}

fn not_evil() -> LateChoice {
    "args.to != 'evil'".parse().unwrap()
}

/// The start of the only step's call, judged like this.
fn judged(verdict: Verdict, args: Value) -> Command {
    let mut command = start(&one_step(), &Policy::default(), "a", "w.write", args);
    if let Command::Start {
        facts: Some(facts), ..
    } = &mut command
    {
        facts.judgement.verdict = verdict;
    }
    command
}

/// What becomes of a call that the executor of the step `work` wants.
fn executor_call(consent: Consent, outside: bool, verdict: Verdict) -> History {
    let parent = Parent {
        run: "run_parent".parse().unwrap(),
        step: "work".parse().unwrap(),
        index: None,
        call: Some(0),
        outside,
    };
    let mut history = begin_for(&one_step(), consent, Some(parent));
    let call = judged(verdict, json!({"to": "evil"}));
    history.give(&call, Cause::Schedule).unwrap();
    history
}

#[test]
fn what_policy_denies_is_not_called_even_if_a_person_agreed() {
    let mut history = begin(&one_step(), consent());
    let denied = judged(Verdict::Deny, json!({}));
    history.give(&denied, Cause::Schedule).unwrap();
    assert_eq!(code(&history, "a"), "policy_denied");
    let work = plan(json!({"id": "p", "steps": [{"id": "a", "agent": {"instruction": "?"}}]}));
    let mut history = begin(&work, consent());
    history.give(&denied, Cause::Schedule).unwrap();
    assert_eq!(code(&history, "a"), "policy_denied");
}

#[test]
fn a_tool_that_changed_since_it_was_approved_is_not_called() {
    let mut pinned = consent();
    let pin = pinned.pins.get_mut("w.write").unwrap();
    pin.digest = Digest::of_bytes(b"another");
    let mut history = begin(&one_step(), pinned);
    let call = judged(Verdict::Allow, json!({}));
    history.give(&call, Cause::Schedule).unwrap();
    assert_eq!(code(&history, "a"), "tool_changed");
}

#[test]
fn an_executor_does_by_itself_what_policy_allows() {
    let narrowed = Consent {
        late: late(&[not_evil()]),
        ..by_policy()
    };
    let history = executor_call(narrowed.clone(), false, Verdict::Allow);
    assert_eq!(
        status(&history),
        "running",
        "no approver was asked about it"
    );
    let mut history = begin(&one_step(), narrowed);
    let call = judged(Verdict::Allow, json!({"to": "evil"}));
    history.give(&call, Cause::Schedule).unwrap();
    assert_eq!(
        code(&history, "a"),
        "constraint_violated",
        "a step of the plan keeps to what was agreed"
    );
}

#[test]
fn an_executor_asks_about_a_tool_that_the_plan_does_not_list() {
    let agreed = Consent {
        late: late(&[LateChoice::Any]),
        ..consent()
    };
    let history = executor_call(agreed, true, Verdict::Allow);
    assert_eq!(status(&history), "awaiting_approval");
}

#[test]
fn what_policy_asks_about_an_executor_does_only_if_a_person_said_so_in_advance() {
    let after = |consent: Consent| status(&executor_call(consent, false, Verdict::Ask));
    let choose = |choices: &[LateChoice], given: Consent| Consent {
        late: late(choices),
        ..given
    };
    assert_eq!(after(choose(&[LateChoice::Any], consent())), "running");
    assert_eq!(after(consent()), "awaiting_approval");
    let asks = choose(&[LateChoice::Ask], consent());
    assert_eq!(after(asks), "awaiting_approval");
    let policys = choose(&[LateChoice::Any], by_policy());
    assert_eq!(after(policys.clone()), "awaiting_approval");
    let before = Consent {
        agreed: ["work".to_owned()].into(),
        ..policys.clone()
    };
    assert_eq!(
        after(before),
        "running",
        "a person agreed to the step before"
    );
    let other = Consent {
        agreed: ["a".to_owned()].into(),
        ..policys
    };
    assert_eq!(after(other), "awaiting_approval", "that is another step");
    let narrowed = executor_call(choose(&[not_evil()], consent()), false, Verdict::Ask);
    assert_eq!(code(&narrowed, "a"), "constraint_violated");
}

#[test]
fn a_step_for_an_executor_waits_for_a_person_where_only_policy_agreed() {
    let work = plan(json!({"id": "p", "steps": [{"id": "a", "agent": {"instruction": "?"}}]}));
    let begun = |verdict: Verdict, number: u8| {
        let Command::Start { facts, step, .. } = judged(verdict, json!({})) else {
            panic!("it is a start")
        };
        Command::Start {
            step,
            tool: agent_tool(),
            class: EffectClass::Keyed,
            call: Digest::of_bytes(&[number]),
            facts,
        }
    };
    let started = |consent: Consent, verdict: Verdict| {
        let mut history = begin(&work, consent);
        history.give(&begun(verdict, 1), Cause::Schedule).unwrap();
        history
    };
    assert_eq!(status(&started(consent(), Verdict::Ask)), "running");
    assert_eq!(status(&started(by_policy(), Verdict::Allow)), "running");
    let mut history = started(by_policy(), Verdict::Ask);
    assert_eq!(status(&history), "awaiting_approval");
    let approve = Command::Approve {
        step: "a".into(),
        by: person(),
        assurance: Assurance::Terminal,
        shown: Shown::Digest(Digest::of_bytes(&[1])),
    };
    history.give(&approve, Cause::Command).unwrap();
    let mut other = history.clone();
    other
        .give(&begun(Verdict::Ask, 2), Cause::Schedule)
        .unwrap();
    assert_eq!(status(&other), "awaiting_approval", "it was not agreed to");
    history
        .give(&begun(Verdict::Ask, 1), Cause::Schedule)
        .unwrap();
    assert_eq!(status(&history), "running");
}

#[test]
fn a_run_says_beforehand_whether_it_will_ask_about_a_call() {
    let plan = one_step();
    let ix = plan.find("a").unwrap();
    let asks = |history: &History, verdict: Verdict, args: Value| {
        let Command::Start {
            call,
            facts: Some(facts),
            ..
        } = judged(verdict, args)
        else {
            panic!("it is a start with facts")
        };
        history.run.asks_about(ix, call, &facts)
    };
    let mut history = begin(&plan, by_policy());
    assert!(asks(&history, Verdict::Ask, json!({})));
    assert!(!asks(&history, Verdict::Allow, json!({})));
    assert!(!asks(&begin(&plan, consent()), Verdict::Ask, json!({})));
    let call = judged(Verdict::Ask, json!({}));
    history.give(&call, Cause::Schedule).unwrap();
    let Command::Start { call: digest, .. } = call else {
        panic!("it is a start")
    };
    let approve = Command::Approve {
        step: "a".into(),
        by: person(),
        assurance: Assurance::Terminal,
        shown: Shown::Digest(digest),
    };
    history.give(&approve, Cause::Command).unwrap();
    assert!(!asks(&history, Verdict::Ask, json!({})), "it was agreed to");
    assert!(asks(&history, Verdict::Ask, json!({"to": "y"})));
}

#[test]
fn a_long_scope_is_named_by_its_first_fifty_tools() {
    let message = |count: usize| {
        let tools: Vec<String> = (0..count).map(|n| format!("x.t{n}")).collect();
        let scoped = plan(json!({"id": "p", "toolsRequired": tools,
            "steps": [{"id": "a", "tool": "x.t0"}]}));
        let mut history = begin(&scoped, consent());
        let call = judged(Verdict::Allow, json!({}));
        history.give(&call, Cause::Schedule).unwrap();
        let ix = scoped.find("a").unwrap();
        let error = StepReport::new(&history.run, ix, history.now)
            .error
            .unwrap();
        error.message
    };
    assert!(message(50).ends_with("x.t49] are available."));
    assert!(message(51).ends_with("x.t49, and 1 more] are available."));
}

#[test]
fn the_operator_says_how_often_a_tool_is_called_in_a_run() {
    let plan = plan(json!({"id": "p", "steps": [
        {"id": "a", "tool": "w.write"}, {"id": "b", "tool": "w.write", "critical": false},
    ]}));
    let rules = policy(json!({"caps": {"w.*": 1}}));
    let mut history = begin(&plan, consent());
    for (step, expected) in [("a", ""), ("b", "guard_blocked")] {
        let call = start(&plan, &rules, step, "w.write", json!({"of": step}));
        history.give(&call, Cause::Schedule).unwrap();
        assert_eq!(code(&history, step), expected);
    }
}
