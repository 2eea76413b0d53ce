//! A process that dies while an executor works: another one goes on from the journal, and nothing
//! happens twice.

use crate::world::{World, after, document, options, person};
use planwright_core::id::PlanId;
use planwright_core::model::{Message, ModelRole, ModelUse, TokenUsage, WantedCall};
use planwright_core::policy::LateChoice;
use planwright_core::principal::Assurance;
use planwright_core::run::{Run, Shown, StepState};
use planwright_core::time::Timestamp;
use planwright_engine::memory::NoModel;
use planwright_engine::port::{
    BoxFuture, Clock as _, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest, OwnerId,
};
use planwright_engine::{Engine, GivenApproval};
use serde_json::{Map, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Says what comes next from what was said before, as a model does: it remembers nothing by itself.
#[derive(Debug)]
struct Steady;

impl Model for Steady {
    fn models(&self) -> Vec<ModelInfo> {
        NoModel.models()
    }

    fn resolve(&self, _: ModelRole, _: Option<&str>) -> Result<ModelInfo, ModelError> {
        Ok(ModelInfo {
            name: "steady/model".into(),
            roles: vec![ModelRole::Executor],
            endpoint: "memory".into(),
            key: None,
            context_tokens: None,
        })
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let results = request
            .messages
            .iter()
            .filter(|message| matches!(message, Message::Tool { .. }))
            .count();
        let call = |name: &str| WantedCall {
            id: format!("c{results}"),
            name: name.to_owned(),
            args: json!({"ms": 30, "value": results}),
        };
        let (text, calls) = match results {
            0 => ("", vec![call("k.put")]),
            1 => ("", vec![call("w.write"), call("r.read")]),
            3 => ("", vec![call("s.save")]),
            _ => ("all done", Vec::new()),
        };
        let usage = TokenUsage {
            input: 1,
            output: 1,
            cached: 0,
            estimated: false,
        };
        let used = ModelUse {
            role: request.role,
            model: "steady/model".into(),
            usage,
            cost: None,
        };
        let answer = ModelAnswer {
            text: text.to_owned(),
            calls,
            used,
            cut: false,
        };
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(answer)
        })
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

fn engine(world: &World, name: &str) -> Engine {
    let builder = world.builder(name).store(
        Arc::clone(&world.store) as _,
        Arc::clone(&world.artifacts) as _,
    );
    builder.model(Arc::new(Steady)).build()
}

async fn approved(engine: &Engine) -> PlanId {
    let plan = json!({"id": "p", "toolsRequired": ["k.put", "w.write", "r.read", "s.save"], "steps": [
        {"id": "work", "agent": {"instruction": "do it all"}},
    ]});
    let (review, _) = engine
        .plans()
        .propose(document(plan), &person())
        .await
        .unwrap();
    let late = BTreeMap::from_iter([("work".to_owned(), LateChoice::Any)]);
    let shown = Shown::Version(review.current().number);
    let given = GivenApproval {
        shown,
        by: person(),
        assurance: Assurance::Terminal,
        late,
    };
    engine
        .plans()
        .approve_on_terms(review.id(), &Map::new(), &given)
        .await
        .unwrap();
    review.id().clone()
}

/// Lets the first engine work for a while and kills it.
fn killed_after(ms: u64) -> (World, Timestamp) {
    let runtime = runtime();
    let (world, at) = runtime.block_on(async {
        let world = World::new();
        let engine = engine(&world, "one");
        let id = approved(&engine).await;
        let _running = engine.runs().start(&id, options()).await.unwrap();
        after(ms).await;
        let at = world.clock.now();
        (world, at)
    });
    drop(runtime);
    world.store.kill_owner(&OwnerId("one".into()));
    (world, at)
}

fn resume(world: &World, at: Timestamp) -> Option<Run> {
    runtime().block_on(async {
        world.clock.carry_over(at);
        let plan: PlanId = "p".parse().unwrap();
        let mut handle = engine(world, "two")
            .runs()
            .resume(&plan, options())
            .await
            .ok()?;
        Some(handle.wait().await.unwrap())
    })
}

fn effects(world: &World, value: u64) -> usize {
    world
        .made()
        .iter()
        .filter(|made| made.args["value"] == value)
        .count()
}

#[test]
fn whenever_the_process_dies_every_effect_happens_once_or_a_person_is_asked() {
    let mut completed = 0;
    let mut asked = 0;
    for ms in (0..260).step_by(3) {
        let (world, at) = killed_after(ms);
        // It may have ended before it was killed.
        let Some(run) = resume(&world, at) else {
            continue;
        };
        let keys: BTreeSet<String> = world
            .made()
            .iter()
            .filter(|made| made.args["value"] == 0)
            .map(|made| made.key.clone())
            .collect();
        assert_eq!(
            keys.len(),
            1,
            "after {ms} ms: a repeated call has the same key"
        );
        let writes = world
            .made()
            .iter()
            .filter(|made| made.args["value"] == 1 && made.args.get("key").is_none())
            .count();
        match run.status().as_str() {
            "completed" => {
                completed += 1;
                assert!(
                    (2..=3).contains(&writes),
                    "after {ms} ms: {writes} calls of the second turn"
                );
                assert!(effects(&world, 3) >= 1, "after {ms} ms");
            }
            "waiting" => {
                asked += 1;
                let StepState::AwaitingPlan { .. } = run.step(run.find("work").unwrap()) else {
                    panic!("after {ms} ms: {}", run.status().as_str())
                };
                assert_eq!(
                    writes, 1,
                    "after {ms} ms: what may have happened is not repeated"
                );
            }
            other => panic!("after {ms} ms the run is {other}"),
        }
    }
    assert!(
        completed > 20 && asked >= 5,
        "{completed} completed, {asked} asked"
    );
}
