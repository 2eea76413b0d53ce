//! Runs in the background: what was going on goes on, what people decide is carried out, a shutdown
//! loses nothing.

use crate::faults::FaultyStore;
use crate::world::{
    World, after, approve as approve_plan, approved, candidate_of, chain, document, entries,
    options, person,
};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{RequestedRun, RunRequest};
use planwright_core::run::{Reply, RunEvent, StepState};
use planwright_engine::memory::{MemoryArtifacts, MemoryStore, ScriptedModel};
use planwright_engine::port::{BoxFuture, Leases as _, OwnerId, PlanFiles, StreamIndex as _};
use planwright_engine::{Engine, RunCommand, ShownText, Supervisor, SupervisorOptions};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

fn supervise(engine: &Engine) -> Supervisor {
    Supervisor::start(engine.clone(), &SupervisorOptions::default())
}

fn gated(id: &str) -> Value {
    json!({"id": id, "steps": [
        {"id": "look", "tool": "r.read"},
        {"id": "write", "tool": "w.write", "dependsOn": ["look"], "approvalRequired": true},
    ]})
}

async fn status(world: &World, run: &RunId) -> String {
    world
        .store
        .info(&StreamName::Run(run.clone()))
        .await
        .unwrap()
        .unwrap()
        .status
        .status
        .to_string()
}

fn approval(step: &str, version: u32) -> RunCommand {
    let shown = ShownText::Version(version);
    RunCommand::Approve {
        step: step.to_owned(),
        by: person(),
        assurance: Assurance::Terminal,
        shown,
    }
}

async fn approve(engine: &Engine, run: &RunId, step: &str) {
    engine.runs().command(run, approval(step, 1)).await.unwrap();
}

async fn approved_as(engine: &Engine, mut plan: Value, id: &str) -> PlanId {
    plan["id"] = json!(id);
    approved(engine, plan).await
}

#[tokio::test(start_paused = true)]
async fn a_run_is_started_at_once_and_goes_on_in_the_background() {
    let world = World::new();
    let engine = world.engine("one");
    let supervisor = supervise(&engine);
    let plan = approved(&engine, chain(3, "r.read", 1000)).await;
    let run = supervisor.start_run(&plan, options()).await.unwrap();
    assert_eq!(status(&world, &run).await, "executing");
    after(3500).await;
    assert_eq!(status(&world, &run).await, "completed");
    assert_eq!(supervisor.stats().executing, 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_executing_when_the_last_process_died_goes_on() {
    let world = World::new();
    let one = world.engine("one");
    let plan = approved(&one, chain(3, "r.read", 1000)).await;
    let first = one.runs().start(&plan, options()).await.unwrap();
    let run = first.run_id().clone();
    after(1500).await;
    world.store.kill_owner(&OwnerId("one".into()));
    let supervisor = supervise(&world.engine("two"));
    after(60_000).await;
    assert_eq!(status(&world, &run).await, "completed");
    drop((first, supervisor));
}

#[tokio::test(start_paused = true)]
async fn a_parked_run_leaves_memory_and_comes_back_when_a_person_decides() {
    let (world, _, _supervisor, run) = waiting().await;
    // Another process records the decision.
    approve(&world.engine("two"), &run, "write").await;
    after(1000).await;
    assert_eq!(status(&world, &run).await, "completed");
    assert_eq!(world.calls_of("write"), 1);
}

/// A run of `gated` that waits for its approval, and that no process executes.
async fn waiting() -> (World, Engine, Supervisor, RunId) {
    let world = World::new();
    let engine = world.engine("one");
    let (supervisor, run) = park(&world, &engine).await;
    (world, engine, supervisor, run)
}

async fn park(world: &World, engine: &Engine) -> (Supervisor, RunId) {
    let supervisor = supervise(engine);
    let plan = approved(engine, gated("p")).await;
    let run = supervisor.start_run(&plan, options()).await.unwrap();
    after(1000).await;
    assert_eq!(status(world, &run).await, "waiting");
    assert_eq!(
        supervisor.stats().executing,
        0,
        "a parked run is not in memory"
    );
    (supervisor, run)
}

#[tokio::test(start_paused = true)]
async fn what_a_person_decides_and_what_follows_are_one_commit() {
    let world = World::new();
    let counting = FaultyStore::new(&world);
    park(&world, &counting.engine(&world, "one")).await;
    let commits_before = counting.appends();
    for written in [false, true] {
        let world = World::new();
        let dying = FaultyStore::failing(&world, commits_before + 1, written);
        let (supervisor, run) = park(&world, &dying.engine(&world, "one")).await;
        supervisor
            .command(&run, approval("write", 1))
            .await
            .unwrap_err();
        let entries = entries(&*world.store, &run);
        let count =
            |is: fn(&RunEvent) -> bool| entries.iter().filter(|entry| is(&entry.event)).count();
        assert_eq!(
            count(|event| matches!(event, RunEvent::ApprovalGranted { .. })),
            usize::from(written)
        );
        // The look came before the store died.
        assert_eq!(
            count(|event| matches!(event, RunEvent::AttemptStarted { .. })),
            1 + usize::from(written)
        );
        after(1000).await;
        assert_eq!(
            world.calls_of("write"),
            0,
            "nothing is called before its start is known to be durable"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_is_refused_leaves_the_run_as_it_was() {
    let (world, _, supervisor, run) = waiting().await;
    let before = entries(&*world.store, &run).len();
    for wrong in [
        approval("write", 2),
        approval("look", 1),
        approval("nothing", 1),
    ] {
        supervisor.command(&run, wrong).await.unwrap_err();
    }
    after(1000).await;
    assert_eq!(entries(&*world.store, &run).len(), before);
    assert_eq!(supervisor.stats().executing, 0, "no process holds it");
    supervisor
        .command(&run, approval("write", 1))
        .await
        .unwrap();
    after(1000).await;
    assert_eq!(
        (status(&world, &run).await.as_str(), world.calls_of("write")),
        ("completed", 1)
    );
}

#[tokio::test(start_paused = true)]
async fn of_many_who_approve_at_once_one_does() {
    let (world, _, supervisor, run) = waiting().await;
    let deciding = (0..8).map(|_| supervisor.command(&run, approval("write", 1)));
    let decided = futures::future::join_all(deciding).await;
    assert_eq!(
        decided.iter().filter(|decided| decided.is_ok()).count(),
        1,
        "{decided:?}"
    );
    after(1000).await;
    assert_eq!(
        (status(&world, &run).await.as_str(), world.calls_of("write")),
        ("completed", 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_not_lifted_by_a_decision() {
    let (world, engine, supervisor, run) = waiting().await;
    engine
        .runs()
        .command(&run, RunCommand::Pause { by: person() })
        .await
        .unwrap();
    supervisor
        .command(&run, approval("write", 1))
        .await
        .unwrap();
    after(60_000).await;
    assert_eq!(
        (status(&world, &run).await.as_str(), world.calls_of("write")),
        ("paused", 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_not_lifted_by_the_supervisor() {
    let (world, engine, supervisor, run) = waiting().await;
    engine
        .runs()
        .command(&run, RunCommand::Pause { by: person() })
        .await
        .unwrap();
    approve(&engine, &run, "write").await;
    supervisor.resume_soon(run.clone()).await;
    after(60_000).await;
    assert_eq!(status(&world, &run).await, "paused");
    let handle = engine.runs().resume_run(&run, options()).await.unwrap();
    supervisor.adopt(handle).await;
    after(1000).await;
    assert_eq!(status(&world, &run).await, "completed");
}

#[tokio::test(start_paused = true)]
async fn a_parent_goes_on_when_its_child_does() {
    let world = World::new();
    let engine = world.engine("one");
    let supervisor = supervise(&engine);
    engine
        .plans()
        .propose(document(gated("child")), &person())
        .await
        .unwrap();
    let parent = json!({"id": "p", "steps": [
        {"id": "sub", "plan": {"id": "child"}},
        {"id": "after", "tool": "r.read", "dependsOn": ["sub"]},
    ]});
    let plan = approved(&engine, parent).await;
    let run = supervisor.start_run(&plan, options()).await.unwrap();
    after(1000).await;
    assert_eq!(status(&world, &run).await, "waiting");
    let child = entries(&*world.store, &run)
        .into_iter()
        .find_map(|entry| match entry.event {
            RunEvent::ChildParked { run, .. } => Some(run),
            _ => None,
        });
    approve(&engine, &child.unwrap(), "write").await;
    after(1000).await;
    assert_eq!(status(&world, &run).await, "completed");
    assert_eq!(world.calls_of("after"), 1);
}

#[tokio::test(start_paused = true)]
async fn no_more_runs_are_in_memory_than_there_are_slots_and_the_others_wait_in_order() {
    let world = World::new();
    let engine = world.engine("one");
    let supervisor = Supervisor::start(
        engine.clone(),
        &SupervisorOptions {
            max_runs: 2,
            ..SupervisorOptions::default()
        },
    );
    let mut runs = Vec::new();
    for number in 0..6 {
        let plan = approved_as(&engine, chain(1, "r.read", 1000), &format!("p{number}")).await;
        runs.push(supervisor.start_run(&plan, options()).await.unwrap());
    }
    after(500).await;
    let standing = supervisor.stats();
    assert_eq!((standing.executing, standing.queued), (2, 4));
    after(10_000).await;
    for run in &runs {
        assert_eq!(status(&world, run).await, "completed");
    }
    assert_eq!(world.peak(""), 2);
    let mut ends = Vec::new();
    for run in &runs {
        ends.push(entries(&*world.store, run).last().unwrap().at);
    }
    assert!(ends.is_sorted(), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_finishes_the_calls_in_flight_and_the_rest_goes_on_at_the_next_start() {
    let world = World::new();
    let engine = world.engine("one");
    let supervisor = supervise(&engine);
    let plan = approved(&engine, chain(3, "w.write", 2000)).await;
    let run = supervisor.start_run(&plan, options()).await.unwrap();
    after(1000).await;
    let stopped = supervisor.stop(Duration::from_secs(10)).await;
    assert_eq!(stopped.cut_off, 0);
    assert_eq!(world.called(), ["s1"], "nothing new was started");
    let last = entries(&*world.store, &run).pop().unwrap();
    assert!(
        matches!(last.event, RunEvent::AttemptSucceeded { .. }),
        "{last:?}"
    );
    assert_eq!(status(&world, &run).await, "executing");
    assert!(
        world.store.lease(&run).await.unwrap().is_none(),
        "the run was let go of"
    );

    let refused = supervisor.start_run(&plan, options()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the service is shutting down and starts no new runs"
    );
    let next = supervise(&world.engine("two"));
    after(10_000).await;
    assert_eq!(status(&world, &run).await, "completed");
    assert_eq!(
        world.called(),
        ["s1", "s2", "s3"],
        "nothing was called twice"
    );
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_in_the_middle_of_a_child_run_loses_nothing() {
    let world = World::new();
    let engine = world.engine("one");
    let supervisor = supervise(&engine);
    let mut child = chain(2, "w.write", 2000);
    child["id"] = json!("child");
    engine
        .plans()
        .propose(document(child), &person())
        .await
        .unwrap();
    let plan = approved(
        &engine,
        json!({"id": "p", "steps": [{"id": "sub", "plan": {"id": "child"}}]}),
    )
    .await;
    let run = supervisor.start_run(&plan, options()).await.unwrap();
    after(1000).await;
    assert_eq!(supervisor.stop(Duration::from_secs(10)).await.cut_off, 0);
    assert_eq!(world.called(), ["s1"]);
    let next = supervise(&world.engine("two"));
    after(10_000).await;
    assert_eq!(status(&world, &run).await, "completed");
    assert_eq!(world.called(), ["s1", "s2"]);
    drop(next);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_finish_in_time_is_cut_off_and_settled_at_the_next_start() {
    let world = World::new();
    let engine = world.engine("one");
    let supervisor = supervise(&engine);
    let plan = approved(&engine, chain(1, "r.read", 3_600_000)).await;
    let run = supervisor.start_run(&plan, options()).await.unwrap();
    after(1000).await;
    assert_eq!(supervisor.stop(Duration::from_secs(5)).await.cut_off, 1);
    assert_eq!(status(&world, &run).await, "executing");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_go_on_is_tried_again_with_growing_pauses_and_harms_no_other() {
    let world = World::new();
    let one = world.engine("one");
    let broken = approved_as(&one, chain(2, "w.write", 1000), "broken").await;
    let handle = one.runs().start(&broken, options()).await.unwrap();
    let run = handle.run_id().clone();
    after(500).await;
    one.drain();
    after(5000).await;
    world
        .tools
        .hidden
        .lock()
        .unwrap()
        .insert("w.write".to_owned());
    let two = world.engine("two");
    let supervisor = supervise(&two);
    after(20_000).await;
    assert_eq!(supervisor.stats().troubled, 1);
    let fine = approved_as(&two, chain(1, "r.read", 10), "fine").await;
    let other = supervisor.start_run(&fine, options()).await.unwrap();
    after(1000).await;
    assert_eq!(status(&world, &other).await, "completed");
    world.tools.hidden.lock().unwrap().clear();
    after(600_000).await;
    assert_eq!(status(&world, &run).await, "completed");
    assert_eq!(supervisor.stats().troubled, 0);
}

/// Files on a disk that does not answer until it is let go of.
#[derive(Debug)]
struct SlowFiles {
    answers: tokio::sync::Semaphore,
    written: std::sync::Mutex<Vec<PlanId>>,
}

impl SlowFiles {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            answers: tokio::sync::Semaphore::new(0),
            written: std::sync::Mutex::default(),
        })
    }

    fn written(&self) -> Vec<PlanId> {
        self.written.lock().unwrap().clone()
    }
}

impl PlanFiles for SlowFiles {
    fn write<'a>(&'a self, plan: &'a PlanId) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            self.answers.acquire().await.unwrap().forget();
            self.written.lock().unwrap().push(plan.clone());
            Ok(())
        })
    }
}

fn supervise_with_files(engine: &Engine, files: &Arc<SlowFiles>) -> Supervisor {
    let files: Arc<dyn PlanFiles> = Arc::clone(files) as Arc<dyn PlanFiles>;
    Supervisor::start(
        engine.clone(),
        &SupervisorOptions {
            files: Some(files),
            ..SupervisorOptions::default()
        },
    )
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_decided_on_does_not_wait_for_files() {
    let world = World::new();
    let engine = world.engine("one");
    let files = SlowFiles::new();
    let supervisor = supervise_with_files(&engine, &files);
    let plan = approved(&engine, gated("p")).await;
    let run = supervisor.start_run(&plan, options()).await.unwrap();
    after(1000).await;
    assert_eq!(status(&world, &run).await, "waiting");
    approve(&engine, &run, "write").await;
    after(1000).await;
    assert_eq!(status(&world, &run).await, "completed");
    assert!(files.written().is_empty(), "the disk has not answered yet");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_writes_the_files_that_are_due() {
    let world = World::new();
    let engine = world.engine("one");
    let files = SlowFiles::new();
    let supervisor = supervise_with_files(&engine, &files);
    let mut plans = Vec::new();
    for id in ["a", "b", "c"] {
        let plan = approved_as(&engine, chain(1, "r.read", 10), id).await;
        supervisor.start_run(&plan, options()).await.unwrap();
        plans.push(plan);
    }
    // The first is being written, the others are due.
    after(1000).await;
    files.answers.add_permits(3);
    supervisor.stop(Duration::from_secs(5)).await;
    assert_eq!(files.written(), plans);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_at_a_terminal_is_left_to_that_terminal() {
    let world = World::new();
    let model = ScriptedModel::default().says("hello").says("good");
    let engine = world.builder("one").model(Arc::new(model));
    let engine = engine
        .store(
            Arc::<MemoryStore>::clone(&world.store),
            Arc::<MemoryArtifacts>::clone(&world.artifacts),
        )
        .build();
    let supervisor = supervise(&engine);
    let agent = json!({"instruction": "hi", "converse": true});
    let plan = approved(
        &engine,
        json!({"id": "p", "steps": [{"id": "chat", "labels": ["chat"], "agent": agent}]}),
    )
    .await;
    let run = engine
        .runs()
        .start(&plan, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    let StepState::AwaitingInput { asked, .. } = run.step(run.find("chat").unwrap()) else {
        panic!("nothing is asked: {}", run.status().as_str());
    };
    let said = Map::from_iter([("message".to_owned(), json!("how are you?"))]);
    let step = "chat".to_owned();
    let question = asked.digest();
    let replies = vec![Reply::Values(said)];
    engine
        .runs()
        .command(
            run.id(),
            RunCommand::GiveInput {
                step,
                by: person(),
                question,
                replies,
            },
        )
        .await
        .unwrap();
    after(60_000).await;
    assert_eq!(
        status(&world, run.id()).await,
        "executing",
        "no process continues it"
    );
    let run = engine
        .runs()
        .resume(&plan, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(run.status().as_str(), "waiting");
    drop(supervisor);
}

/// A plan that waits for a person, and whose run is wanted once it is approved.
async fn requested(engine: &Engine, id: &str) -> (PlanId, RunRequest) {
    let mut plan = chain(1, "w.write", 10);
    plan["id"] = json!(id);
    let agent = Principal::agent("planner");
    let (review, _) = engine
        .plans()
        .propose(document(plan), &agent)
        .await
        .unwrap();
    let plan = review.id().clone();
    let (_, candidate) = candidate_of(engine, &plan).await;
    let request = RunRequest {
        digest: candidate.digest,
        variables: Map::new(),
        by: agent,
        trace: None,
    };
    let asked = engine.plans().request_run(&plan, request.clone()).await;
    asked.unwrap();
    (plan, request)
}

async fn runs_of(engine: &Engine, plan: &PlanId) -> Vec<RunId> {
    let (review, _) = engine.plans().load_review(plan).await.unwrap();
    review.runs().iter().map(|run| run.run.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_requested_run_starts_once_its_plan_is_approved_and_not_before() {
    let world = World::new();
    let engine = world.engine("one");
    let _supervisor = supervise(&engine);
    let (plan, _) = requested(&engine, "p").await;
    after(5000).await;
    assert_eq!(runs_of(&engine, &plan).await, []);
    approve_plan(&world.engine("two"), &plan, &person()).await;
    after(1000).await;
    let runs = runs_of(&engine, &plan).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(status(&world, &runs[0]).await, "completed");
    // Another approval is not for what was requested before.
    approve_plan(&engine, &plan, &person()).await;
    after(5000).await;
    assert_eq!(runs_of(&engine, &plan).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_approved_while_no_process_was_there_starts_with_the_next_one_and_once() {
    let world = World::new();
    let gone = world.engine("gone");
    let (plan, _) = requested(&gone, "p").await;
    let (forgotten, _) = requested(&gone, "forgotten").await;
    let (open, _) = requested(&gone, "open").await;
    world.clock.set_forward(RequestedRun::VALID_FOR);
    let (_, again) = requested(&gone, "other").await;
    let again = RunRequest {
        digest: candidate_of(&gone, &plan).await.1.digest,
        ..again
    };
    gone.plans().request_run(&plan, again).await.unwrap();
    for approved in [&plan, &forgotten] {
        approve_plan(&gone, approved, &person()).await;
    }
    // Several come at once: one of them starts it.
    let engines: Vec<Engine> = ["one", "two", "three"]
        .map(|name| world.engine(name))
        .into();
    let supervisors: Vec<Supervisor> = engines.iter().map(supervise).collect();
    after(60_000).await;
    assert_eq!(runs_of(&gone, &plan).await.len(), 1);
    assert_eq!(runs_of(&gone, &forgotten).await, [], "it was a day ago");
    assert_eq!(runs_of(&gone, &open).await, [], "it is not approved");
    assert_eq!(world.made().len(), 1);
    drop(supervisors);
}

#[tokio::test(start_paused = true)]
async fn a_requested_run_waits_for_a_slot_like_every_other() {
    let world = World::new();
    let engine = world.engine("one");
    let options_of_one = SupervisorOptions {
        max_runs: 1,
        ..SupervisorOptions::default()
    };
    let supervisor = Supervisor::start(engine.clone(), &options_of_one);
    let long = approved_as(&engine, chain(1, "r.read", 10_000), "long").await;
    supervisor.start_run(&long, options()).await.unwrap();
    let (plan, _) = requested(&engine, "p").await;
    approve_plan(&engine, &plan, &person()).await;
    after(5000).await;
    assert_eq!(runs_of(&engine, &plan).await.len(), 1);
    assert_eq!(world.calls_of("s1"), 1, "the other is still going on");
    after(60_000).await;
    let runs = runs_of(&engine, &plan).await;
    assert_eq!(status(&world, &runs[0]).await, "completed");
}
