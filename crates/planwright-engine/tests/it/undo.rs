//! Taking a run back by a run of its own: in order, journaled, refused where it must be, and never
//! twice.

use crate::world::{World, after, approved, document, options, person, report_of, status_of};
use planwright_core::id::RunId;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::{Refusal, Resolution, Run, RunEvent, Shown, StoredValue};
use planwright_core::time::Timestamp;
use planwright_engine::port::{Clock as _, OwnerId};
use planwright_engine::{
    Engine, GivenApproval, PreparedUndo, RunCommand, RunHandle, RunOptions, StartRunError,
    UndoRunError,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// Steps one after the other, each with an undo that takes a moment.
fn undoable(n: usize, undo_tool: &str) -> Value {
    let step = |at: usize| {
        let before: Vec<String> = (at > 1)
            .then(|| format!("s{}", at - 1))
            .into_iter()
            .collect();
        json!({"id": format!("s{at}"), "tool": "s.save", "dependsOn": before, "args": {"value": {"id": at}},
            "undo": {"tool": undo_tool, "args": {"ms": 100, "of": format!("${{s{at}.id}}")}}})
    };
    json!({"id": "p", "steps": (1..=n).map(step).collect::<Vec<_>>()})
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

/// Agrees to what would be taken back, as it is shown.
async fn consent(engine: &Engine, run: &RunId, by: Principal) -> RunOptions {
    let mut options = options();
    if let Ok(candidate) = engine.runs().plan_undo(run).await
        && let PreparedUndo::Fresh { candidate, .. } = candidate.undo
    {
        let shown = Shown::Digest(candidate.digest);
        options.approval = Some(GivenApproval {
            shown,
            by,
            assurance: Assurance::Terminal,
            late: std::collections::BTreeMap::new(),
        });
    }
    options
}

async fn order(engine: &Engine, run: &RunId) -> Result<RunHandle, UndoRunError> {
    let options = consent(engine, run, person()).await;
    engine.runs().undo(run, options).await
}

async fn reload(engine: &Engine, id: &RunId) -> Run {
    let plan = engine.journals().plan_of_run(id).await.unwrap();
    let (review, _) = engine.plans().load_review(&plan).await.unwrap();
    engine.runs().load_run(id, &review).await.unwrap().0
}

#[tokio::test(start_paused = true)]
async fn a_run_is_taken_back_last_step_first_with_the_values_it_had() {
    let world = World::new();
    let engine = world.engine("one");
    let original = run(&engine, undoable(3, "w.erase")).await;
    let undo = order(&engine, original.id())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(undo.status().as_str(), "completed");
    assert_eq!(undo.start().undoes.as_ref(), Some(original.id()));
    assert_eq!(world.called()[3..], ["undo-s3", "undo-s2", "undo-s1"]);
    let sent: Vec<Value> = world.made()[3..]
        .iter()
        .map(|made| made.args["of"].clone())
        .collect();
    assert_eq!(sent, [json!(3), json!(2), json!(1)]);
    let original = reload(&engine, original.id()).await;
    assert_eq!(
        original.status().as_str(),
        "completed",
        "what the run came to stays"
    );
    assert!(
        ["s1", "s2", "s3"]
            .iter()
            .all(|step| status_of(&original, step) == "undone")
    );
    assert_eq!(original.undos(), [undo.id().clone()]);
    let again = order(&engine, original.id()).await;
    assert!(matches!(
        again,
        Err(UndoRunError::Refused(Refusal::AlreadyUndone { .. }))
    ));
    assert_eq!(world.made().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn only_a_person_who_saw_the_calls_takes_a_run_back() {
    let world = World::new();
    let engine = world.engine("one");
    let original = run(&engine, undoable(1, "w.erase")).await;
    let refused = engine.runs().undo(original.id(), options()).await;
    assert!(matches!(refused, Err(UndoRunError::NotApproved)));
    let agent = consent(&engine, original.id(), Principal::agent("planner")).await;
    let refused = engine.runs().undo(original.id(), agent).await;
    assert!(matches!(
        refused,
        Err(UndoRunError::Refused(Refusal::MayNotApprove(_)))
    ));
    let mut other = options();
    let shown = Shown::Digest(original.start().digest);
    other.approval = Some(GivenApproval {
        shown,
        by: person(),
        assurance: Assurance::Terminal,
        late: std::collections::BTreeMap::new(),
    });
    let stale = engine.runs().undo(original.id(), other).await;
    assert!(matches!(
        stale,
        Err(UndoRunError::Refused(Refusal::Stale { .. }))
    ));
    assert_eq!(world.made().len(), 1, "nothing was called");
}

#[tokio::test(start_paused = true)]
async fn an_undo_stops_at_the_first_failure_and_another_goes_on_there() {
    let world = World::new();
    let engine = world.engine("one");
    let mut plan = undoable(3, "s.save");
    plan["steps"][1]["undo"]["args"] = json!({"fail": "still in use", "times": 1});
    let original = run(&engine, plan).await;
    let first = order(&engine, original.id())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (first.status().as_str(), status_of(&first, "undo-s2")),
        ("failed", "failed")
    );
    let half = reload(&engine, original.id()).await;
    let states = ["s1", "s2", "s3"].map(|step| status_of(&half, step));
    assert_eq!(states, ["completed", "completed", "undone"]);
    let second = order(&engine, original.id())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(second.status().as_str(), "completed");
    assert_eq!(
        world.called()[3..],
        ["undo-s3", "undo-s2", "undo-s2", "undo-s1"]
    );
    assert_eq!(reload(&engine, original.id()).await.undos().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_taken_back_as_far_as_it_came() {
    let world = World::new();
    let engine = world.engine("one");
    let mut plan = undoable(3, "s.save");
    plan["steps"][2]["args"] = json!({"fail": "no"});
    plan["steps"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": "free", "tool": "w.write"}));
    let original = run(&engine, plan).await;
    assert_eq!(original.status().as_str(), "failed");
    let candidate = engine.runs().plan_undo(original.id()).await.unwrap();
    let PreparedUndo::Fresh { kept, steps, .. } = candidate.undo else {
        panic!("nothing is open")
    };
    assert_eq!(
        (steps.len(), kept.len()),
        (2, 1),
        "the step without an undo is named"
    );
    let undo = order(&engine, original.id())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(undo.status().as_str(), "completed");
    let original = reload(&engine, original.id()).await;
    let states = ["s1", "s2", "s3", "free"].map(|step| status_of(&original, step));
    assert_eq!(states, ["undone", "undone", "failed", "completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_is_not_taken_back_and_one_being_taken_back_is_not_run_again() {
    let world = World::new();
    let engine = world.engine("one");
    let mut plan = undoable(2, "s.save");
    plan["steps"][0]["args"]["ms"] = json!(100);
    let id = approved(&engine, plan).await;
    let mut running = engine.runs().start(&id, options()).await.unwrap();
    let early = engine.runs().plan_undo(running.run_id()).await;
    assert!(matches!(
        early,
        Err(UndoRunError::Refused(Refusal::NotEnded { .. }))
    ));
    let original = running.wait().await.unwrap();

    let mut undo = order(&engine, original.id()).await.unwrap();
    after(50).await;
    let shown = Shown::Version(1);
    engine
        .plans()
        .approve(
            &id,
            &serde_json::Map::new(),
            shown,
            &person(),
            Assurance::Terminal,
        )
        .await
        .unwrap();
    let meanwhile = engine.runs().start(&id, options()).await;
    assert!(
        matches!(meanwhile, Err(StartRunError::BeingUndone { .. })),
        "{meanwhile:?}"
    );
    let twice = order(&world.engine("two"), original.id()).await;
    assert!(
        matches!(twice, Err(UndoRunError::Start(StartRunError::Acquire(_)))),
        "{twice:?}"
    );
    assert_eq!(undo.wait().await.unwrap().status().as_str(), "completed");
    assert_eq!(
        engine
            .runs()
            .start(&id, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap()
            .status()
            .as_str(),
        "completed"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fork_does_not_take_back_what_another_run_did() {
    let world = World::new();
    let engine = world.engine("one");
    let original = run(&engine, undoable(3, "s.save")).await;
    let shown = Shown::Version(1);
    let plan = original.plan().id();
    engine
        .plans()
        .approve(
            plan,
            &serde_json::Map::new(),
            shown,
            &person(),
            Assurance::Terminal,
        )
        .await
        .unwrap();
    let from = ["s3".parse().unwrap()];
    let fork = engine
        .runs()
        .fork(original.id(), &from, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    let undo = order(&engine, fork.id())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(undo.plan().len(), 1);
    let fork = reload(&engine, fork.id()).await;
    assert_eq!(
        ["s1", "s2", "s3"].map(|step| status_of(&fork, step)),
        ["completed", "completed", "undone"]
    );
}

#[tokio::test(start_paused = true)]
async fn large_values_are_read_back_for_the_undo() {
    let world = World::new();
    let engine = world.engine("one");
    let large = "x".repeat(StoredValue::MAX_INLINE_BYTES + 1);
    let plan = json!({"id": "p", "steps": [{"id": "a", "tool": "s.save", "args": {"value": {"text": large}},
        "undo": {"tool": "s.save", "args": {"of": "${a.text}"}}}]});
    let original = run(&engine, plan).await;
    order(&engine, original.id())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(world.made()[1].args["of"], json!(large));
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

/// A world in which the undo of a run was killed after some time.
struct Crashed {
    world: World,
    original: RunId,
    at: Timestamp,
}

impl Crashed {
    fn after(ms: u64, plan: Value) -> Self {
        let runtime = runtime();
        let (world, original, at) = runtime.block_on(async {
            let world = World::new();
            let engine = world.engine("one");
            let original = run(&engine, plan).await;
            let _undoing = order(&engine, original.id()).await.unwrap();
            after(ms).await;
            let now = world.clock.now();
            (world, original.id().clone(), now)
        });
        drop(runtime);
        world.store.kill_owner(&OwnerId("one".into()));
        Self {
            world,
            original,
            at,
        }
    }

    fn go_on(&self) -> (Run, Run) {
        runtime().block_on(async {
            self.world.clock.carry_over(self.at);
            let engine = self.world.engine("two");
            // No person has to agree again: it is the same undo.
            let undo = engine
                .runs()
                .undo(&self.original, options())
                .await
                .unwrap()
                .wait()
                .await
                .unwrap();
            (undo, reload(&engine, &self.original).await)
        })
    }
}

#[test]
fn an_undo_that_was_killed_goes_on_where_it_was() {
    for k in 0..3 {
        let crashed = Crashed::after(100 * k + 50, undoable(3, "s.save"));
        let (undo, original) = crashed.go_on();
        assert_eq!(
            undo.status().as_str(),
            "completed",
            "killed in call {}",
            k + 1
        );
        assert!(
            ["s1", "s2", "s3"]
                .iter()
                .all(|step| status_of(&original, step) == "undone")
        );
        let made = crashed.world.called();
        assert_eq!(
            made.iter().filter(|step| step.starts_with("undo-")).count(),
            4,
            "one call was repeated"
        );
        assert_eq!(original.undos().len(), 1);
    }
}

#[test]
fn an_unsafe_undo_in_flight_is_unknown_until_a_person_says() {
    let value = StoredValue::Inline(Arc::new(json!(null)));
    let cases = [
        (Resolution::Happened { value }, "completed", 0),
        (Resolution::RunAgain, "completed", 1),
        (Resolution::DidNotHappen, "failed", 0),
    ];
    for (resolution, status, repeated) in cases {
        let crashed = Crashed::after(150, undoable(3, "w.erase"));
        let (undo, half) = crashed.go_on();
        assert_eq!(
            (undo.status().as_str(), status_of(&undo, "undo-s2")),
            ("waiting", "outcome_unknown")
        );
        assert_eq!(
            ["s1", "s2", "s3"].map(|s| status_of(&half, s)),
            ["completed", "completed", "undone"]
        );
        runtime().block_on(async {
            crashed.world.clock.carry_over(crashed.at);
            let engine = crashed.world.engine("three");
            let step = "undo-s2".to_owned();
            let resolved = resolution.clone();
            engine
                .runs()
                .command(
                    undo.id(),
                    RunCommand::Resolve {
                        step,
                        by: person(),
                        resolution: resolved,
                    },
                )
                .await
                .unwrap();
            if matches!(resolution, Resolution::Happened { .. }) {
                let original = reload(&engine, &crashed.original).await;
                assert_eq!(
                    status_of(&original, "s2"),
                    "undone",
                    "noted in the commit of the answer"
                );
            }
        });
        let ended = if status == "failed" {
            runtime().block_on(async { reload(&crashed.world.engine("four"), undo.id()).await })
        } else {
            crashed.go_on().0
        };
        assert_eq!(ended.status().as_str(), status, "{resolution:?}");
        assert_eq!(crashed.world.calls_of("undo-s2"), 1 + repeated);
    }
}

#[tokio::test(start_paused = true)]
async fn an_undo_is_folded_from_its_own_journal_whatever_becomes_of_the_plan() {
    let world = World::new();
    let engine = world.engine("one");
    let original = run(&engine, undoable(2, "s.save")).await;
    let undo = order(&engine, original.id())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    let mut edited = undoable(1, "s.save");
    edited["title"] = json!("Another plan");
    engine
        .plans()
        .propose(document(edited), &person())
        .await
        .unwrap();
    let again = reload(&engine, undo.id()).await;
    assert_eq!(again.steps_digest(), undo.steps_digest());
    assert_eq!(report_of(&again, "undo-s2").status.as_str(), "completed");
    let events = crate::world::entries(&*world.store, original.id());
    let undone = events
        .iter()
        .filter(|entry| matches!(entry.event, RunEvent::StepUndone { .. }))
        .count();
    assert_eq!(undone, 2);
}
