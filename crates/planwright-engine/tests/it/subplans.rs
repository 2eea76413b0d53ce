//! Steps that run other plans: values in and out, failures, people, pauses, crashes.

use crate::world::{
    World, after, approved, document, entries, options, person, report_of, status_of,
};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_core::principal::Assurance;
use planwright_core::run::{Parent, Resolution, Run, RunEvent, Shown, StoredValue};
use planwright_core::time::Timestamp;
use planwright_engine::port::{Clock as _, OwnerId, StreamIndex as _};
use planwright_engine::{Engine, RunCommand, ShownText, StartRunError};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

fn child() -> Value {
    json!({
        "id": "child",
        "inputs": {"type": "object", "required": ["word"], "properties": {
            "word": {"type": "string"}, "ms": {"type": "integer", "default": 0},
        }},
        "steps": [
            {"id": "one", "tool": "r.read", "args": {"value": "${word}", "ms": "${ms}"}, "result": "first"},
            {"id": "two", "tool": "w.write", "args": {"value": "${first}!", "ms": "${ms}"}},
        ],
    })
}

fn parent(inputs: &Value) -> Value {
    json!({"id": "p", "steps": [
        {"id": "before", "tool": "r.read", "args": {"value": "hello"}},
        {"id": "sub", "plan": {"id": "child", "inputs": inputs}, "dependsOn": ["before"], "result": "got"},
        {"id": "after", "tool": "r.read", "args": {"value": "${got.two}"}},
    ]})
}

async fn propose(engine: &Engine, plan: Value) {
    engine
        .plans()
        .propose(document(plan), &person())
        .await
        .unwrap();
}

fn child_of(run: &RunId, step: &str) -> RunId {
    Parent {
        run: run.clone(),
        step: step.parse().unwrap(),
        index: None,
        call: None,
        outside: false,
    }
    .child()
}

async fn reload(engine: &Engine, id: &RunId) -> Run {
    let plan = engine.journals().plan_of_run(id).await.unwrap();
    let (review, _) = engine.plans().load_review(&plan).await.unwrap();
    engine.runs().load_run(id, &review).await.unwrap().0
}

async fn run(engine: &Engine, plan: Value) -> Run {
    let id = approved(engine, plan).await;
    engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_step_runs_another_plan_with_inputs_and_gets_its_results() {
    let world = World::new();
    let engine = world.engine("one");
    propose(&engine, child()).await;
    let run = run(&engine, parent(&json!({"word": "${before}"}))).await;
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!(world.called(), ["before", "one", "two", "after"]);
    let report = report_of(&run, "sub");
    let Some(StoredValue::Inline(value)) = report.value else {
        panic!("a small value")
    };
    assert_eq!(*value, json!({"first": "hello", "two": "hello!"}));
    assert_eq!(world.made()[3].args["value"], json!("hello!"));
    let child = reload(&engine, &child_of(run.id(), "sub")).await;
    assert_eq!(
        (child.status().as_str(), child.plan().id().as_str()),
        ("completed", "child")
    );
    assert_eq!(
        child
            .start()
            .parent
            .as_ref()
            .map(|parent| parent.run.clone()),
        Some(run.id().clone())
    );
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_fails_the_step_that_runs_it() {
    let world = World::new();
    let engine = world.engine("one");
    propose(
        &engine,
        json!({"id": "child", "steps": [{"id": "bad", "tool": "r.read", "args": {"fail": "no disk"}}]}),
    )
    .await;
    let run = run(
        &engine,
        json!({"id": "p", "steps": [{"id": "sub", "plan": {"id": "child"}}]}),
    )
    .await;
    assert_eq!(run.status().as_str(), "failed");
    let error = report_of(&run, "sub").error.unwrap();
    assert_eq!(error.code.as_str(), "plan_failed");
    assert!(
        error.message.contains("`bad`") && error.message.contains("no disk"),
        "{}",
        error.message
    );
}

#[tokio::test(start_paused = true)]
async fn inputs_that_do_not_fit_stop_the_step_before_the_child_begins() {
    let world = World::new();
    let engine = world.engine("one");
    propose(&engine, child()).await;
    let mut plan = parent(&json!({"word": "${before}"}));
    plan["steps"][0]["args"]["value"] = json!(7);
    let run = run(&engine, plan).await;
    assert_eq!(
        report_of(&run, "sub").error.unwrap().code.as_str(),
        "invalid_inputs"
    );
    let stream = StreamName::Run(child_of(run.id(), "sub"));
    assert!(world.store.info(&stream).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn approving_a_plan_covers_the_plans_it_runs_and_a_change_there_voids_it() {
    let world = World::new();
    let engine = world.engine("one");
    propose(&engine, child()).await;
    let id = approved(&engine, parent(&json!({"word": "x"}))).await;
    let mut changed = child();
    changed["steps"][1]["tool"] = json!("w.erase");
    propose(&engine, changed).await;
    let refused = engine.runs().start(&id, options()).await;
    assert!(
        matches!(refused, Err(StartRunError::Changed { .. })),
        "{refused:?}"
    );
    assert!(world.called().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_run_in_progress_is_not_resumed_with_another_sub_plan() {
    let world = World::new();
    let engine = world.engine("one");
    propose(&engine, child()).await;
    let mut plan = parent(&json!({"word": "x"}));
    plan["steps"][0]["approvalRequired"] = json!(true);
    let waiting = run(&engine, plan).await;
    assert_eq!(waiting.status().as_str(), "waiting");
    let mut changed = child();
    changed["steps"][1]["tool"] = json!("w.erase");
    propose(&engine, changed).await;
    let refused = engine.runs().resume(&"p".parse().unwrap(), options()).await;
    assert!(
        matches!(refused, Err(StartRunError::ToolsChanged { .. })),
        "{refused:?}"
    );
}

fn gated_child() -> Value {
    json!({"id": "child", "steps": [
        {"id": "asks", "tool": "w.write", "approvalRequired": true, "args": {"value": 1}},
    ]})
}

fn plain_parent() -> Value {
    json!({"id": "p", "steps": [
        {"id": "sub", "plan": {"id": "child"}},
        {"id": "after", "tool": "r.read", "args": {"value": "${sub.asks}"}},
    ]})
}

async fn decide(engine: &Engine, child: &Run, yes: bool) {
    let step = "asks".to_owned();
    let by = person();
    let shown = ShownText::Digest(child.start().digest);
    let command = if yes {
        RunCommand::Approve {
            step,
            by,
            assurance: Assurance::Terminal,
            shown,
        }
    } else {
        RunCommand::Deny {
            step,
            by,
            shown,
            reason: "no".into(),
        }
    };
    engine.runs().command(child.id(), command).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_for_a_person_parks_its_parent_until_it_is_resumed() {
    for yes in [true, false] {
        let world = World::new();
        let engine = world.engine("one");
        propose(&engine, gated_child()).await;
        let run = run(&engine, plain_parent()).await;
        assert_eq!(
            (run.status().as_str(), status_of(&run, "sub")),
            ("waiting", "awaiting_plan")
        );
        let child = child_of(run.id(), "sub");
        assert!(
            report_of(&run, "sub")
                .error
                .unwrap()
                .message
                .contains(child.as_str())
        );

        let plan: PlanId = "p".parse().unwrap();
        let still = engine
            .runs()
            .resume(&plan, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
        assert_eq!(
            (still.status().as_str(), world.called().len()),
            ("waiting", 0),
            "resuming is not an answer"
        );
        let alone = engine.runs().resume_run(&child, options()).await;
        assert!(matches!(alone, Err(StartRunError::ChildRun { .. })));

        decide(&engine, &reload(&engine, &child).await, yes).await;
        let run = engine
            .runs()
            .resume(&plan, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
        assert_eq!(
            run.status().as_str(),
            if yes { "completed" } else { "failed" }
        );
        assert_eq!(world.called().len(), if yes { 2 } else { 0 });
        let opened = entries(&*world.store, &child);
        let starts = opened
            .iter()
            .filter(|entry| matches!(entry.event, RunEvent::RunStarted { .. }))
            .count();
        assert_eq!(starts, 1, "the same child went on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_stays_is_moved_on_by_an_answer_to_its_child() {
    let world = World::new();
    let engine = world.engine("one");
    propose(&engine, gated_child()).await;
    let id = approved(&engine, plain_parent()).await;
    let mut staying = options();
    staying.linger = true;
    let mut handle = engine.runs().start(&id, staying).await.unwrap();
    after(100).await;
    let child = reload(&engine, &child_of(handle.run_id(), "sub")).await;
    decide(&world.engine("two"), &child, true).await;
    assert_eq!(handle.wait().await.unwrap().status().as_str(), "completed");
}

#[tokio::test(start_paused = true)]
async fn pausing_and_cancelling_reach_the_child() {
    let world = World::new();
    let engine = world.engine("one");
    propose(&engine, child()).await;
    let id = approved(&engine, parent(&json!({"word": "x", "ms": 100}))).await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    after(50).await;
    handle.pause(person()).await.unwrap();
    let run = handle.wait().await.unwrap();
    assert_eq!(
        (run.status().as_str(), status_of(&run, "sub")),
        ("paused", "awaiting_plan")
    );
    let child = child_of(run.id(), "sub");
    assert_eq!(reload(&engine, &child).await.status().as_str(), "paused");
    assert_eq!(
        world.called(),
        ["before", "one"],
        "what was in flight finished, nothing else started"
    );

    let mut handle = engine.runs().resume(&id, options()).await.unwrap();
    after(50).await;
    handle.cancel(person()).await.unwrap();
    let run = handle.wait().await.unwrap();
    assert_eq!(
        (run.status().as_str(), status_of(&run, "sub")),
        ("cancelled", "cancelled")
    );
    assert_eq!(reload(&engine, &child).await.status().as_str(), "cancelled");
    assert_eq!(world.told_to_stop().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_parked_run_that_is_cancelled_takes_its_child_with_it() {
    let world = World::new();
    let engine = world.engine("one");
    propose(&engine, gated_child()).await;
    let run = run(&engine, plain_parent()).await;
    engine
        .runs()
        .command(run.id(), RunCommand::Cancel { by: person() })
        .await
        .unwrap();
    assert_eq!(
        reload(&engine, run.id()).await.status().as_str(),
        "cancelled"
    );
    assert_eq!(
        reload(&engine, &child_of(run.id(), "sub"))
            .await
            .status()
            .as_str(),
        "cancelled"
    );
}

#[tokio::test(start_paused = true)]
async fn a_child_that_takes_too_long_is_cancelled() {
    let world = World::new();
    let engine = world.engine("one");
    propose(&engine, child()).await;
    let mut plan = parent(&json!({"word": "x", "ms": 5000}));
    plan["steps"][1]["timeoutSeconds"] = json!(1);
    let run = run(&engine, plan).await;
    assert_eq!(
        report_of(&run, "sub").error.unwrap().code.as_str(),
        "timeout"
    );
    assert_eq!(
        reload(&engine, &child_of(run.id(), "sub"))
            .await
            .status()
            .as_str(),
        "cancelled"
    );
}

#[tokio::test(start_paused = true)]
async fn plans_nest_and_the_limit_over_all_runs_cannot_block_them() {
    let world = World::new();
    let limits = planwright_engine::ConcurrencyLimits {
        global: 1,
        ..planwright_engine::ConcurrencyLimits::default()
    };
    let engine = world.engine_with("one", limits);
    propose(
        &engine,
        json!({"id": "c", "steps": [{"id": "deep", "tool": "r.read", "args": {"value": 1}}]}),
    )
    .await;
    propose(
        &engine,
        json!({"id": "b", "steps": [{"id": "mid", "plan": {"id": "c"}}]}),
    )
    .await;
    let run = run(
        &engine,
        json!({"id": "a", "steps": [
            {"id": "x", "plan": {"id": "b"}}, {"id": "y", "plan": {"id": "b"}},
        ]}),
    )
    .await;
    assert_eq!(
        (run.status().as_str(), world.calls_of("deep")),
        ("completed", 2)
    );
    let Some(StoredValue::Inline(value)) = report_of(&run, "y").value else {
        panic!("a small value")
    };
    assert_eq!(*value, json!({"mid": {"deep": 1}}));
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

/// A world whose first engine was killed some time after it started the parent.
fn killed_after(ms: u64) -> (World, RunId, Timestamp) {
    let runtime = runtime();
    let (world, run, at) = runtime.block_on(async {
        let world = World::new();
        let engine = world.engine("one");
        propose(&engine, child()).await;
        let id = approved(&engine, parent(&json!({"word": "x", "ms": 100}))).await;
        let handle = engine.runs().start(&id, options()).await.unwrap();
        after(ms).await;
        (world.clone(), handle.run_id().clone(), world.clock.now())
    });
    drop(runtime);
    world.store.kill_owner(&OwnerId("one".into()));
    (world, run, at)
}

fn resume(world: &World, at: Timestamp) -> Run {
    runtime().block_on(async {
        world.clock.carry_over(at);
        let plan: PlanId = "p".parse().unwrap();
        world
            .engine("two")
            .runs()
            .resume(&plan, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap()
    })
}

#[test]
fn a_crash_in_a_safe_step_of_the_child_costs_one_repeated_call() {
    let (world, run, at) = killed_after(50);
    let run_after = resume(&world, at);
    assert_eq!(run_after.status().as_str(), "completed");
    assert_eq!(world.called(), ["before", "one", "one", "two", "after"]);
    let starts = entries(&*world.store, &child_of(&run, "sub"));
    assert_eq!(
        starts
            .iter()
            .filter(|entry| matches!(entry.event, RunEvent::RunStarted { .. }))
            .count(),
        1
    );
}

#[test]
fn a_crash_in_an_unsafe_step_of_the_child_waits_for_a_person() {
    let (world, run, at) = killed_after(150);
    let waiting = resume(&world, at);
    assert_eq!(
        (waiting.status().as_str(), status_of(&waiting, "sub")),
        ("waiting", "awaiting_plan")
    );
    assert_eq!(world.calls_of("two"), 1, "not repeated by itself");
    runtime().block_on(async {
        world.clock.carry_over(at);
        let value = StoredValue::Inline(std::sync::Arc::new(json!("told")));
        let resolution = Resolution::Happened { value };
        let command = RunCommand::Resolve {
            step: "two".into(),
            by: person(),
            resolution,
        };
        world
            .engine("three")
            .runs()
            .command(&child_of(&run, "sub"), command)
            .await
            .unwrap();
    });
    let done = resume(&world, at);
    assert_eq!(done.status().as_str(), "completed");
    assert_eq!(
        (
            world.calls_of("two"),
            world.made().last().unwrap().args["value"].clone()
        ),
        (1, json!("told"))
    );
}

#[tokio::test(start_paused = true)]
async fn the_run_of_a_child_can_be_taken_back_by_itself() {
    let world = World::new();
    let engine = world.engine("one");
    let mut plan = child();
    plan["steps"][1]["undo"] = json!({"tool": "w.erase", "args": {"of": "${two}"}});
    propose(&engine, plan).await;
    let run = run(&engine, parent(&json!({"word": "x"}))).await;
    let child = child_of(run.id(), "sub");
    let candidate = engine.runs().plan_undo(&child).await.unwrap();
    let planwright_engine::PreparedUndo::Fresh { candidate, .. } = candidate.undo else {
        panic!("nothing is open")
    };
    let mut agreed = options();
    let shown = Shown::Digest(candidate.digest);
    agreed.approval = Some(planwright_engine::GivenApproval {
        shown,
        by: person(),
        assurance: Assurance::Terminal,
        late: std::collections::BTreeMap::new(),
    });
    let undo = engine
        .runs()
        .undo(&child, agreed)
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(undo.status().as_str(), "completed");
    assert_eq!(world.made().last().unwrap().args["of"], json!("x!"));
}

#[tokio::test(start_paused = true)]
async fn every_element_of_a_loop_has_a_child_of_its_own_and_its_result_is_expected() {
    let world = World::new();
    let engine = world.engine("one");
    propose(&engine, child()).await;
    let plan = json!({"id": "p", "steps": [
        {"id": "each", "forEach": ["a", "b"], "plan": {"id": "child", "inputs": {"word": "${item}"}}, "result": "all"},
        {"id": "after", "tool": "r.read", "args": {"value": "${all[1].two}"}},
    ]});
    let run = run(&engine, plan).await;
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!(world.made().last().unwrap().args["value"], json!("b!"));
    let step = || "each".parse().unwrap();
    for index in 0..2 {
        let place = Parent {
            run: run.id().clone(),
            step: step(),
            index: Some(index),
            call: None,
            outside: false,
        };
        assert_eq!(
            reload(&engine, &place.child()).await.status().as_str(),
            "completed"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_child_returns_must_be_what_the_plan_expects() {
    let world = World::new();
    let engine = world.engine("one");
    propose(&engine, child()).await;
    let mut plan = parent(&json!({"word": "x"}));
    plan["steps"][1]["expect"] = json!("result.two == 'something else'");
    let run = run(&engine, plan).await;
    assert_eq!(
        report_of(&run, "sub").error.unwrap().code.as_str(),
        "expect_failed"
    );
}

#[tokio::test(start_paused = true)]
async fn the_value_of_a_plan_that_names_its_outputs_is_those() {
    let world = World::new();
    let engine = world.engine("one");
    let mut named = child();
    named["outputs"] = json!({"said": "${two}", "of": {"word": "${word}"}});
    propose(&engine, named).await;
    let mut plan = parent(&json!({"word": "x"}));
    plan["steps"][2]["args"]["value"] = json!("${got.said}");
    let run = run(&engine, plan).await;
    assert_eq!(run.status().as_str(), "completed");
    let Some(StoredValue::Inline(value)) = report_of(&run, "sub").value else {
        panic!("a small value")
    };
    assert_eq!(*value, json!({"said": "x!", "of": {"word": "x"}}));
    assert_eq!(world.made().last().unwrap().args["value"], json!("x!"));
}

#[tokio::test(start_paused = true)]
async fn an_output_without_a_value_fails_the_step_that_runs_the_plan() {
    let world = World::new();
    let engine = world.engine("one");
    let mut named = child();
    named["outputs"] = json!({"said": "${two.part}"});
    propose(&engine, named).await;
    let mut plan = parent(&json!({"word": "x"}));
    plan["steps"][2]["args"]["value"] = json!("${got.said}");
    let run = run(&engine, plan).await;
    let error = report_of(&run, "sub").error.unwrap();
    assert_eq!(error.code.as_str(), "unresolved_reference");
    assert!(error.message.contains("`said`"), "{}", error.message);
}
