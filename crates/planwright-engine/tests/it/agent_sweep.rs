//! The store dies at every commit of a work with executors in it that is adjusted half-way: the
//! next process goes on, no effect happens twice, and people are asked about exactly what no
//! process can know.

use crate::faults::FaultyStore;
use crate::world::{World, document, entries, options, person};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_core::model::{Message, ModelRole, ModelUse, TokenUsage, WantedCall};
use planwright_core::policy::LateChoice;
use planwright_core::principal::Assurance;
use planwright_core::review::Review;
use planwright_core::run::{
    Reflection, Resolution, Run, RunEvent, RunState, Shown, StepState, StoredValue,
};
use planwright_engine::memory::ScriptedModel;
use planwright_engine::port::{
    BoxFuture, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest, OwnerId, StreamIndex as _,
};
use planwright_engine::{Engine, EngineBuilder, GivenApproval, RunCommand, RunOptions};
use serde_json::{Map, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A step of a run: of the plan's, or of one that makes a call of an executor.
type Place = (String, String);

/// Says what comes next from what it is told alone, so that it says the same again after a crash.
#[derive(Debug)]
struct Sober;

impl Model for Sober {
    fn models(&self) -> Vec<ModelInfo> {
        ScriptedModel::default().models()
    }

    fn resolve(&self, role: ModelRole, _: Option<&str>) -> Result<ModelInfo, ModelError> {
        ScriptedModel::default().resolve(role, None)
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let told = request
            .messages
            .iter()
            .filter(|message| matches!(message, Message::Tool { .. }))
            .count();
        let call = |name: &str| WantedCall {
            id: format!("c{told}"),
            name: name.to_owned(),
            args: json!({"ms": 3}),
        };
        let (text, calls) = match (request.role, told) {
            (ModelRole::Reflector, _) => (retry(), Vec::new()),
            (_, 0) => (String::new(), vec![call("k.put")]),
            (_, 1) => (String::new(), vec![call("w.write"), call("r.read")]),
            _ => ("all done".to_owned(), Vec::new()),
        };
        let usage = TokenUsage {
            input: 1,
            output: 1,
            ..TokenUsage::default()
        };
        let used = ModelUse {
            role: request.role,
            model: ScriptedModel::NAME.to_owned(),
            usage,
            cost: None,
        };
        Box::pin(std::future::ready(Ok(ModelAnswer {
            text,
            calls,
            used,
            cut: false,
        })))
    }
}

fn retry() -> String {
    let retry = json!({"type": "retry", "step": "b", "args": {"value": "found"}});
    json!({"assessment": "needs_adjustment", "reasoning": "so", "adjustments": [retry]}).to_string()
}

/// An executor works before the step that fails, and another one after it.
async fn proposed(engine: &Engine) -> PlanId {
    let plan = json!({"id": "p", "toolsRequired": ["k.put", "w.write", "r.read", "s.save"], "steps": [
        {"id": "before", "agent": {"instruction": "prepare it"}},
        {"id": "b", "tool": "s.save", "dependsOn": ["before"], "args": {"fail": "no such file"}},
        {"id": "c", "tool": "w.write", "dependsOn": ["b"], "args": {"value": "${b}"}},
        {"id": "after", "agent": {"instruction": "tidy up"}, "dependsOn": ["c"]},
    ]});
    engine
        .plans()
        .propose(document(plan), &person())
        .await
        .unwrap()
        .0
        .id()
        .clone()
}

/// Agrees to the plan as it is, if that is not done yet.
async fn approve(engine: &Engine, id: &PlanId) {
    let (review, _) = engine.plans().load_review(id).await.unwrap();
    let late = ["before", "after"].map(|step| (step.to_owned(), LateChoice::Any));
    let shown = Shown::Version(review.current().number);
    let late = BTreeMap::from_iter(late);
    let given = GivenApproval {
        shown,
        by: person(),
        assurance: Assurance::Terminal,
        late,
    };
    drop(
        engine
            .plans()
            .approve_on_terms(id, &Map::new(), &given)
            .await,
    );
}

fn with_model(builder: EngineBuilder) -> EngineBuilder {
    builder.model(Arc::new(Sober))
}

/// The whole work in one process. Nothing if the store died meanwhile.
async fn work(engine: &Engine, id: &PlanId) -> Option<Run> {
    let reflection = Some(Reflection {
        max_cycles: 3,
        failures_only: true,
        ..Reflection::default()
    });
    let begun = engine
        .runs()
        .start(
            id,
            RunOptions {
                reflection,
                ..options()
            },
        )
        .await;
    let first = begun.ok()?.wait().await.ok()?;
    assert_eq!(first.status().as_str(), "adjusted");
    approve(engine, id).await;
    engine
        .runs()
        .continue_adjusted(first.id(), options())
        .await
        .ok()?
        .wait()
        .await
        .ok()
}

/// Every run of the plan, those that make calls of executors too.
async fn all_runs(world: &World, id: &PlanId) -> Vec<RunId> {
    let infos = world.store.runs(id).await.unwrap().into_iter();
    let runs = infos.filter_map(|info| match info.stream {
        StreamName::Run(run) => Some(run),
        StreamName::Plan(_) => None,
    });
    runs.collect()
}

/// Writes that began and of which the journal knows no end: it is unknown whether they happened.
async fn begun_writes(world: &World, id: &PlanId) -> BTreeSet<Place> {
    let mut begun = BTreeSet::new();
    for run in all_runs(world, id).await {
        for entry in entries(&*world.store, &run) {
            match entry.event {
                RunEvent::AttemptStarted { step, tool, .. } if tool.to_string() == "w.write" => {
                    begun.insert((run.to_string(), step.to_string()));
                }
                RunEvent::AttemptSucceeded { step, .. } => {
                    begun.remove(&(run.to_string(), step.to_string()));
                }
                _ => {}
            }
        }
    }
    begun
}

/// Says of everything whose outcome is unknown what was the case. Returns what that was about.
async fn say_what_happened(world: &World, engine: &Engine, review: &Review) -> BTreeSet<Place> {
    let mut unknown = BTreeSet::new();
    for id in all_runs(world, review.id()).await {
        let (run, _) = engine.runs().load_run(&id, review).await.unwrap();
        for ix in run.indices() {
            let StepState::OutcomeUnknown { .. } = run.step(ix) else {
                continue;
            };
            let step = run.step_id(ix).to_string();
            let by = person();
            let made = world
                .made()
                .iter()
                .any(|made| made.run == id.as_str() && made.step == step);
            let resolution = match made {
                true => Resolution::Happened {
                    value: StoredValue::Inline(Arc::new(json!("done"))),
                },
                false => Resolution::RunAgain,
            };
            unknown.insert((id.to_string(), step.clone()));
            engine
                .runs()
                .command(
                    &id,
                    RunCommand::Resolve {
                        step,
                        by,
                        resolution,
                    },
                )
                .await
                .unwrap();
        }
    }
    unknown
}

/// Goes on until the work is done. Returns its last run, and what people were asked about.
async fn go_on(world: &World, engine: &Engine, id: &PlanId) -> Option<(Run, BTreeSet<Place>)> {
    let mut asked = BTreeSet::new();
    for _ in 0..20 {
        let (review, _) = engine.plans().load_review(id).await.unwrap();
        let (run, _) = engine
            .runs()
            .load_run(&review.runs().last()?.run, &review)
            .await
            .unwrap();
        match run.state() {
            RunState::Adjusted { .. } => approve(engine, id).await,
            state if state.is_terminal() => return Some((run, asked)),
            _ => asked.extend(say_what_happened(world, engine, &review).await),
        }
        engine
            .runs()
            .resume(id, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
    }
    panic!("it does not come to an end");
}

/// Lets the store die at its `at`-th commit. Returns whether it lived to see the end.
async fn die_at(at: usize, written: bool, asked: &mut usize) -> bool {
    let world = World::new();
    let faulty = FaultyStore::failing(&world, at, written);
    let dying = faulty.engine_of(&world, with_model(world.builder("one")));
    let id = proposed(&dying).await;
    approve(&dying, &id).await;
    let untouched = work(&dying, &id)
        .await
        .is_some_and(|run| run.status().as_str() == "completed");
    world.store.kill_owner(&OwnerId("one".into()));
    let expected = begun_writes(&world, &id).await;
    let builder = with_model(world.builder("two"));
    let next = builder
        .store(
            Arc::clone(&world.store) as _,
            Arc::clone(&world.artifacts) as _,
        )
        .build();
    let Some((run, unknown)) = go_on(&world, &next, &id).await else {
        assert!(
            world.made().is_empty(),
            "commit {at} ({written}): a call without a run"
        );
        return untouched;
    };
    assert_eq!(
        run.status().as_str(),
        "completed",
        "commit {at} ({written})"
    );
    assert_eq!(
        unknown, expected,
        "commit {at} ({written}): asked about, and begun without an end"
    );
    *asked += unknown.len();
    check_effects(&world, at, written);
    let (review, _) = next.plans().load_review(&id).await.unwrap();
    assert_eq!(
        (review.versions().len(), review.runs().len()),
        (2, 2),
        "commit {at} ({written})"
    );
    untouched
}

/// Every write happened once, every repeated call went under the same key, and what was done was
/// not done again.
fn check_effects(world: &World, at: usize, written: bool) {
    let made = world.made();
    let of = |tool: &str| {
        made.iter()
            .filter(|made| made.tool == tool)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("w.write").len(), 3, "commit {at} ({written}): {made:#?}");
    let keys: BTreeSet<&str> = of("k.put").iter().map(|made| made.key.as_str()).collect();
    assert_eq!(keys.len(), 2, "commit {at} ({written}): {made:#?}");
    let places: BTreeSet<(&str, &str)> = made
        .iter()
        .map(|made| (made.run.as_str(), made.step.as_str()))
        .collect();
    // Two calls of `b`, one of `c`, and three of each executor.
    assert_eq!(places.len(), 9, "commit {at} ({written}): {made:#?}");
}

#[tokio::test(start_paused = true)]
async fn whenever_the_store_dies_executors_and_what_was_adjusted_go_on_once() {
    for written in [false, true] {
        let mut at = 1;
        let mut asked = 0;
        while !die_at(at, written, &mut asked).await {
            at += 1;
        }
        assert!(
            at > 25 && asked >= 3,
            "{at} commits, {asked} unknown outcomes"
        );
    }
}
