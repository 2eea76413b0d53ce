//! Journals that were written once and must fold for ever: `tests/journals/v1/*.jsonl`, each with
//! the plan it is about and what it came to. New ones are written with UPDATE_GOLDEN=1; one that
//! exists is never written again, because somewhere there are journals like it.

use crate::run_files;
use crate::run_scenarios::Story;
use crate::run_world::History;
use planwright_core::adjust::Reflected;
use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::journal::{
    Cause, DecodeEntryError, Entry, Head, Journaled, Record, StreamName, decode, encode,
};
use planwright_core::model::{Cost, ModelRole, ModelUse, TokenUsage};
use planwright_core::plan::{Bounds, Document, Plan, StepIx, Values};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{
    PlanningRecord, Review, ReviewCommand, ReviewEvent, ReviewRefusal, Revision, RunRequest,
};
use planwright_core::run::{
    CallReport, Command as RunCommand, CriterionCheck, Look, Parent, Reflection, Run, RunEvent,
    Shown, Spent, StepError, StepErrorCode, StoredValue, plan_undo, priorities, unit_estimate,
};
use planwright_core::time::Timestamp;
use planwright_core::tool::{Catalog, EffectClass};
use planwright_core::trace::TraceId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;

/// The stories whose journals are kept.
const KEPT: [&str; 34] = [
    "chain",
    "diamond",
    "retry",
    "retry_succeeds",
    "timeout",
    "noncritical_failure",
    "critical_failure",
    "cancel_in_flight",
    "pause_resume",
    "unknown_happened",
    "unknown_did_not_happen",
    "unknown_run_again",
    "gate_approved",
    "gate_denied",
    "guard_calls",
    "optional_missing",
    "crash_by_class",
    "fork",
    "undo",
    "child_waits",
    "when",
    "loop",
    "loop_fails",
    "loop_crash",
    "loop_gated",
    "loop_skips",
    "input",
    "input_declined",
    "tool_asks",
    "stall_resume",
    "stall_given_up",
    "left_out",
    "queued",
    "crash_apart",
];

/// The run that takes `undo` back, as the work of a step of another run: both ways a run can belong
/// to another.
const UNDO_RUN: &str = "undo_run";

/// Journals of plans begin with this.
const REVIEW: &str = "review";
/// A plan that is discussed, sent back, expires, and is put away.
const REVIEW_LIFE: &str = "review_life";
/// A draft that is edited, proposed, approved, reworded, changed, restored and run.
const REVIEW_EDITED: &str = "review_edited";
/// A fallback that a person proposed, and a version that a model wrote.
const REVIEW_PLANNED: &str = "review_planned";
/// Approvals that are taken back, and lost with a token.
const REVIEW_REVOKED: &str = "review_revoked";
/// A run that was requested before the plan was approved, and one that was not started.
const REVIEW_REQUESTED: &str = "review_requested";
/// A run that goes on from another, is looked at, and is adjusted.
const REFLECTED: &str = "reflected";
/// A run that carries its consent, and asks about one call.
const CONSENT: &str = "consent";

/// An executor that is refused a call, waits for a person, and is done.
const AGENT: &str = "agent";

/// One line of a golden journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    seq: u64,
    at: Timestamp,
    epoch: u64,
    body: Value,
}

impl Line {
    fn record(&self) -> Record {
        Record {
            seq: self.seq,
            at: self.at,
            epoch: self.epoch,
            key: None,
            body: serde_json::to_vec(&self.body).unwrap(),
            hash: Digest::ZERO,
        }
    }
}

fn lines(name: &str) -> Vec<Line> {
    let text = run_files::read(&format!("journals/v1/{name}.jsonl"));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn json_of(name: &str, what: &str) -> Value {
    serde_json::from_str(&run_files::read(&format!("journals/v1/{name}.{what}.json"))).unwrap()
}

/// Reads a journal back, and makes sure that it would be written the same way today.
fn read_back<E: Journaled + Clone + std::fmt::Debug>(name: &str) -> Vec<Entry<E>> {
    let stream: StreamName = "run/run_golden".parse().unwrap();
    let read = |line: &Line| {
        let entry: Entry<E> =
            decode(&line.record()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = encode(
            Head::EMPTY,
            &stream,
            entry.at,
            entry.epoch,
            entry.cause,
            &entry.event,
        );
        let body: Value = serde_json::from_slice(&again.body).unwrap();
        assert_eq!(
            body, line.body,
            "{name}: entry {} is written differently today",
            line.seq
        );
        entry
    };
    lines(name).iter().map(read).collect()
}

fn fold(name: &str) -> Run {
    let document: Document = serde_json::from_value(json_of(name, "plan")).unwrap();
    let plan = Arc::new(Plan::compile(document, &Bounds::default()).unwrap());
    let entries = read_back::<RunEvent>(name);
    let id: RunId = "run_golden".parse().unwrap();
    let mut run = Run::open(
        id,
        Arc::clone(&plan),
        priorities(&plan, unit_estimate),
        &entries[0],
    )
    .unwrap();
    for entry in &entries[1..] {
        run.apply(entry)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    run
}

fn came_to(run: &Run) -> Value {
    let steps: serde_json::Map<String, Value> = run
        .plan()
        .indices()
        .map(|ix| {
            (
                run.plan().step_id(ix).to_string(),
                json!(run.step(ix).status().as_str()),
            )
        })
        .collect();
    json!({"status": run.status().as_str(), "stepsDigest": run.steps_digest(), "steps": steps})
}

fn review(name: &str) -> (Review, Vec<Entry<ReviewEvent>>) {
    let entries = read_back::<ReviewEvent>(name);
    let mut review = Review::open("plan-golden".parse().unwrap(), &entries[0]).unwrap();
    for entry in &entries[1..] {
        review.apply(entry).unwrap();
    }
    (review, entries)
}

fn review_came_to(review: &Review) -> Value {
    let rejections: Vec<Value> = review
        .rejections()
        .iter()
        .map(|r| json!({"version": r.version, "reason": r.reason}))
        .collect();
    json!({
        "state": review.state().status().as_str(),
        "version": review.current().number,
        "digest": review.current().digest,
        "rejections": rejections,
        "runs": review.runs().iter().map(|run| run.run.to_string()).collect::<Vec<_>>(),
        "unspent": review.approvals().iter().filter(|approval| approval.spent_by.is_empty()).count(),
    })
}

#[test]
fn every_golden_journal_folds_to_what_it_came_to() {
    let kept = run_files::names("journals/v1", "jsonl");
    assert!(kept.len() > KEPT.len(), "journals are missing: {kept:?}");
    for name in kept {
        let came_to = if name.starts_with(REVIEW) {
            review_came_to(&review(&name).0)
        } else {
            came_to(&fold(&name))
        };
        assert_eq!(came_to, json_of(&name, "expected"), "{name}");
    }
}

#[test]
fn an_unknown_kind_and_a_newer_version_are_refused() {
    let mut line = lines("chain").remove(1);
    line.body["v"] = json!(2);
    let newer = decode::<RunEvent>(&line.record()).unwrap_err();
    assert!(
        matches!(newer, DecodeEntryError::Newer { seq: 2, found: 2 }),
        "{newer}"
    );
    assert!(newer.to_string().contains("newer version"));

    let event = "/event/attempt_started";
    let broken = [
        (
            "/event".to_owned(),
            json!({"attempt_teleported": {"step": "a"}}),
        ),
        ("/event".to_owned(), json!("attempt_started")),
        ("/event".to_owned(), Value::Null),
        ("/v".to_owned(), json!("1")),
        ("/v".to_owned(), Value::Null),
        ("/cause".to_owned(), json!("whim")),
        (format!("{event}/step"), json!("../escaped")),
        (format!("{event}/attempt"), json!(-1)),
        (format!("{event}/class"), json!("harmless")),
        (format!("{event}/call"), json!("sha256:00")),
    ];
    for (pointer, value) in broken {
        let mut line = lines("chain").remove(1);
        *line.body.pointer_mut(&pointer).unwrap() = value.clone();
        let unreadable = decode::<RunEvent>(&line.record());
        assert!(
            matches!(unreadable, Err(DecodeEntryError::Unreadable { seq: 2, .. })),
            "{pointer} = {value}: {unreadable:?}"
        );
    }
    let mut line = lines("chain").remove(1);
    line.body.as_object_mut().unwrap().remove("v");
    assert!(
        decode::<RunEvent>(&line.record()).is_err(),
        "an entry without a version is refused"
    );
    assert!(
        decode::<ReviewEvent>(&lines("chain")[1].record()).is_err(),
        "a run's entry is no plan's entry"
    );
}

#[test]
fn what_a_later_version_adds_to_an_entry_is_not_lost_on_the_rest() {
    let mut line = lines("chain").remove(1);
    line.body["remark"] = json!("a field this version does not know");
    line.body["event"]["attempt_started"]["remark"] = json!("another");
    assert!(decode::<RunEvent>(&line.record()).is_ok());
}

/// The life of a plan from its first entry on, one second per entry.
pub(crate) fn live(first: &ReviewEvent, commands: &[ReviewCommand]) -> (Vec<Record>, Review) {
    let stream: StreamName = "plan/plan-golden".parse().unwrap();
    let at =
        |seq: u64| Timestamp::from_millis(1_700_000_000_000 + i64::try_from(seq).unwrap() * 1000);
    let mut records = vec![encode(
        Head::EMPTY,
        &stream,
        at(1),
        0,
        Cause::Command,
        first,
    )];
    let mut review = Review::open(
        "plan-golden".parse().unwrap(),
        &decode(&records[0]).unwrap(),
    )
    .unwrap();
    for command in commands {
        for event in review.decide(command, at(review.seq() + 1)).unwrap() {
            let head = records[records.len() - 1].head();
            let record = encode(head, &stream, at(head.seq + 1), 0, Cause::Command, &event);
            review.apply(&decode(&record).unwrap()).unwrap();
            records.push(record);
        }
    }
    (records, review)
}

/// A plan that is rejected twice, approved, run, changed, rejected for the third time and approved
/// after all.
fn write_review() -> (Vec<Record>, Review) {
    let agent = Principal::agent("planner");
    let ada = Principal::person("ada");
    let document = |title: &str| {
        Arc::new(Document {
            id: Some("plan-golden".parse().unwrap()),
            title: Some(title.to_owned()),
            ..Document::default()
        })
    };
    let digest = |version: u32| Digest::of_bytes(format!("version {version}").as_bytes());
    let propose = |version| ReviewCommand::Propose {
        document: document(&format!("Take {version}")),
        digest: digest(version),
        by: agent.clone(),
    };
    let reject = |version, reason: &str| ReviewCommand::Reject {
        shown: Shown::Version(version),
        digest: digest(version),
        by: ada.clone(),
        reason: reason.to_owned(),
    };
    let approve = |version| ReviewCommand::Approve {
        shown: Shown::Digest(digest(version)),
        digest: digest(version),
        by: ada.clone(),
        assurance: Assurance::Terminal,
        offer: Box::default(),
    };
    let commands = [
        reject(1, "no backup step"),
        propose(2),
        reject(2, "the backup goes to the same disk"),
        propose(3),
        approve(3),
        ReviewCommand::OpenRun {
            run: "run_golden".parse().unwrap(),
            digest: digest(3),
        },
        propose(4),
        reject(4, "why at all?"),
        approve(4),
    ];
    let first = Review::propose_first(document("Take 1"), digest(1), agent.clone());
    live(&first, &commands)
}

fn write_edited_review() -> (Vec<Record>, Review) {
    let agent = Principal::agent("planner");
    let ada = Principal::person("ada");
    let document = |title: &str, tools: &[&str]| {
        let step = |tool: &&str| json!({"id": tool, "tool": tool, "skip": *tool == "left_out"});
        let steps: Vec<Value> = tools.iter().map(step).collect();
        let value = json!({"id": "plan-golden", "title": title, "steps": steps});
        Arc::new(serde_json::from_value::<Document>(value).unwrap())
    };
    let digest = |doing: &str| Digest::of_bytes(doing.as_bytes());
    let edit = |based_on, document, doing, reason: Option<&str>, restored_from| {
        let by = ada.clone();
        let reason = reason.map(str::to_owned);
        let digest = digest(doing);
        ReviewCommand::Edit(Box::new(Revision {
            based_on,
            document,
            digest,
            by,
            reason,
            restored_from,
            planning: None,
        }))
    };
    let approve = |doing| ReviewCommand::Approve {
        shown: Shown::Digest(digest(doing)),
        digest: digest(doing),
        by: ada.clone(),
        assurance: Assurance::WebSignIn,
        offer: Box::default(),
    };
    let commands = [
        edit(
            1,
            document("Take 2", &["read", "left_out"]),
            "read",
            None,
            None,
        ),
        ReviewCommand::ProposeDraft { by: agent.clone() },
        approve("read"),
        edit(
            2,
            document("Take 3", &["read", "left_out"]),
            "read",
            Some("other words"),
            None,
        ),
        edit(
            3,
            document("Take 3", &["read", "write"]),
            "both",
            Some("it has to write"),
            None,
        ),
        approve("both"),
        edit(
            4,
            document("Take 3", &["read", "left_out"]),
            "read",
            Some("not yet"),
            Some(3),
        ),
        approve("read"),
        ReviewCommand::OpenRun {
            run: "run_golden".parse().unwrap(),
            digest: digest("read"),
        },
    ];
    let first = Review::draft_first(document("Take 1", &[]), digest("nothing"), agent);
    live(&first, &commands)
}

/// A draft that no model wrote, proposed by a person, then written again by a model in two rounds.
fn write_planned_review() -> (Vec<Record>, Review) {
    let agent = Principal::agent("planner");
    let ada = Principal::person("ada");
    let document = |tool: &str| {
        let value =
            json!({"id": "plan-golden", "title": "Planned", "steps": [{"id": "s1", "tool": tool}]});
        Arc::new(serde_json::from_value::<Document>(value).unwrap())
    };
    let used = |input, cost| ModelUse {
        role: ModelRole::Planner,
        model: "some/model".to_owned(),
        usage: TokenUsage {
            input,
            output: 50,
            cached: 0,
            estimated: false,
        },
        cost,
    };
    let planning = PlanningRecord {
        model: Some("some/model".to_owned()),
        rounds: 2,
        used: vec![used(900, Some(Cost(1_200))), used(1_000, None)],
        explored: None,
        fallback: false,
    };
    let first = Review::draft_first(document("guess"), Digest::of_bytes(b"guess"), agent.clone());
    let first = first.planned(Some(Box::new(PlanningRecord::fallback())));
    let revision = Revision {
        based_on: 1,
        document: document("read"),
        digest: Digest::of_bytes(b"read"),
        by: agent,
        reason: Some("use the right tool".to_owned()),
        restored_from: None,
        planning: Some(Box::new(planning)),
    };
    live(
        &first,
        &[
            ReviewCommand::ProposeDraft { by: ada },
            ReviewCommand::Edit(Box::new(revision)),
        ],
    )
}

fn write_requested_review() -> (Vec<Record>, Review) {
    let ada = Principal::person("ada");
    let agent = Principal::agent("planner");
    let digest = Digest::of_bytes(b"requested");
    let document = json!({"id": "plan-golden", "steps": [{"id": "s1", "tool": "write"}]});
    let document = Arc::new(serde_json::from_value::<Document>(document).unwrap());
    let request = |variables: Value, trace| {
        ReviewCommand::RequestRun(Box::new(RunRequest {
            digest,
            variables: variables.as_object().cloned().unwrap_or_default(),
            by: agent.clone(),
            trace,
        }))
    };
    let approve = ReviewCommand::Approve {
        shown: Shown::Digest(digest),
        digest,
        by: ada,
        assurance: Assurance::Terminal,
        offer: Box::default(),
    };
    let open = ReviewCommand::OpenRun {
        run: "run_golden".parse().unwrap(),
        digest,
    };
    live(
        &Review::propose_first(document, digest, agent.clone()),
        &[
            request(json!({}), None),
            approve,
            open,
            request(json!({ "who": "world" }), Some(TraceId::of_name("golden"))),
        ],
    )
}

#[test]
fn a_fallback_is_proposed_by_a_person_or_not_at_all() {
    let (records, _) = write_planned_review();
    let draft = Review::open(
        "plan-golden".parse().unwrap(),
        &decode(&records[0]).unwrap(),
    )
    .unwrap();
    assert!(draft.current().is_fallback());
    let propose = |by| {
        draft.decide(
            &ReviewCommand::ProposeDraft { by },
            Timestamp::from_millis(0),
        )
    };
    assert_eq!(
        propose(Principal::agent("planner")),
        Err(ReviewRefusal::Fallback)
    );
    assert!(propose(Principal::person("ada")).is_ok());
}

/// The undo of a run, with the document that was derived for it in its first entry.
fn write_undo_run() -> (Document, History) {
    let mut story = run_files::read("scenarios/undo.txt");
    story.truncate(story.find("> undo run_u as agent").unwrap());
    let (_, original) = Story::read(&story).tell();
    let undo = plan_undo(&original.run, &Nothing, &Catalog::default()).unwrap();
    let plan = Arc::new(Plan::compile(undo.document.clone(), &Bounds::default()).unwrap());
    let started = RunEvent::RunStarted {
        plan: plan.id().clone(),
        version: 1,
        digest: Digest::of_bytes(b"undo"),
        variables: serde_json::Map::new(),
        max_concurrency: 1,
        guards: true,
        by: Principal::person("ada"),
        consent: None,
        forked_from: None,
        undoes: Some(original.run.id().clone()),
        parent: Some(Box::new(Parent {
            run: "run_parent".parse().unwrap(),
            step: "tidy".parse().unwrap(),
            index: Some(2),
            call: None,
            outside: false,
        })),
        document: Some(Arc::new(undo.document.clone())),
        trace: None,
        reflection: None,
        call_timeout_ms: None,
        stepwise: false,
    };
    let mut history = History::begin_with(&plan, "run_golden".parse().unwrap(), started);
    for ix in plan.indices() {
        let tool = plan.step(ix).tool.clone().unwrap().try_into().unwrap();
        let start = RunCommand::Start {
            step: ix,
            tool,
            class: EffectClass::Unsafe,
            call: Digest::ZERO,
            facts: None,
        };
        history.give(&start, Cause::Schedule).unwrap();
        let answer = CallReport::Succeeded(StoredValue::Inline(Arc::new(json!("taken back"))));
        history
            .give(
                &RunCommand::Report {
                    step: ix,
                    attempt: 1,
                    answer,
                },
                Cause::Report,
            )
            .unwrap();
    }
    history.give(&RunCommand::Settle, Cause::Schedule).unwrap();
    (undo.document, history)
}

/// A step fails, the reflector looks at it, and the plan is adjusted.
fn write_reflected_run() -> (Document, History) {
    let document: Document = serde_json::from_value(json!({
        "id": "golden", "goal": "see it", "successCriteria": ["it is seen"],
        "steps": [{"id": "a", "tool": "t.a"}, {"id": "b", "tool": "t.b", "dependsOn": ["a"], "args": {"x": 1}}],
    }))
    .unwrap();
    let plan = Arc::new(Plan::compile(document.clone(), &Bounds::default()).unwrap());
    let reflection = Reflection {
        max_cycles: 3,
        max_replans: 1,
        cycles: 1,
        continues: Some("run_before".parse().unwrap()),
        max_tokens: Some(10_000),
        tried: vec![Digest::of_bytes(b"tried")],
        spent: Spent {
            calls: 2,
            tokens: 30,
            millis: 1_500,
            per_tool: [("t.a".to_owned(), 2)].into(),
            same_call: [(Digest::of_bytes(b"call"), 2)].into(),
        },
        ..Reflection::default()
    };
    let started = RunEvent::RunStarted {
        plan: plan.id().clone(),
        version: 1,
        digest: Digest::of_bytes(b"reflected"),
        variables: serde_json::Map::new(),
        max_concurrency: 1,
        guards: true,
        by: Principal::person("ada"),
        consent: None,
        forked_from: None,
        undoes: None,
        parent: None,
        document: None,
        trace: None,
        reflection: Some(Box::new(reflection)),
        call_timeout_ms: None,
        stepwise: false,
    };
    let mut history = History::begin_with(&plan, "run_golden".parse().unwrap(), started);
    let answers = [
        CallReport::Succeeded(StoredValue::Inline(Arc::new(json!("seen")))),
        CallReport::Failed(StepError::new(StepErrorCode::ToolError, "no")),
    ];
    for (ix, answer) in plan.indices().zip(answers) {
        let tool = plan.step(ix).tool.clone().unwrap().try_into().unwrap();
        let start = RunCommand::Start {
            step: ix,
            tool,
            class: EffectClass::Safe,
            call: Digest::ZERO,
            facts: None,
        };
        history.give(&start, Cause::Schedule).unwrap();
        history
            .give(
                &RunCommand::Report {
                    step: ix,
                    attempt: 1,
                    answer,
                },
                Cause::Report,
            )
            .unwrap();
    }
    assert!(history.run.reflection().next_look() == Some(Look::Reflect));
    let used = ModelUse {
        role: ModelRole::Reflector,
        model: "some/model".into(),
        usage: TokenUsage {
            input: 100,
            output: 20,
            cached: 0,
            estimated: false,
        },
        cost: Some(Cost(12)),
    };
    let text = json!({"assessment": "needs_adjustment", "reasoning": "it looks elsewhere", "adjustments": [
        {"type": "retry", "step": "b", "args": {"x": 2}},
        {"type": "add_before", "step": "b", "new": {"id": "n", "tool": "t.n"}},
    ]});
    let reflected = Box::new(Reflected::read(&text.to_string(), &Bounds::default()).unwrap());
    let command = RunCommand::Reflect {
        reflected,
        used: vec![used.clone()],
        problem: None,
    };
    history.give(&command, Cause::Report).unwrap();
    history.give(&RunCommand::Settle, Cause::Schedule).unwrap();
    let adjust = RunCommand::Adjust {
        version: 2,
        replanned: false,
        used: Vec::new(),
    };
    history.give(&adjust, Cause::Report).unwrap();
    let check = CriterionCheck {
        criterion: "it is seen".into(),
        holds: None,
        evidence: "who knows".into(),
    };
    let noted = RunCommand::NoteCriteria {
        checks: vec![check],
        used: vec![used],
    };
    history.give(&noted, Cause::Command).unwrap();
    (document, history)
}

struct Nothing;

impl Values for Nothing {
    fn variable(&self, _: &str) -> Option<&Value> {
        None
    }

    fn step(&self, _: StepIx) -> Option<&Value> {
        None
    }
}

fn keep(name: &str, records: &[Record], plan: &Document, expected: &Value) {
    let mut text = String::new();
    for record in records {
        let body = serde_json::from_slice(&record.body).unwrap();
        let line = Line {
            seq: record.seq,
            at: record.at,
            epoch: record.epoch,
            body,
        };
        writeln!(text, "{}", serde_json::to_string(&line).unwrap()).unwrap();
    }
    let pretty = |value: &Value| format!("{}\n", serde_json::to_string_pretty(value).unwrap());
    run_files::write(&format!("journals/v1/{name}.jsonl"), &text);
    run_files::write(
        &format!("journals/v1/{name}.plan.json"),
        &pretty(&serde_json::to_value(plan).unwrap()),
    );
    run_files::write(
        &format!("journals/v1/{name}.expected.json"),
        &pretty(expected),
    );
}

#[test]
fn journals_that_are_missing_are_written_on_request() {
    if run_files::setting("UPDATE_GOLDEN").is_none() {
        return;
    }
    let kept = run_files::names("journals/v1", "jsonl");
    for name in KEPT
        .iter()
        .filter(|name| !kept.iter().any(|kept| kept == *name))
    {
        let story = Story::read(&run_files::read(&format!("scenarios/{name}.txt")));
        let document = story.document.clone();
        let (_, history) = story.tell();
        keep(name, &history.records, &document, &came_to(&history.run));
    }
    if !kept.iter().any(|kept| kept == CONSENT) {
        let (history, document) = crate::consent_rules::asked_story();
        keep(CONSENT, &history.records, &document, &came_to(&history.run));
    }
    if !kept.iter().any(|kept| kept == REFLECTED) {
        let (document, history) = write_reflected_run();
        keep(
            REFLECTED,
            &history.records,
            &document,
            &came_to(&history.run),
        );
    }
    if !kept.iter().any(|kept| kept == AGENT) {
        let (document, history) = crate::agents::story();
        keep(AGENT, &history.records, &document, &came_to(&history.run));
    }
    if !kept.iter().any(|kept| kept == UNDO_RUN) {
        let (document, history) = write_undo_run();
        keep(
            UNDO_RUN,
            &history.records,
            &document,
            &came_to(&history.run),
        );
    }
    if !kept.iter().any(|kept| kept == REVIEW_LIFE) {
        let (records, review) = crate::review_life::story();
        keep(
            REVIEW_LIFE,
            &records,
            &review.current().document,
            &review_came_to(&review),
        );
    }
    if !kept.iter().any(|kept| kept == REVIEW_EDITED) {
        let (records, review) = write_edited_review();
        keep(
            REVIEW_EDITED,
            &records,
            &review.current().document,
            &review_came_to(&review),
        );
    }
    if !kept.iter().any(|kept| kept == REVIEW_PLANNED) {
        let (records, review) = write_planned_review();
        keep(
            REVIEW_PLANNED,
            &records,
            &review.current().document,
            &review_came_to(&review),
        );
    }
    if !kept.iter().any(|kept| kept == REVIEW_REVOKED) {
        let (records, review) = crate::revocations::story();
        keep(
            REVIEW_REVOKED,
            &records,
            &review.current().document,
            &review_came_to(&review),
        );
    }
    if !kept.iter().any(|kept| kept == REVIEW_REQUESTED) {
        let (records, review) = write_requested_review();
        keep(
            REVIEW_REQUESTED,
            &records,
            &review.current().document,
            &review_came_to(&review),
        );
    }
    if !kept.iter().any(|kept| kept == REVIEW) {
        let (records, review) = write_review();
        keep(
            REVIEW,
            &records,
            &review.current().document,
            &review_came_to(&review),
        );
    }
}
