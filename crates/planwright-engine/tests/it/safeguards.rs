//! What narrows a plan is never dropped, a person's pause is a person's to lift, and a step that
//! others wait for is left out only by those who may agree to them.

use crate::world::{
    World, after, approve, approved, assert_waits_for_a_person, candidate_of, document, options,
    person, status_of,
};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_core::policy::{Policy, PolicyDocument, RolesTable};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::ReviewRefusal;
use planwright_core::run::{Reflection, Refusal, Run, RunState, Shown};
use planwright_engine::memory::ScriptedModel;
use planwright_engine::port::StreamIndex as _;
use planwright_engine::{
    CommandError, Engine, PlannerOptions, RegenerateOrder, RunCommand, RunHandle, RunOptions,
    StartRunError,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// An engine whose policy allows everything and agrees to adjustments by itself.
fn engine(world: &World, model: ScriptedModel) -> Engine {
    let allows = json!({"rules": [{"tool": "*", "then": "allow"}], "adjust": "auto"});
    let policy: PolicyDocument = serde_json::from_value(allows).unwrap();
    world
        .builder("one")
        .store(
            Arc::clone(&world.store) as _,
            Arc::clone(&world.artifacts) as _,
        )
        .model(Arc::new(model))
        .policy(Arc::new(Policy::read(&policy).unwrap()))
        .build()
}

fn agent() -> Principal {
    Principal::agent("bot")
}

/// Runs the plan if policy alone lets it.
async fn run_by_policy(engine: &Engine, id: &PlanId) -> Result<Run, StartRunError> {
    let (review, candidate) = candidate_of(engine, id).await;
    let approval = engine.plans().consent_of_policy(&review, &candidate);
    let options = RunOptions {
        approval,
        ..options()
    };
    let mut handle = engine.runs().start(id, options).await?;
    Ok(handle.wait().await.unwrap())
}

async fn propose(engine: &Engine, plan: Value) -> PlanId {
    let proposed = engine.plans().propose(document(plan), &agent()).await;
    proposed.unwrap().0.id().clone()
}

fn with_check(check: bool) -> Value {
    let mut first = json!({"id": "a", "tool": "r.read", "args": {"value": "ok"}});
    if check {
        first["expect"] = json!("result == 'fine'");
    }
    json!({"id": "p", "goal": "g", "steps": [first,
        {"id": "b", "tool": "w.write", "dependsOn": ["a"]}]})
}

#[tokio::test(start_paused = true)]
async fn policy_that_allows_everything_runs_no_version_that_lost_a_check() {
    let world = World::new();
    let engine = engine(&world, ScriptedModel::default());
    let id = propose(&engine, with_check(true)).await;
    let run = run_by_policy(&engine, &id).await.unwrap();
    assert_eq!((run.status().as_str(), world.calls_of("b")), ("failed", 0));
    propose(&engine, with_check(false)).await;
    let refused = run_by_policy(&engine, &id).await.unwrap_err();
    assert!(
        matches!(refused, StartRunError::Refused(ReviewRefusal::NotApproved)),
        "{refused}"
    );
    assert_eq!(
        world.calls_of("b"),
        0,
        "no person agreed to do without the check"
    );
    approve(&engine, &id, &person()).await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    assert_eq!(handle.wait().await.unwrap().status().as_str(), "completed");
    assert_eq!(world.calls_of("b"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_plan_whose_child_lost_a_check_needs_a_person_too() {
    let world = World::new();
    let engine = engine(&world, ScriptedModel::default());
    let mut child = with_check(true);
    child["id"] = json!("child");
    propose(&engine, child.clone()).await;
    let parent = json!({"id": "p", "steps": [{"id": "c", "plan": {"id": "child"}}]});
    let id = propose(&engine, parent).await;
    let run = run_by_policy(&engine, &id).await.unwrap();
    assert_eq!((run.status().as_str(), world.calls_of("b")), ("failed", 0));
    child["steps"][0].as_object_mut().unwrap().remove("expect");
    propose(&engine, child).await;
    let refused = run_by_policy(&engine, &id).await.unwrap_err();
    assert!(matches!(refused, StartRunError::Refused(_)), "{refused}");
    assert_eq!(world.calls_of("b"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_regenerated_is_still_asked_about_at_its_gate() {
    let world = World::new();
    let model = ScriptedModel::default().says(
        r#"{"title": "T", "steps": [{"id": "b", "tool": "w.erase", "args": {}, "dependsOn": []}]}"#,
    );
    let engine = engine(&world, model);
    let id = propose(
        &engine,
        json!({"id": "p", "goal": "g", "steps": [
            {"id": "a", "tool": "r.read", "args": {}, "expect": "true"},
            {"id": "b", "tool": "w.write", "args": {}, "dependsOn": ["a"], "approvalRequired": true,
             "constraints": ["true"], "retry": {"max": 1}, "timeoutSeconds": 9.0, "expect": "true",
             "undo": {"tool": "w.erase"}, "capability": "erases"}]}),
    )
    .await;
    let order = RegenerateOrder {
        by: agent(),
        steps: vec!["b".to_owned()],
        feedback: None,
        any_tool: false,
        options: PlannerOptions::default(),
    };
    let done = engine.planner().regenerate(&id, order).await.unwrap();
    let current = &done.review.current().document;
    let first = engine.plans().load_version(&done.review, 1).await;
    let first = first.unwrap().unwrap();
    let old = &first.document.steps[1];
    let new = &current.steps[1];
    assert_eq!(new.tool.as_deref(), Some("w.erase"));
    assert_eq!(done.diff.safeguards, []);
    assert_eq!(
        (
            &new.constraints,
            &new.retry,
            new.timeout_seconds,
            &new.expect,
            &new.undo
        ),
        (
            &old.constraints,
            &old.retry,
            old.timeout_seconds,
            &old.expect,
            &old.undo
        )
    );
    assert_eq!(
        (&new.capability, &new.depends_on),
        (&old.capability, &old.depends_on)
    );
    approve(&engine, &id, &person()).await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    let run = handle.wait().await.unwrap();
    assert_eq!(
        (
            run.status().as_str(),
            status_of(&run, "b"),
            world.calls_of("b")
        ),
        ("waiting", "awaiting_approval", 0)
    );
}

/// A run of steps that only read, whose second step fails, and what the model makes of the rest.
async fn adjusted(world: &World, reflection: Reflection, answer: String) -> (Engine, Run) {
    let engine = engine(world, ScriptedModel::default().says(answer));
    let plan = json!({"id": "p", "goal": "g", "steps": [
        {"id": "a", "tool": "r.read"},
        {"id": "b", "tool": "r.read", "dependsOn": ["a"], "args": {"fail": "no such file"}},
        {"id": "c", "tool": "r.read", "dependsOn": ["b"], "retry": {"max": 2}, "expect": "result != null"},
    ]});
    let id = approved(&engine, plan).await;
    let options = RunOptions {
        reflection: Some(reflection),
        ..options()
    };
    let mut handle = engine.runs().start(&id, options).await.unwrap();
    let run = handle.wait().await.unwrap();
    assert_eq!(run.status().as_str(), "adjusted");
    (engine, run)
}

fn says(adjustments: &Value) -> String {
    json!({"assessment": "needs_adjustment", "reasoning": "so", "adjustments": adjustments})
        .to_string()
}

#[tokio::test(start_paused = true)]
async fn policy_agrees_to_a_replacement_that_keeps_its_checks_and_not_to_a_plan_that_drops_them() {
    let reflecting = Reflection {
        max_cycles: 3,
        ..Reflection::default()
    };
    let retry = json!({"type": "retry", "step": "b", "args": {"value": "x"}});
    let replaced = json!([retry, {"type": "replace", "step": "c", "new": {"tool": "r.look"}}]);
    let world = World::new();
    let (engine, run) = adjusted(&world, reflecting, says(&replaced)).await;
    let (review, _) = engine.plans().load_review(run.plan().id()).await.unwrap();
    let c = &review.current().document.steps[2];
    assert_eq!(c.tool.as_deref(), Some("r.look"));
    assert_eq!(c.expect.as_deref(), Some("result != null"));
    assert_eq!(c.retry.as_ref().unwrap().max, 2);
    let how = engine.runs().continuation(run.id()).await.unwrap().unwrap();
    assert!(how.by_policy && how.diff.safeguards.is_empty());

    // The rest is planned anew under other ids: the check of `c` is gone with it.
    let replanning = Reflection {
        max_replans: 1,
        ..Reflection::default()
    };
    let anew = json!({"title": "T", "steps": [
        {"id": "n", "tool": "r.read", "args": {"value": "x"}, "dependsOn": []}]});
    let world = World::new();
    let (engine, run) = adjusted(&world, replanning, anew.to_string()).await;
    let how = engine.runs().continuation(run.id()).await.unwrap().unwrap();
    assert!(!how.by_policy, "{:?}", how.diff.safeguards);
    assert_eq!(how.diff.safeguards[0].to_string(), "step c: expect removed");
    let calls = world.made().len();
    assert_waits_for_a_person(&engine, run.id()).await;
    assert_eq!(world.made().len(), calls);
}

/// A run that stands still because of this principal, before its second step.
async fn paused(world: &World, engine: &Engine, by: Principal, plan: Value) -> (PlanId, RunId) {
    let id = approved(engine, plan).await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    let run = handle.run_id().clone();
    after(50).await;
    engine
        .runs()
        .command(&run, RunCommand::Pause { by })
        .await
        .unwrap();
    assert_eq!(handle.wait().await.unwrap().status().as_str(), "paused");
    assert_eq!(world.calls_of("b"), 0);
    (id, run)
}

fn slow() -> Value {
    json!({"id": "p", "steps": [
        {"id": "a", "tool": "r.read", "args": {"ms": 100}},
        {"id": "b", "tool": "w.write", "dependsOn": ["a"]}]})
}

fn is_paused_by_person(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::PausedByPerson { .. })
}

#[tokio::test(start_paused = true)]
async fn a_program_does_not_lift_the_pause_of_a_person() {
    let world = World::new();
    let engine = world.engine("one");
    let (id, run) = paused(&world, &engine, person(), slow()).await;
    for by in [agent(), Principal::service("ci")] {
        let resumed = engine.runs().resume(&id, RunOptions::new(by.clone())).await;
        let refused = resumed.unwrap_err();
        assert!(
            matches!(&refused, StartRunError::Refused(ReviewRefusal::Decision(refusal))
                if is_paused_by_person(refusal)),
            "{by}: {refused}"
        );
        let command = RunCommand::Resume { by };
        let refused = engine.runs().command(&run, command).await.unwrap_err();
        assert!(
            matches!(&refused, CommandError::Refused(refusal) if is_paused_by_person(refusal)),
            "{refused}"
        );
    }
    assert_eq!(world.calls_of("b"), 0);
    let mut handle = engine.runs().resume(&id, options()).await.unwrap();
    assert_eq!(handle.wait().await.unwrap().status().as_str(), "completed");
    assert_eq!(world.calls_of("b"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_program_paused_a_program_resumes_unless_a_person_paused_it_too() {
    let world = World::new();
    let engine = world.engine("one");
    let (id, _) = paused(&world, &engine, agent(), slow()).await;
    let resumed = engine.runs().resume(&id, RunOptions::new(agent())).await;
    let run = resumed.unwrap().wait().await.unwrap();
    assert_eq!(run.status().as_str(), "completed");

    let world = World::new();
    let engine = world.engine("one");
    let (id, run) = paused(&world, &engine, agent(), slow()).await;
    let pause = RunCommand::Pause { by: person() };
    engine.runs().command(&run, pause).await.unwrap();
    let resumed = engine.runs().resume(&id, RunOptions::new(agent())).await;
    assert!(resumed.is_err());
    assert_eq!(world.calls_of("b"), 0);
}

async fn children(world: &World, parent: &PlanId) -> Vec<RunId> {
    let streams = world.store.runs(parent).await.unwrap();
    let runs = streams.into_iter().map(|info| info.stream);
    runs.filter_map(|stream| match stream {
        StreamName::Run(run) => Some(run),
        StreamName::Plan(_) => None,
    })
    .collect()
}

/// A plan with a child that an agent starts.
/// A parent and its child that are at work. The run is an agent's: what the agent may not do, the
/// parent does not do for it.
async fn run_parent_of_slow(engine: &Engine) -> (PlanId, RunHandle) {
    let mut child = slow();
    child["id"] = json!("child");
    engine
        .plans()
        .propose(document(child), &person())
        .await
        .unwrap();
    let parent = json!({"id": "top", "steps": [{"id": "c", "plan": {"id": "child"}}]});
    let id = approved(engine, parent).await;
    let started = engine.runs().start(&id, RunOptions::new(agent())).await;
    after(50).await;
    (id, started.unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_child_that_a_person_paused_with_its_parent_goes_on_with_it() {
    let world = World::new();
    let engine = world.engine("one");
    let (id, mut handle) = run_parent_of_slow(&engine).await;
    let run = handle.run_id().clone();
    let pause = RunCommand::Pause { by: person() };
    engine.runs().command(&run, pause).await.unwrap();
    handle.wait().await.unwrap();
    assert_eq!(world.calls_of("b"), 0);
    assert!(
        engine
            .runs()
            .resume(&id, RunOptions::new(agent()))
            .await
            .is_err()
    );
    let mut handle = engine.runs().resume(&id, options()).await.unwrap();
    assert_eq!(handle.wait().await.unwrap().status().as_str(), "completed");
    assert_eq!(world.calls_of("b"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_a_person_paused_alone_stays_until_a_person_says_so() {
    let world = World::new();
    let engine = world.engine("one");
    let (id, mut handle) = run_parent_of_slow(&engine).await;
    let run = handle.run_id().clone();
    let child_plan: PlanId = "child".parse().unwrap();
    let child = children(&world, &child_plan).await.remove(0);
    assert_ne!(child, run);
    let pause = RunCommand::Pause { by: person() };
    engine.runs().command(&child, pause).await.unwrap();
    let waiting = handle.wait().await.unwrap();
    assert_eq!(*waiting.state(), RunState::Running);
    assert_eq!(world.calls_of("b"), 0);
    // The parent does not stand still, so an agent may resume it; its child stays where it is.
    let resumed = engine.runs().resume(&id, RunOptions::new(agent())).await;
    resumed.unwrap().wait().await.unwrap();
    assert_eq!(world.calls_of("b"), 0, "no person let the child go on");
    let mut handle = engine.runs().resume(&id, options()).await.unwrap();
    assert_eq!(handle.wait().await.unwrap().status().as_str(), "completed");
    assert_eq!(world.calls_of("b"), 1);
}

/// An engine under roles: `ada` approves, `bob` only operates.
fn engine_with_roles(world: &World, four_eyes: bool) -> Engine {
    let mut policy: PolicyDocument =
        serde_json::from_value(json!({"approval": {"four_eyes": four_eyes}})).unwrap();
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    policy.roles = Some(RolesTable {
        approver: names(&["person:ada", "person:eve"]),
        operator: names(&["person:ada", "person:bob", "person:eve"]),
        ..RolesTable::default()
    });
    world
        .builder("one")
        .store(
            Arc::clone(&world.store) as _,
            Arc::clone(&world.artifacts) as _,
        )
        .policy(Arc::new(Policy::read(&policy).unwrap()))
        .build()
}

#[tokio::test(start_paused = true)]
async fn only_those_who_may_approve_leave_out_what_others_wait_for() {
    let ada = Principal::person("ada");
    let bob = Principal::person("bob");
    let eve = Principal::person("eve");
    let world = World::new();
    let engine = engine_with_roles(&world, true);
    let plan = json!({"id": "p", "steps": [
        {"id": "hold", "tool": "r.read", "approvalRequired": true},
        {"id": "check", "tool": "r.read", "dependsOn": ["hold"]},
        {"id": "act", "tool": "w.write", "dependsOn": ["check"]},
        {"id": "last", "tool": "r.read", "dependsOn": ["hold"]}]});
    let proposed = engine.plans().propose(document(plan), &eve).await.unwrap();
    let id = proposed.0.id().clone();
    approve(&engine, &id, &ada).await;
    let mut handle = engine
        .runs()
        .start(&id, RunOptions::new(bob.clone()))
        .await
        .unwrap();
    let run = handle.wait().await.unwrap().id().clone();
    let leave_out = |step: &str, by: &Principal| RunCommand::LeaveOut {
        step: step.to_owned(),
        by: by.clone(),
        reason: String::new(),
    };
    let refused = engine.runs().command(&run, leave_out("check", &bob)).await;
    assert!(
        matches!(
            &refused,
            Err(CommandError::Refused(Refusal::MayNotSkip { .. }))
        ),
        "{refused:?}"
    );
    let refused = engine.runs().command(&run, leave_out("check", &eve)).await;
    assert!(
        matches!(&refused, Err(CommandError::Refused(Refusal::FourEyes(_)))),
        "{refused:?}"
    );
    assert_eq!(world.calls_of("act"), 0);
    // Nothing waits for this one.
    engine
        .runs()
        .command(&run, leave_out("last", &bob))
        .await
        .unwrap();
    engine
        .runs()
        .command(&run, leave_out("check", &ada))
        .await
        .unwrap();
    let agrees = RunCommand::Approve {
        step: "hold".to_owned(),
        by: ada,
        assurance: Assurance::Terminal,
        shown: Shown::Version(1).into(),
    };
    engine.runs().command(&run, agrees).await.unwrap();
    let resumed = engine.runs().resume(&id, RunOptions::new(bob)).await;
    let run = resumed.unwrap().wait().await.unwrap();
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!((world.calls_of("check"), world.calls_of("act")), (0, 1));
}
