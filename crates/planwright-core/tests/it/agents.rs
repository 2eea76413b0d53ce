//! What the executor of an agent step may do: bounds, scope, guards, and what a model writes stays
//! what it is.

use crate::plans::document;
use crate::run_world::History;
use planwright_core::adjust::StepProgress;
use planwright_core::digest::Digest;
use planwright_core::journal::Cause;
use planwright_core::model::{ModelRole, ModelUse, TokenUsage};
use planwright_core::plan::{Bounds, Document, Plan, StepIx, Values, literal};
use planwright_core::policy::{Judgement, Mode};
use planwright_core::run::{
    AgentCall, CallFacts, CallFate, CallReport, ClientTerms, Command, Refusal, Run, RunEvent,
    StepError, StoredValue, Verdict, Wanted, WantedCallFacts, agent_tool,
};
use planwright_core::tool::{EffectClass, ToolName};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

fn name(text: &str) -> ToolName {
    ToolName::try_from(text.to_owned()).unwrap()
}

fn wanted(tool: &str, args: Value) -> Wanted {
    let call = Digest::of_json(&json!([tool, args]));
    let args = Arc::new(args);
    let judgement = Judgement {
        verdict: Verdict::Allow,
        rule: None,
        reason: "the tool is read-only".into(),
        noticed: Vec::new(),
        undecided: Vec::new(),
    };
    let facts = Box::new(CallFacts {
        definition: Digest::ZERO,
        changed: None,
        args: Arc::clone(&args),
        shown: None,
        late: false,
        judgement,
        caps: Vec::new(),
    });
    let known = Ok(WantedCallFacts {
        tool: name(tool),
        read_only: true,
        call,
        guarded: None,
        facts,
    });
    Wanted {
        id: "c".into(),
        tool: tool.into(),
        args: StoredValue::Inline(args),
        known,
    }
}

fn used() -> ModelUse {
    let usage = TokenUsage {
        input: 7,
        output: 3,
        cached: 0,
        estimated: false,
    };
    ModelUse {
        role: ModelRole::Executor,
        model: "local/model".into(),
        usage,
        cost: None,
    }
}

fn turn(attempt: u32, text: Option<&str>, calls: Vec<Wanted>) -> Command {
    let text = text.map(|text| StoredValue::Inline(Arc::new(json!(text))));
    Command::TakeTurn {
        step: StepIx::new(0),
        attempt,
        text,
        calls,
        used: Some(used()),
        observe: false,
        client: None,
    }
}

fn start() -> Command {
    let tool = agent_tool();
    let class = EffectClass::Keyed;
    Command::Start {
        step: StepIx::new(0),
        tool,
        class,
        call: Digest::ZERO,
        facts: None,
    }
}

fn plan(change: impl FnOnce(&mut Value)) -> (Document, History) {
    let mut plan = json!({"id": "p", "toolsRequired": ["r.read"], "steps": [
        {"id": "work", "agent": {"instruction": "do it"}},
    ]});
    change(&mut plan);
    let document = document(plan);
    let plan = Arc::new(Plan::compile(document.clone(), &Bounds::default()).unwrap());
    (document, History::begin(&plan, true))
}

fn fates(history: &History) -> Vec<CallFate> {
    let calls = history
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            RunEvent::AgentTurn { calls, .. } => Some(calls.iter().map(|call| call.fate.clone())),
            _ => None,
        });
    calls.flatten().collect()
}

/// An executor that wants one call it may not make and one that waits for a person, and then is
/// done.
pub(crate) fn story() -> (Document, History) {
    let (document, mut history) = plan(|_| {});
    history.give(&start(), Cause::Schedule).unwrap();
    let calls = vec![
        wanted("w.write", json!({"x": 1})),
        wanted("r.read", json!({"path": "${x}"})),
    ];
    history.give(&turn(1, None, calls), Cause::Command).unwrap();
    let CallFate::Run(run) = fates(&history)[1].clone() else {
        panic!("it is in scope")
    };
    assert_eq!(
        run,
        history.run.child_runs(StepIx::new(0)).call_place(1).child()
    );
    let parked = Command::Report {
        step: StepIx::new(0),
        attempt: 1,
        answer: CallReport::Parked { run },
    };
    history.give(&parked, Cause::Report).unwrap();
    history
        .give(&Command::ResumeChildren, Cause::Recovery)
        .unwrap();
    history.give(&start(), Cause::Schedule).unwrap();
    history
        .give(&turn(2, Some("done"), Vec::new()), Cause::Command)
        .unwrap();
    let answer = CallReport::Succeeded(StoredValue::Inline(Arc::new(json!("done"))));
    history
        .give(
            &Command::Report {
                step: StepIx::new(0),
                attempt: 2,
                answer,
            },
            Cause::Report,
        )
        .unwrap();
    history.give(&Command::Settle, Cause::Schedule).unwrap();
    (document, history)
}

#[test]
fn an_executor_is_told_what_it_may_not_call_and_goes_on_after_waiting() {
    let (_, history) = story();
    assert_eq!(history.run.status().as_str(), "completed");
    let CallFate::Refused(error) = &fates(&history)[0] else {
        panic!("it is outside the scope")
    };
    assert_eq!(
        error.message,
        "Tool w.write not available in plan scope. Only [r.read] are available."
    );
    let work = history.run.agent_work(StepIx::new(0)).unwrap();
    assert_eq!(
        (
            work.turns().len(),
            work.asked(),
            work.calls(),
            work.tokens()
        ),
        (2, 2, 2, 20)
    );
    assert_eq!(history.run.tokens(), 20);
    // The same from the journal alone.
    assert_eq!(
        history
            .fold(history.records.len())
            .run
            .agent_work(StepIx::new(0)),
        Some(work)
    );
}

#[test]
fn the_run_command_is_in_scope_only_if_it_is_listed() {
    let tools = |plan: Value| {
        document(plan)
            .agent_tools()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let steps = json!([
        {"tool": "local.run_command"}, {"tool": "run_command"}, {"tool": "mcp__x__run_command"}, {"tool": "read"},
        {"agent": {"instruction": "?", "tool": "run_command"}}, {"tool": "left", "skip": true},
    ]);
    assert_eq!(tools(json!({"steps": steps})), ["read"]);
    assert_eq!(
        tools(json!({"steps": steps, "toolsRequired": ["run_command"]})),
        ["run_command"]
    );
}

#[test]
fn calls_of_one_turn_are_charged_one_after_the_other() {
    let (_, mut history) = plan(|plan| plan["limits"] = json!({"budget": {"calls": 2}}));
    history.give(&start(), Cause::Schedule).unwrap();
    let calls = (0..4).map(|n| wanted("r.read", json!({"n": n}))).collect();
    history.give(&turn(1, None, calls), Cause::Command).unwrap();
    let refused = fates(&history)
        .iter()
        .filter(|fate| matches!(fate, CallFate::Refused(_)))
        .count();
    assert_eq!(refused, 2, "{:?}", fates(&history));
}

#[test]
fn nothing_is_wanted_of_a_step_that_is_not_in_flight_or_by_an_attempt_that_is_over() {
    let (_, mut history) = plan(|_| {});
    let early = history.give(&turn(1, None, Vec::new()), Cause::Command);
    assert!(matches!(early, Err(Refusal::NotInFlight { .. })));
    history.give(&start(), Cause::Schedule).unwrap();
    assert!(
        history
            .give(&turn(2, None, Vec::new()), Cause::Command)
            .is_err()
    );
    let by = planwright_core::principal::Principal::person("ada");
    history
        .give(&Command::Cancel { by }, Cause::Command)
        .unwrap();
    let late = turn(1, None, vec![wanted("r.read", json!({}))]);
    assert!(
        history.give(&late, Cause::Command).is_err(),
        "a cancelled run calls nothing more"
    );
}

#[test]
fn the_budget_of_tokens_stops_an_executor_before_its_next_question() {
    let (_, mut history) = plan(|plan| plan["limits"] = json!({"budget": {"tokens": 15}}));
    history.give(&start(), Cause::Schedule).unwrap();
    history
        .give(
            &turn(1, None, vec![wanted("r.read", json!({}))]),
            Cause::Command,
        )
        .unwrap();
    assert!(matches!(fates(&history)[0], CallFate::Run(_)));
    history
        .give(
            &turn(1, None, vec![wanted("r.read", json!({}))]),
            Cause::Command,
        )
        .unwrap();
    let CallFate::Refused(error) = &fates(&history)[1] else {
        panic!("the budget is used up")
    };
    assert_eq!(
        error.message,
        "Guard blocked: the budget of 15 tokens is used up"
    );
    assert_eq!(history.run.step(StepIx::new(0)).status().as_str(), "failed");
}

/// A run has no values here: what is literal needs none.
struct Nothing;

impl Values for Nothing {
    fn variable(&self, _: &str) -> Option<&Value> {
        None
    }

    fn step(&self, _: StepIx) -> Option<&Value> {
        None
    }
}

fn anything() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[${}a.\\[\\]]{0,12}",
        "\\$\\{secret\\.[A-Z]{1,3}\\}",
        ".{0,8}"
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[${}a]{0,4}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_model_writes_arrives_byte_for_byte(value in anything()) {
        let mut document = document(json!({"id": "p", "steps": [{"id": "call", "tool": "r.read"}]}));
        document.steps[0].args.insert("value".to_owned(), literal(value.clone()));
        let plan = Plan::compile(document, &Bounds::default()).unwrap();
        let args = plan.resolve_args(StepIx::new(0), &Nothing).unwrap();
        prop_assert_eq!(&args["value"], &value);
        prop_assert!(plan.all_secrets().is_empty());
    }
}

#[test]
fn a_run_says_how_many_calls_it_may_still_find_again() {
    let (_, history) = story();
    let run: &Run = &history.run;
    assert_eq!(run.child_runs(StepIx::new(0)).agent_calls().count(), 1);
    assert_eq!(
        run.child_runs(StepIx::new(0)).latest(),
        run.child_runs(StepIx::new(0)).agent_calls().last().cloned()
    );
}

/// What is decided about one call that is wanted like this.
fn decided(
    change: impl FnOnce(&mut WantedCallFacts),
    command: impl FnOnce(Wanted) -> Command,
) -> AgentCall {
    let (_, mut history) = plan(|_| {});
    history.give(&start(), Cause::Schedule).unwrap();
    let mut call = wanted("r.read", json!({}));
    change(call.known.as_mut().unwrap());
    history.give(&command(call), Cause::Command).unwrap();
    let turns = history.run.agent_work(StepIx::new(0)).unwrap().turns();
    turns[0].calls[0].clone()
}

fn for_client(mode: Mode, attended: bool) -> impl FnOnce(Wanted) -> Command {
    move |call| {
        let mut command = turn(1, None, vec![call]);
        if let Command::TakeTurn { client, .. } = &mut command {
            *client = Some(ClientTerms { mode, attended });
        }
        command
    }
}

fn refused_as(call: &AgentCall) -> Option<&str> {
    match &call.fate {
        CallFate::Refused(error) => Some(error.code.as_str()),
        CallFate::Run(_) => None,
    }
}

fn ask(known: &mut WantedCallFacts) {
    known.facts.judgement.verdict = Verdict::Ask;
}

#[test]
fn a_client_calls_what_policy_allows_in_every_mode() {
    for mode in [Mode::Observe, Mode::Warn, Mode::Enforce] {
        let call = decided(|_| (), for_client(mode, false));
        assert_eq!((refused_as(&call), &call.let_through), (None, &None));
    }
}

#[test]
fn a_client_calls_a_guarded_tool_only_where_that_is_merely_noted() {
    let guard = |known: &mut WantedCallFacts| known.guarded = Some("r.*".into());
    let call = decided(guard, for_client(Mode::Enforce, true));
    assert_eq!(refused_as(&call), Some("guarded_tool"));
    for mode in [Mode::Observe, Mode::Warn] {
        let call = decided(guard, for_client(mode, true));
        assert_eq!(refused_as(&call), None);
        let noted = call.let_through.unwrap();
        assert_eq!(noted.code.as_str(), "guarded_tool");
    }
}

#[test]
fn a_client_waits_for_a_person_only_where_one_can_be_asked() {
    let call = decided(ask, for_client(Mode::Enforce, false));
    assert_eq!(refused_as(&call), Some("needs_person"));
    let call = decided(ask, for_client(Mode::Enforce, true));
    assert_eq!(
        (refused_as(&call), &call.let_through),
        (None, &None),
        "the person is asked"
    );
    for attended in [false, true] {
        let call = decided(ask, for_client(Mode::Observe, attended));
        assert_eq!(refused_as(&call), None);
        let noted = call.let_through.unwrap();
        assert_eq!(noted.code.as_str(), "needs_person");
    }
}

#[test]
fn outside_the_scope_only_what_is_allowed_and_reads_needs_no_person() {
    let outside = |change: fn(&mut WantedCallFacts)| {
        let observed = |call| {
            let mut command = turn(1, None, vec![call]);
            if let Command::TakeTurn { observe, .. } = &mut command {
                *observe = true;
            }
            command
        };
        let call = decided(change, observed);
        assert_eq!(refused_as(&call), None);
        call.outside
    };
    fn elsewhere(known: &mut WantedCallFacts) {
        known.tool = name("x.read");
    }
    assert!(!outside(|_| ()), "it is in the scope");
    assert!(!outside(ask));
    assert!(!outside(elsewhere));
    assert!(outside(|known| {
        elsewhere(known);
        known.read_only = false;
    }));
    assert!(outside(|known| {
        elsewhere(known);
        ask(known);
    }));
}

#[test]
fn a_model_is_asked_as_often_as_the_step_says() {
    let (_, mut history) = plan(|plan| plan["steps"][0]["agent"]["maxTurns"] = json!(3));
    history.give(&start(), Cause::Schedule).unwrap();
    let status = |history: &History| history.run.step(StepIx::new(0)).status().as_str();
    for _ in 0..2 {
        let more = turn(1, None, vec![wanted("r.read", json!({}))]);
        history.give(&more, Cause::Command).unwrap();
        assert_eq!(status(&history), "running");
    }
    let last = turn(1, None, vec![wanted("r.read", json!({}))]);
    history.give(&last, Cause::Command).unwrap();
    assert_eq!(status(&history), "failed");
    let CallFate::Refused(error) = &fates(&history)[2] else {
        panic!("its turns are used up")
    };
    assert_eq!(error.code.as_str(), "too_many_turns");
}

#[test]
fn the_tokens_of_a_step_are_counted_over_all_its_turns() {
    let (_, mut history) = plan(|plan| plan["steps"][0]["agent"]["maxTokens"] = json!(20));
    history.give(&start(), Cause::Schedule).unwrap();
    let status = |history: &History| history.run.step(StepIx::new(0)).status().as_str();
    let more = || turn(1, None, vec![wanted("r.read", json!({}))]);
    history.give(&more(), Cause::Command).unwrap();
    assert_eq!(status(&history), "running");
    history.give(&more(), Cause::Command).unwrap();
    assert_eq!(status(&history), "failed");
    assert!(matches!(fates(&history)[1], CallFate::Refused(_)));
}

#[test]
fn a_step_tells_whether_its_executor_called_anything() {
    let work = |tool: &str| {
        let (_, mut history) = plan(|_| {});
        history.give(&start(), Cause::Schedule).unwrap();
        let call = turn(1, None, vec![wanted(tool, json!({}))]);
        history.give(&call, Cause::Command).unwrap();
        let work = history.run.agent_work(StepIx::new(0)).unwrap();
        (work.calls(), work.made_calls())
    };
    assert_eq!(work("r.read"), (1, true));
    assert_eq!(work("w.write"), (1, false), "it was refused");
}

#[test]
fn a_turn_that_no_attempt_can_have_taken_is_no_entry_of_the_journal() {
    let (_, mut history) = plan(|_| {});
    history.give(&start(), Cause::Schedule).unwrap();
    let command = turn(1, Some("hm"), Vec::new());
    let events = history.run.decide(&command, history.now).unwrap();
    let said = events
        .into_iter()
        .find(|event| matches!(event, RunEvent::AgentTurn { .. }))
        .unwrap();
    let fits = |history: &History, change: &dyn Fn(&mut u32, &mut u32)| {
        let mut entry = history.entries.last().unwrap().clone();
        entry.seq += 1;
        entry.event = said.clone();
        if let RunEvent::AgentTurn { turn, attempt, .. } = &mut entry.event {
            change(turn, attempt);
        }
        history.run.clone().apply(&entry).is_ok()
    };
    assert!(fits(&history, &|_, _| ()));
    assert!(!fits(&history, &|turn, _| *turn = 2));
    assert!(!fits(&history, &|_, attempt| *attempt = 2));
}

#[test]
fn an_agent_step_that_wanted_a_call_may_have_done_part_of_its_work_when_it_fails() {
    let failed = |calls: Vec<Wanted>| {
        let (_, mut history) = plan(|_| {});
        history.give(&start(), Cause::Schedule).unwrap();
        history.give(&turn(1, None, calls), Cause::Command).unwrap();
        let error = StepError::nothing_done();
        let report = Command::Report {
            step: StepIx::new(0),
            attempt: 1,
            answer: CallReport::Failed(error),
        };
        history.give(&report, Cause::Report).unwrap();
        let adjustable = history.run.reflection().adjustable();
        adjustable.progress(&"work".parse().unwrap())
    };
    assert_eq!(failed(Vec::new()), StepProgress::Failed);
    let called = failed(vec![wanted("r.read", json!({}))]);
    assert_eq!(called, StepProgress::Partial);
}
