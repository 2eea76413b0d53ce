//! Looking at a run before it ends, adjusting its plan, and going on with what was agreed to.

use crate::faults::FaultyStore;
use crate::world::{
    World, after, approve, approved, assert_waits_for_a_person, document, entries, options, person,
    status_of,
};
use planwright_core::adjust::Assessment;
use planwright_core::id::RunId;
use planwright_core::journal::StreamName;
use planwright_core::model::Message;
use planwright_core::planning::{SnapshotFile, WorkspaceSnapshot};
use planwright_core::policy::Policy;
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::review::{ReviewRefusal, ReviewStage, ReviewState};
use planwright_core::run::{Reflection, Run, RunEvent, RunReport, RunState, Shown};
use planwright_core::status::PlanStatus;
use planwright_engine::memory::{MemoryArtifacts, MemoryStore, ScriptedModel};
use planwright_engine::port::{BoxFuture, ModelError, OwnerId, StreamIndex as _, Surroundings};
use planwright_engine::{
    CheckCriteriaError, Editing, Engine, EngineBuilder, GivenApproval, RunOptions, StartRunError,
    Supervisor, SupervisorOptions,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn engine_of(world: &World, builder: EngineBuilder) -> Engine {
    let store = Arc::<MemoryStore>::clone(&world.store);
    let artifacts = Arc::<MemoryArtifacts>::clone(&world.artifacts);
    builder.store(store, artifacts).build()
}

fn engine(world: &World, name: &str, model: &ScriptedModel) -> Engine {
    engine_of(world, world.builder(name).model(Arc::new(model.clone())))
}

/// Policy agrees to what only reads.
fn engine_auto(world: &World, name: &str, model: &ScriptedModel) -> Engine {
    let policy = Policy::read(&serde_json::from_value(json!({"adjust": "auto"})).unwrap()).unwrap();
    engine_of(
        world,
        world
            .builder(name)
            .model(Arc::new(model.clone()))
            .policy(Arc::new(policy)),
    )
}

fn reflecting(max_cycles: u32) -> RunOptions {
    let reflection = Reflection {
        max_cycles,
        ..Reflection::default()
    };
    RunOptions {
        reflection: Some(reflection),
        ..options()
    }
}

fn says(assessment: &str, adjustments: Value) -> String {
    json!({"assessment": assessment, "reasoning": "because", "adjustments": adjustments})
        .to_string()
}

/// `a` is written, `b` fails with these arguments, `c` waits for it.
fn failing(tool: &str) -> Value {
    json!({"id": "p", "goal": "reach it", "steps": [
        {"id": "a", "tool": "w.write"},
        {"id": "b", "tool": tool, "dependsOn": ["a"], "args": {"fail": "no such file"}},
        {"id": "c", "tool": "w.write", "dependsOn": ["b"], "args": {"value": "got ${b}"}},
    ]})
}

fn retry_b() -> Value {
    json!([{"type": "retry", "step": "b", "args": {"value": "found"}}])
}

/// A model that has a new idea for `b` every time, and none that helps.
fn always_another_try() -> ScriptedModel {
    (0..10).fold(ScriptedModel::default(), |model, n| {
        let again = json!([{"type": "retry", "step": "b", "args": {"fail": "still", "n": n}}]);
        model.says(says("needs_adjustment", again))
    })
}

async fn start(engine: &Engine, plan: Value, options: RunOptions) -> Run {
    let id = approved(engine, plan).await;
    engine
        .runs()
        .start(&id, options)
        .await
        .unwrap()
        .wait()
        .await
        .unwrap()
}

fn kinds(world: &World, run: &RunId) -> Vec<&'static str> {
    let told = entries(&*world.store, run)
        .into_iter()
        .filter_map(|entry| match entry.event {
            RunEvent::ModelUsed { .. } => Some("used"),
            RunEvent::RunReflected { .. } => Some("reflected"),
            RunEvent::RunAdjusted { .. } => Some("adjusted"),
            RunEvent::RunFailed { .. } => Some("failed"),
            RunEvent::RunGivenUp { .. } => Some("given up"),
            RunEvent::RunCompleted { .. } => Some("completed"),
            _ => None,
        });
    told.collect()
}

fn given_up(world: &World, run: &Run) -> String {
    let reason = entries(&*world.store, run.id())
        .into_iter()
        .find_map(|entry| match entry.event {
            RunEvent::RunGivenUp { reason, .. } => Some(reason),
            _ => None,
        });
    reason.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_is_looked_at_once_and_retried_with_other_arguments_once_somebody_agreed() {
    let world = World::new();
    let model = ScriptedModel::default().says(says("needs_adjustment", retry_b()));
    let engine = engine(&world, "one", &model);
    let run = start(&engine, failing("w.write"), reflecting(3)).await;
    assert_eq!(
        (
            run.status().as_str(),
            *run.state() == RunState::Adjusted { version: 2 }
        ),
        ("adjusted", true)
    );
    assert_eq!(kinds(&world, run.id()), ["used", "reflected", "adjusted"]);

    // The new version is the reflector's, with its reasons, and no person agreed to it.
    let id = run.plan().id().clone();
    let (review, _) = engine.plans().load_review(&id).await.unwrap();
    assert_eq!(review.current().by.to_string(), "service reflector");
    assert_eq!(review.current().reason.as_deref(), Some("because"));
    assert_eq!(
        engine.plans().status(&review).await.unwrap().as_str(),
        "proposed"
    );
    let refused = engine.runs().resume(&id, options()).await.unwrap_err();
    assert!(
        matches!(refused, StartRunError::Refused(ReviewRefusal::NotApproved)),
        "{refused}"
    );

    // Only the change is asked about.
    let candidate = engine
        .plans()
        .candidate(&review, &Map::new())
        .await
        .unwrap();
    let asked = engine
        .runs()
        .reapproval(&review, &candidate)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(asked.since.version, 1);
    assert_eq!(
        asked
            .agreed
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["a", "c"]
    );
    assert_eq!(
        asked
            .diff
            .steps
            .iter()
            .map(|step| step.id.as_str())
            .collect::<Vec<_>>(),
        ["b"]
    );

    approve(&engine, &id, &person()).await;
    let went_on = engine
        .runs()
        .resume(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(went_on.status().as_str(), "completed");
    assert_eq!(world.called(), ["a", "b", "b", "c"]);
    assert_eq!(world.made()[3].args["value"], "got found");
    // It completed after an adjustment: the reflector does not look again.
    assert_eq!(
        (kinds(&world, went_on.id()), model.requests().len()),
        (vec!["completed"], 1)
    );
    let carried = went_on.start().reflection.clone().unwrap();
    assert_eq!(
        (carried.cycles, carried.continues.as_ref()),
        (1, Some(run.id()))
    );
    assert_eq!((carried.spent.calls, carried.spent.tokens), (2, 15));
}

/// A workspace with one file.
#[derive(Debug)]
struct OneFile;

impl Surroundings for OneFile {
    fn look(&self) -> BoxFuture<'static, WorkspaceSnapshot> {
        let file = SnapshotFile {
            path: "notes/reach.md".to_owned(),
            bytes: 12,
        };
        Box::pin(std::future::ready(WorkspaceSnapshot {
            files: vec![file],
            ..WorkspaceSnapshot::default()
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn the_reflector_is_told_which_files_there_are() {
    let world = World::new();
    let model = ScriptedModel::default().says(says("complete", json!([])));
    let builder = world.builder("one").model(Arc::new(model.clone()));
    let engine = engine_of(&world, builder.surroundings(Arc::new(OneFile)));
    start(&engine, failing("w.write"), reflecting(1)).await;
    let asked = model.requests();
    let Message::User { text } = &asked[0].messages[1] else {
        panic!("{asked:?}")
    };
    assert!(text.contains("notes/reach.md"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_went_well_is_looked_at_once_and_complete_ends_it() {
    let world = World::new();
    let model = ScriptedModel::default().says(says("complete", json!([])));
    let engine = engine(&world, "one", &model);
    let plan = json!({"id": "p", "steps": [{"id": "a", "tool": "r.read"}]});
    let run = start(&engine, plan, reflecting(3)).await;
    assert_eq!(
        (run.status().as_str(), kinds(&world, run.id())),
        ("completed", vec!["used", "reflected", "completed"])
    );
    assert_eq!(
        run.reflection().looked_at().unwrap().assessment,
        Assessment::Complete
    );
}

#[tokio::test(start_paused = true)]
async fn whatever_the_model_says_a_failed_step_stays_a_failure() {
    for answer in [
        says("complete", json!([])),
        says("on_track", json!([])),
        says("failed", json!([])),
    ] {
        let world = World::new();
        let model = ScriptedModel::default().says(answer.clone());
        let engine = engine(&world, "one", &model);
        let run = start(&engine, failing("w.write"), reflecting(3)).await;
        assert_eq!(
            (run.status().as_str(), kinds(&world, run.id())[1..].to_vec()),
            ("failed", vec!["reflected", "failed"])
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nonsense_and_silence_after_a_failed_step_are_never_a_success() {
    let unavailable = || ModelError::Unavailable {
        model: "m".into(),
        message: "down".into(),
    };
    for model in [
        ScriptedModel::default()
            .says("I think it went great!")
            .says("{\"assessment\": \"splendid\"}"),
        ScriptedModel::default().says("").says("[]"),
        ScriptedModel::default()
            .says(r#"{"assessment": "needs_adjustment", "adjustments": "all"}"#)
            .says("no"),
        ScriptedModel::default().then(Err(unavailable())),
        ScriptedModel::default(),
    ] {
        let world = World::new();
        let engine = engine(&world, "one", &model);
        let run = start(&engine, failing("w.write"), reflecting(3)).await;
        assert_eq!(run.status().as_str(), "failed");
        assert_eq!(
            run.reflection().looked_at().unwrap().assessment,
            Assessment::Unknown
        );
        assert_eq!(world.called(), ["a", "b"]);
    }
    // Where nothing failed, having no model to ask is no failure either.
    let world = World::new();
    let engine = engine(&world, "one", &ScriptedModel::default());
    let plan = json!({"id": "p", "steps": [{"id": "a", "tool": "r.read"}]});
    assert_eq!(
        start(&engine, plan, reflecting(3)).await.status().as_str(),
        "completed"
    );
}

#[tokio::test(start_paused = true)]
async fn off_track_without_adjustments_fails_with_the_reasoning() {
    for (plan, expected) in [
        (failing("w.write"), "off track: because"),
        (
            json!({"id": "p", "steps": [{"id": "a", "tool": "r.read"}]}),
            "off track: because",
        ),
    ] {
        let world = World::new();
        let model = ScriptedModel::default().says(says("off_track", json!([])));
        let engine = engine(&world, "one", &model);
        let run = start(&engine, plan, reflecting(3)).await;
        assert_eq!(
            (run.status().as_str(), given_up(&world, &run)),
            ("failed", expected.to_owned())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_nobody_wants_looked_at_asks_no_model() {
    let world = World::new();
    let model = ScriptedModel::default();
    let engine = engine(&world, "one", &model);
    let run = start(&engine, failing("w.write"), options()).await;
    assert_eq!(
        (run.status().as_str(), model.requests().len()),
        ("failed", 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_plan_can_ask_for_it_itself() {
    let world = World::new();
    let model = ScriptedModel::default().says(says("failed", json!([])));
    let engine = engine(&world, "one", &model);
    let mut plan = failing("w.write");
    plan["limits"] = json!({"onFailure": "reflect", "maxCycles": 2});
    let run = start(&engine, plan, options()).await;
    assert_eq!(
        (run.status().as_str(), model.requests().len()),
        ("failed", 1)
    );
    assert_eq!(run.start().reflection.as_ref().unwrap().max_cycles, 2);
    let well = json!({"id": "q", "limits": {"onFailure": "reflect"}, "steps": [{"id": "a", "tool": "r.read"}]});
    assert_eq!(
        (
            start(&engine, well, options()).await.status().as_str(),
            model.requests().len()
        ),
        ("completed", 1)
    );
}

/// A model that has always the same idea, as long as the run has cycles.
async fn cycle(world: &World, engine: &Engine, plan: Value, options: RunOptions) -> Vec<Run> {
    let mut runs = vec![start(engine, plan, options).await];
    while let RunState::Adjusted { .. } = runs.last().unwrap().state() {
        let last = runs.last().unwrap();
        let id = last.plan().id().clone();
        approve(engine, &id, &person()).await;
        runs.push(
            engine
                .runs()
                .continue_adjusted(last.id(), RunOptions::new(person()))
                .await
                .unwrap()
                .wait()
                .await
                .unwrap(),
        );
        assert!(runs.len() < 20, "{:?}", world.called());
    }
    runs
}

#[tokio::test(start_paused = true)]
async fn cycles_never_exceed_the_maximum() {
    for max in 1..4_u32 {
        let world = World::new();
        let model = always_another_try();
        let engine = engine(&world, "one", &model);
        let runs = cycle(&world, &engine, failing("w.write"), reflecting(max)).await;
        assert_eq!(
            (runs.len(), model.requests().len()),
            (max as usize + 1, max as usize)
        );
        assert_eq!(
            (runs.last().unwrap().status().as_str(), world.calls_of("a")),
            ("failed", 1)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_idea_twice_is_no_progress() {
    let world = World::new();
    let again = || says("needs_adjustment", json!([{"type": "retry", "step": "b"}]));
    let model = ScriptedModel::default()
        .says(again())
        .says(again())
        .says(again());
    let engine = engine(&world, "one", &model);
    let runs = cycle(&world, &engine, failing("w.write"), reflecting(10)).await;
    assert_eq!((runs.len(), world.calls_of("b")), (2, 2));
    let last = runs.last().unwrap();
    assert_eq!(last.status().as_str(), "failed");
    assert!(
        given_up(&world, last).contains("no progress"),
        "{}",
        given_up(&world, last)
    );
    // A step that is tried again as it is makes no other version, but it is agreed to anew.
    assert_eq!(runs[1].start().version, 1);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_tried_again_as_it_is_needs_consent_too() {
    let world = World::new();
    let model = ScriptedModel::default().says(says(
        "needs_adjustment",
        json!([{"type": "retry", "step": "b"}]),
    ));
    let engine = engine_auto(&world, "one", &model);
    let run = start(&engine, failing("w.write"), reflecting(3)).await;
    assert_eq!(*run.state(), RunState::Adjusted { version: 1 });
    let continuation = engine.runs().continuation(run.id()).await.unwrap().unwrap();
    assert!(continuation.diff.is_empty() && !continuation.by_policy);
    assert_eq!(
        continuation
            .again
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["b"]
    );
    assert!(
        engine
            .runs()
            .continue_adjusted(run.id(), options())
            .await
            .is_err()
    );
    assert_eq!(world.called(), ["a", "b"]);
    // Nothing but the run tells it from a plan that is over, and it is found all the same.
    let info = world
        .store
        .info(&StreamName::Plan(run.plan().id().clone()))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(info.status.status.as_str(), "opened");
    assert_eq!(
        engine.inbox().plans_awaiting_people().await.unwrap().plans,
        std::slice::from_ref(&info)
    );
    assert_eq!(
        engine
            .inbox()
            .plans_with_status(PlanStatus::Proposed)
            .await
            .unwrap(),
        [info]
    );
}

#[tokio::test(start_paused = true)]
async fn tokens_bound_the_whole_work() {
    let world = World::new();
    let model = always_another_try();
    let engine = engine(&world, "one", &model);
    // Every answer takes 15.
    let mut order = reflecting(10);
    order.reflection.as_mut().unwrap().max_tokens = Some(40);
    let runs = cycle(&world, &engine, failing("w.write"), order).await;
    assert_eq!(
        (
            runs.len(),
            model.requests().len(),
            runs.last().unwrap().status().as_str()
        ),
        (4, 3, "failed")
    );
}

#[tokio::test(start_paused = true)]
async fn budgets_hold_over_all_runs_of_the_same_work() {
    let world = World::new();
    let model = always_another_try();
    let engine = engine(&world, "one", &model);
    let mut plan = failing("w.write");
    plan["limits"] = json!({"budget": {"calls": 3}});
    let runs = cycle(&world, &engine, plan, reflecting(10)).await;
    assert_eq!(world.called().len(), 3);
    assert_eq!(runs.last().unwrap().status().as_str(), "failed");
}

#[tokio::test(start_paused = true)]
async fn policy_agrees_by_itself_to_what_only_reads_and_people_are_not_asked_again_about_the_rest()
{
    let look_first = json!([
        {"type": "add_before", "step": "b", "new": {"id": "look", "tool": "r.look", "args": {"value": "here"}}},
        {"type": "retry", "step": "b", "args": {"value": "${look}"}},
    ]);
    let world = World::new();
    let model = ScriptedModel::default().says(says("needs_adjustment", look_first));
    let engine = engine_auto(&world, "one", &model);
    let plan = json!({"id": "p", "steps": [
        {"id": "a", "tool": "w.write"},
        {"id": "slow", "tool": "r.read", "dependsOn": ["a"], "args": {"ms": 1000}},
        {"id": "b", "tool": "r.read", "dependsOn": ["a"], "args": {"fail": "no such file"}},
        {"id": "c", "tool": "w.write", "dependsOn": ["slow"]},
    ]});
    let run = start(&engine, plan, reflecting(3)).await;
    assert_eq!(run.status().as_str(), "adjusted");
    let went_on = engine
        .runs()
        .resume(run.plan().id(), options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        went_on.status().as_str(),
        "completed",
        "{:?}",
        RunReport::new(&went_on, went_on.updated_at())
    );
    let mut called = world.called();
    called.sort_unstable();
    assert_eq!(called, ["a", "b", "b", "c", "look", "slow"]);
    let consent = went_on.start().consent.clone().unwrap();
    assert!(
        consent
            .approved_by
            .iter()
            .all(|by| by.kind == PrincipalKind::Policy)
    );
    assert_eq!(
        consent.agreed.iter().collect::<Vec<_>>(),
        ["a", "c", "slow"]
    );
}

#[tokio::test(start_paused = true)]
async fn one_of_two_people_and_policy_are_not_two_people() {
    let answer = says(
        "needs_adjustment",
        json!([{"type": "retry", "step": "b", "args": {"value": "x"}}]),
    );
    let world = World::new();
    let model = ScriptedModel::default().says(answer);
    let rules = json!({"adjust": "auto", "approval": {"required": 2}});
    let policy = Policy::read(&serde_json::from_value(rules).unwrap()).unwrap();
    let engine = engine_of(
        &world,
        world
            .builder("one")
            .model(Arc::new(model))
            .policy(Arc::new(policy)),
    );
    let plan = json!({"id": "p", "steps": [
        {"id": "a", "tool": "r.read", "args": {"value": "evil"}},
        {"id": "slow", "tool": "r.read", "args": {"ms": 1000}},
        {"id": "b", "tool": "r.read", "args": {"fail": "no such file"}},
        {"id": "c", "tool": "w.write", "dependsOn": ["slow"], "args": {"to": "${a}"}},
    ]});
    let (review, _) = engine
        .plans()
        .propose(document(plan), &person())
        .await
        .unwrap();
    let agree = async |name: &str, choice: &str| {
        let (review, _) = engine.plans().load_review(review.id()).await.unwrap();
        let shown = Shown::Version(review.current().number);
        let mut given = GivenApproval::new(shown, Principal::person(name), Assurance::Terminal);
        given.late.insert("c".to_owned(), choice.parse().unwrap());
        engine
            .plans()
            .approve_on_terms(review.id(), &Map::new(), &given)
            .await
            .unwrap();
    };
    agree("bob", "args.to != 'evil'").await;
    agree("eve", "args.to != 'evil'").await;
    let run = engine
        .runs()
        .start(review.id(), reflecting(3))
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(run.status().as_str(), "adjusted");
    // One says yes to the change and to any value. Policy agrees too, and what the two had said
    // before still holds.
    agree("bob", "any").await;
    let went_on = engine
        .runs()
        .continue_adjusted(run.id(), options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (status_of(&went_on, "c"), world.calls_of("c")),
        ("failed", 0)
    );
    let consent = went_on.start().consent.clone().unwrap();
    assert!(
        consent
            .approved_by
            .iter()
            .all(|by| by.kind == PrincipalKind::Policy)
    );
    assert!(consent.agreed.contains("c"));
}

#[tokio::test(start_paused = true)]
async fn what_policy_agrees_to_after_an_adjustment_begins_no_other_run() {
    let answer = says(
        "needs_adjustment",
        json!([{"type": "retry", "step": "b", "args": {"value": "x"}}]),
    );
    let world = World::new();
    let model = ScriptedModel::default().says(answer);
    let rules = json!({"adjust": "auto", "approval": {"uses": 2, "expires_after": "1h"}});
    let policy = Policy::read(&serde_json::from_value(rules).unwrap()).unwrap();
    let engine = engine_of(
        &world,
        world
            .builder("one")
            .model(Arc::new(model))
            .policy(Arc::new(policy)),
    );
    let plan = json!({"id": "p", "steps": [
        {"id": "a", "tool": "w.write"},
        {"id": "b", "tool": "r.read", "dependsOn": ["a"], "args": {"fail": "no such file"}},
    ]});
    let run = start(&engine, plan, reflecting(3)).await;
    let went_on = engine
        .runs()
        .continue_adjusted(run.id(), options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(went_on.status().as_str(), "completed");
    let refused = engine
        .runs()
        .start(went_on.plan().id(), options())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, StartRunError::Refused(ReviewRefusal::NotApproved)),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn policy_never_agrees_to_tools_that_an_added_step_brings_to_an_executor() {
    let look_first = json!([
        {"type": "add_before", "step": "b", "new": {"id": "look", "tool": "r.look", "args": {"of": "ok"}}},
        {"type": "retry", "step": "b", "args": {"value": "x"}},
    ]);
    let rules = json!({"rules": [{"tool": "r.look", "if": "args.of != 'ok'", "then": "ask"}], "adjust": "auto"});
    let plan = json!({"id": "p", "steps": [
        {"id": "slow", "tool": "r.read", "args": {"ms": 1000}},
        {"id": "b", "tool": "r.read", "args": {"fail": "no such file"}},
        {"id": "work", "agent": {"instruction": "look around"}, "dependsOn": ["slow"]},
    ]});
    // With a list nothing is brought in.
    for (listed, by_policy) in [(json!([]), false), (json!(["r.read", "r.look"]), true)] {
        let model = ScriptedModel::default().says(says("needs_adjustment", look_first.clone()));
        let world = World::new();
        let policy = Policy::read(&serde_json::from_value(rules.clone()).unwrap()).unwrap();
        let engine = engine_of(
            &world,
            world
                .builder("one")
                .model(Arc::new(model))
                .policy(Arc::new(policy)),
        );
        let mut plan = plan.clone();
        plan["toolsRequired"] = listed;
        let run = start(&engine, plan, reflecting(3)).await;
        assert_eq!(run.status().as_str(), "adjusted");
        let continuation = engine.runs().continuation(run.id()).await.unwrap().unwrap();
        assert_eq!(continuation.by_policy, by_policy);
        assert_eq!(
            engine
                .runs()
                .continue_adjusted(run.id(), options())
                .await
                .is_ok(),
            by_policy
        );
    }
}

#[tokio::test(start_paused = true)]
async fn policy_never_agrees_to_a_write() {
    for adjustment in [
        json!([{"type": "retry", "step": "b", "args": {"value": "x"}}, {"type": "add_after", "step": "b", "new": {"tool": "w.erase"}}]),
        json!([{"type": "retry", "step": "b", "args": {"value": "x"}}, {"type": "modify", "step": "c", "args": {"value": "other"}}]),
        json!([{"type": "replace", "step": "b", "new": {"tool": "w.write"}}]),
        json!([{"type": "replace", "step": "b", "new": {"tool": "s.save"}}]),
        // Leaving out what failed is no success, and what was to come before a write is part of
        // what was agreed to.
        json!([{"type": "skip", "step": "b"}]),
        json!([{"type": "skip", "step": "b"}, {"type": "skip", "step": "c"}]),
        json!([{"type": "retry", "step": "b", "args": {"value": "fine"}}]),
    ] {
        let model = ScriptedModel::default().says(says("needs_adjustment", adjustment.clone()));
        let world = World::new();
        let engine = engine_auto(&world, "one", &model);
        let run = start(&engine, failing("r.read"), reflecting(3)).await;
        assert_eq!(run.status().as_str(), "adjusted", "{adjustment}");
        assert!(
            !engine
                .runs()
                .continuation(run.id())
                .await
                .unwrap()
                .unwrap()
                .by_policy,
            "{adjustment}"
        );
        assert_waits_for_a_person(&engine, run.id()).await;
        assert_eq!(world.called(), ["a", "b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_adjusted_is_refused_as_a_whole_and_the_run_fails() {
    let good = json!({"type": "retry", "step": "b", "args": {"value": "x"}});
    for bad in [
        json!({"type": "modify", "step": "a", "args": {"value": "other"}}),
        json!({"type": "skip", "step": "a"}),
        json!({"type": "replace", "step": "a", "new": {"tool": "r.read"}}),
        json!({"type": "add_before", "step": "a", "new": {"tool": "r.read"}}),
        json!({"type": "add_after", "step": "b", "new": {"tool": "no.such"}}),
        json!({"type": "add_after", "step": "b", "new": {"id": "c", "tool": "r.read"}}),
        json!({"type": "modify", "step": "zzz", "args": {}}),
        json!({"type": "retry", "step": "c"}),
        json!({"type": "modify", "step": "c", "args": {"value": "${nobody.knows}"}}),
        json!({"type": "skip", "step": "b"}),
    ] {
        let answer = says("needs_adjustment", json!([good, bad]));
        let model = ScriptedModel::default().says(answer.clone()).says(answer);
        let world = World::new();
        let engine = engine(&world, "one", &model);
        let run = start(&engine, failing("w.write"), reflecting(3)).await;
        assert_eq!(
            (run.status().as_str(), model.requests().len()),
            ("failed", 2),
            "{bad}"
        );
        assert!(
            given_up(&world, &run).contains("cannot be made"),
            "{}",
            given_up(&world, &run)
        );
        let (review, _) = engine.plans().load_review(run.plan().id()).await.unwrap();
        assert_eq!(
            (review.current().number, world.called()),
            (1, vec!["a".to_owned(), "b".to_owned()])
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_model_may_say_it_again_if_it_cannot_be_used() {
    let model = ScriptedModel::default()
        .says(says(
            "needs_adjustment",
            json!([{"type": "modify", "step": "a", "args": {}}]),
        ))
        .says(format!(
            "Sorry!\n```json\n{}\n```",
            says("needs_adjustment", retry_b())
        ));
    let world = World::new();
    let engine = engine(&world, "one", &model);
    let run = start(&engine, failing("w.write"), reflecting(3)).await;
    assert_eq!(
        (run.status().as_str(), kinds(&world, run.id())),
        ("adjusted", vec!["used", "used", "reflected", "adjusted"])
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_that_was_executed_after_a_skipped_step_is_executed_again() {
    let plan = json!({"id": "p", "steps": [
        {"id": "check", "tool": "r.read", "when": "false"},
        {"id": "write", "tool": "w.write", "dependsOn": ["check"]},
        {"id": "b", "tool": "w.write", "dependsOn": ["write"], "args": {"fail": "no"}},
    ]});
    let world = World::new();
    let model = ScriptedModel::default().says(says("needs_adjustment", retry_b()));
    let engine = engine(&world, "one", &model);
    let runs = cycle(&world, &engine, plan, reflecting(3)).await;
    assert_eq!(
        (runs[1].status().as_str(), world.called()),
        (
            "completed",
            vec!["write".to_owned(), "b".to_owned(), "b".to_owned()]
        )
    );
    assert_eq!(status_of(&runs[1], "check"), "skipped");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_for_people_and_not_for_a_model() {
    let plan = json!({"id": "p", "steps": [
        {"id": "u", "tool": "w.write", "timeoutSeconds": 1, "args": {"ms": 5000, "stop": "lost"}},
        {"id": "b", "tool": "r.read", "args": {"ms": 3000, "fail": "no"}},
    ]});
    let answer = says(
        "needs_adjustment",
        json!([{"type": "retry", "step": "b", "args": {}}]),
    );
    let world = World::new();
    let model = ScriptedModel::default().says(answer.clone()).says(answer);
    let engine = engine(&world, "one", &model);
    let run = start(&engine, plan, reflecting(3)).await;
    if status_of(&run, "u") == "outcome_unknown" {
        assert_eq!(run.status().as_str(), "failed");
        assert!(
            given_up(&world, &run).contains("is not known"),
            "{}",
            given_up(&world, &run)
        );
    }
    assert_eq!(world.calls_of("u"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_somebody_edits_meanwhile_is_not_adjusted() {
    let world = World::new();
    let model = ScriptedModel::default().says(says("needs_adjustment", retry_b()));
    let engine = engine(&world, "one", &model);
    let mut plan = failing("w.write");
    plan["steps"][1]["args"]["ms"] = json!(1000);
    let id = approved(&engine, plan.clone()).await;
    let mut handle = engine.runs().start(&id, reflecting(3)).await.unwrap();
    after(500).await;
    plan["title"] = json!("Another title");
    let editing = Editing {
        based_on: 1,
        by: person(),
        reason: None,
    };
    engine
        .plans()
        .edit(&id, serde_json::from_value(plan).unwrap(), &editing)
        .await
        .unwrap();
    let run = handle.wait().await.unwrap();
    assert_eq!(run.status().as_str(), "failed");
    assert!(
        given_up(&world, &run).contains("version 2 of it was made"),
        "{}",
        given_up(&world, &run)
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_can_be_cancelled_while_it_is_looked_at() {
    #[derive(Debug)]
    struct Slow;
    impl planwright_engine::port::Model for Slow {
        fn models(&self) -> Vec<planwright_engine::port::ModelInfo> {
            Vec::new()
        }
        fn resolve(
            &self,
            role: planwright_core::model::ModelRole,
            _: Option<&str>,
        ) -> Result<planwright_engine::port::ModelInfo, ModelError> {
            Err(ModelError::NotConfigured { role })
        }
        fn ask(
            &self,
            _: planwright_engine::port::ModelRequest,
        ) -> planwright_engine::port::BoxFuture<
            'static,
            Result<planwright_engine::port::ModelAnswer, ModelError>,
        > {
            Box::pin(std::future::pending())
        }
    }
    let world = World::new();
    let engine = engine_of(&world, world.builder("one").model(Arc::new(Slow)));
    let id = approved(&engine, failing("w.write")).await;
    let mut handle = engine.runs().start(&id, reflecting(3)).await.unwrap();
    after(100).await;
    handle.cancel(person()).await.unwrap();
    assert_eq!(handle.wait().await.unwrap().status().as_str(), "cancelled");
}

#[tokio::test(start_paused = true)]
async fn whenever_the_store_dies_the_work_goes_on_once() {
    let expected = ["a", "b", "b", "c"];
    for written in [false, true] {
        for at in 2..40 {
            let world = World::new();
            let model = || ScriptedModel::default().says(says("needs_adjustment", retry_b()));
            let mut plan = failing("s.save");
            (plan["steps"][0]["tool"], plan["steps"][2]["tool"]) =
                (json!("s.save"), json!("s.save"));
            let id = approved(&engine_auto(&world, "zero", &model()), plan).await;
            let faulty = FaultyStore::failing(&world, at, written);
            let policy =
                Policy::read(&serde_json::from_value(json!({"adjust": "auto"})).unwrap()).unwrap();
            let builder = world
                .builder("one")
                .model(Arc::new(model()))
                .policy(Arc::new(policy));
            let dying = faulty.engine_of(&world, builder);
            let first = match dying.runs().start(&id, reflecting(3)).await {
                Ok(mut handle) => handle.wait().await.ok(),
                Err(_) => None,
            };
            world.store.kill_owner(&OwnerId("one".into()));
            let died = first.is_none();
            // The next process finds it where it is.
            let next = engine_auto(&world, "two", &model());
            let (review, _) = next.plans().load_review(&id).await.unwrap();
            let Some(opened) = review.runs().last().cloned() else {
                continue;
            };
            let (mut run, _) = next.runs().load_run(&opened.run, &review).await.unwrap();
            for _ in 0..5 {
                if let RunState::Adjusted { .. } = run.state() {
                    let (review, _) = next.plans().load_review(&id).await.unwrap();
                    assert_eq!(review.current().number, 2, "crash at {at}");
                    approve(&next, &id, &person()).await;
                } else if run.state().is_terminal() {
                    break;
                }
                run = next
                    .runs()
                    .resume(&id, options())
                    .await
                    .unwrap()
                    .wait()
                    .await
                    .unwrap();
            }
            assert_eq!(
                run.status().as_str(),
                "completed",
                "crash at {at} ({written})"
            );
            let (review, _) = next.plans().load_review(&id).await.unwrap();
            assert_eq!(
                (review.versions().len(), review.runs().len()),
                (2, 2),
                "crash at {at}"
            );
            // Safe calls that were under way may be made again; what was done is not.
            let mut called = world.called();
            called.dedup();
            let mut once = expected.to_vec();
            once.dedup();
            assert_eq!(called, once, "crash at {at} ({written})");
            if !died {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_goes_on_when_the_change_is_approved_and_by_itself_where_policy_may() {
    let world = World::new();
    let model = ScriptedModel::default().says(says("needs_adjustment", retry_b()));
    let engine = engine(&world, "one", &model);
    let supervisor = Supervisor::start(engine.clone(), &SupervisorOptions::default());
    let id = approved(&engine, failing("w.write")).await;
    supervisor.start_run(&id, reflecting(3)).await.unwrap();
    after(5_000).await;
    assert_eq!(world.called(), ["a", "b"]);
    approve(&engine, &id, &person()).await;
    after(5_000).await;
    assert_eq!(world.called(), ["a", "b", "b", "c"]);
    let (review, _) = engine.plans().load_review(&id).await.unwrap();
    assert_eq!(
        engine.plans().status(&review).await.unwrap().as_str(),
        "completed"
    );

    let world = World::new();
    let model = ScriptedModel::default().says(says("needs_adjustment", retry_b()));
    let engine = engine_auto(&world, "one", &model);
    let supervisor = Supervisor::start(engine.clone(), &SupervisorOptions::default());
    let mut plan = failing("r.read");
    plan["steps"][2]["tool"] = json!("r.look");
    let id = approved(&engine, plan).await;
    supervisor.start_run(&id, reflecting(3)).await.unwrap();
    after(5_000).await;
    assert_eq!(world.called(), ["a", "b", "b", "c"]);
    let (review, _) = engine.plans().load_review(&id).await.unwrap();
    assert_eq!(review.state(), ReviewState::Active(ReviewStage::Proposed));
    let last = StreamName::Run(review.runs().last().unwrap().run.clone());
    assert_eq!(
        world
            .store
            .info(&last)
            .await
            .unwrap()
            .unwrap()
            .status
            .status
            .as_str(),
        "completed"
    );
}

#[tokio::test(start_paused = true)]
async fn an_adjustment_can_be_approved_with_the_order_to_go_on() {
    let world = World::new();
    let model = ScriptedModel::default().says(says("needs_adjustment", retry_b()));
    let engine = engine(&world, "one", &model);
    let run = start(&engine, failing("w.write"), reflecting(3)).await;
    let continuation = engine.runs().continuation(run.id()).await.unwrap().unwrap();
    let shown = Shown::Digest(continuation.candidate.digest);
    let approval = Some(GivenApproval::new(shown, person(), Assurance::Terminal));
    let went_on = engine
        .runs()
        .continue_adjusted(
            run.id(),
            RunOptions {
                approval,
                ..options()
            },
        )
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(went_on.status().as_str(), "completed");
    // It went on once: nothing is left to go on with.
    assert!(
        engine
            .runs()
            .continuation(run.id())
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        engine
            .runs()
            .continue_adjusted(run.id(), options())
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn criteria_are_decided_by_steps_that_say_so_and_asked_about_otherwise() {
    let plan = json!({"id": "p", "successCriteria": ["it was written", "it is right", "it is fast"], "steps": [
        {"id": "a", "tool": "w.write"},
        {"id": "check", "tool": "r.read", "labels": ["criterion:2"], "args": {"value": {"holds": false}}},
    ]});
    let answer = json!({"checks": [{"criterion": 1, "holds": true, "evidence": "step a says so"}]})
        .to_string();
    let world = World::new();
    let model = ScriptedModel::default().says(answer);
    let engine = engine(&world, "one", &model);
    let run = start(&engine, plan, options()).await;
    let checked = engine.runs().check_criteria(run.id(), None).await.unwrap();
    let holds: Vec<Option<bool>> = checked
        .reflection()
        .criteria()
        .iter()
        .map(|check| check.holds)
        .collect();
    assert_eq!(holds, [Some(true), Some(false), None]);
    assert_eq!(checked.status().as_str(), "completed");
    // It is in the journal, with what it took.
    let (review, _) = engine.plans().load_review(run.plan().id()).await.unwrap();
    let (read, _) = engine.runs().load_run(run.id(), &review).await.unwrap();
    assert_eq!(
        read.reflection().criteria(),
        checked.reflection().criteria()
    );
    // A model that cannot be asked: the result is unknown.
    let checked = engine.runs().check_criteria(run.id(), None).await.unwrap();
    let holds: Vec<Option<bool>> = checked
        .reflection()
        .criteria()
        .iter()
        .map(|check| check.holds)
        .collect();
    assert_eq!(holds, [None, Some(false), None]);
    let none = start(
        &engine,
        json!({"id": "q", "steps": [{"id": "a", "tool": "r.read"}]}),
        options(),
    )
    .await;
    assert!(matches!(
        engine.runs().check_criteria(none.id(), None).await,
        Err(CheckCriteriaError::NoCriteria)
    ));
}

#[tokio::test(start_paused = true)]
async fn a_verdict_that_is_too_large_to_read_is_none() {
    let said = json!({"holds": false, "because": "x".repeat(200_000)});
    let plan = json!({"id": "p", "successCriteria": ["it is right"], "steps": [
        {"id": "check", "tool": "r.read", "labels": ["criterion:1"], "args": {"value": said}},
    ]});
    let world = World::new();
    let model = ScriptedModel::default();
    let engine = engine(&world, "one", &model);
    let run = start(&engine, plan, options()).await;
    let checked = engine.runs().check_criteria(run.id(), None).await.unwrap();
    assert_eq!(
        checked.reflection().criteria()[0].holds,
        None,
        "{:?}",
        checked.reflection().criteria()
    );
    assert!(model.requests().is_empty());
}

fn replanning(max_replans: u32) -> RunOptions {
    let reflection = Reflection {
        max_replans,
        ..Reflection::default()
    };
    RunOptions {
        reflection: Some(reflection),
        ..options()
    }
}

#[tokio::test(start_paused = true)]
async fn the_remaining_work_is_planned_anew_once_and_what_was_done_stays_done() {
    let revised = |tool: &str, args: Value| {
        json!({"title": "Other", "steps": [{"id": "n", "tool": tool, "args": args, "dependsOn": []}]})
            .to_string()
    };
    let world = World::new();
    let model = ScriptedModel::default().says(revised("r.read", json!({"value": "other"})));
    let engine = engine(&world, "one", &model);
    let runs = cycle(&world, &engine, failing("w.write"), replanning(2)).await;
    assert_eq!(
        (runs.len(), runs[1].status().as_str()),
        (2, "completed"),
        "{:?}",
        world.called()
    );
    assert_eq!((world.calls_of("a"), world.calls_of("c")), (1, 0));
    let carried = runs[1].start().reflection.clone().unwrap();
    assert!(carried.replanned && carried.replans == 1 && runs[0].reflection().was_replanned());
    assert_eq!(kinds(&world, runs[0].id()), ["used", "adjusted"]);

    // A plan of that kind that fails is not planned anew once more, and neither is one that cannot
    // be written.
    let fails = revised("r.read", json!({"fail": "again"}));
    let world = World::new();
    let model = ScriptedModel::default().says(fails.clone()).says(fails);
    let engine = self::engine(&world, "one", &model);
    let runs = cycle(&world, &engine, failing("w.write"), replanning(5)).await;
    assert_eq!(
        (
            runs.len(),
            runs[1].status().as_str(),
            model.requests().len()
        ),
        (2, "failed", 1)
    );
    let world = World::new();
    let model = ScriptedModel::default();
    let engine = self::engine(&world, "one", &model);
    let run = start(&engine, failing("w.write"), replanning(5)).await;
    assert_eq!(run.status().as_str(), "failed");
    assert!(
        given_up(&world, &run).contains("could not be planned anew"),
        "{}",
        given_up(&world, &run)
    );
}
