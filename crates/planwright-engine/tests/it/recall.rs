//! What a conversation has spent, counted again from the journals.

use crate::agents::wants;
use crate::world::{World, approved, document, options, person};
use planwright_core::run::Run;
use planwright_engine::Engine;
use planwright_engine::chat::Spending;
use planwright_engine::memory::ScriptedModel;
use serde_json::{Value, json};
use std::sync::Arc;

async fn ran(engine: &Engine, plan: Value) -> Run {
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
async fn the_calls_of_sub_plans_and_executors_count_and_the_steps_that_run_them_do_not() {
    let world = World::new();
    let model = ScriptedModel::default()
        .wants(wants("r.read", json!({"fail": "no such file"})))
        .wants(wants("r.read", json!({"value": "found"})))
        .wants(wants(
            "w.write",
            json!({"value": "never: it is outside the scope"}),
        ))
        .says("it says found");
    let builder = world.builder("one").store(
        Arc::clone(&world.store) as _,
        Arc::clone(&world.artifacts) as _,
    );
    let engine = builder.model(Arc::new(model.clone())).build();
    let child = json!({"id": "child", "steps": [
        {"id": "each", "tool": "r.read", "forEach": [1, 2], "args": {"value": "${item}"}},
    ]});
    engine
        .plans()
        .propose(document(child), &person())
        .await
        .unwrap();
    let run = ran(
        &engine,
        json!({"id": "p", "goal": "look", "toolsRequired": ["r.read"], "steps": [
            {"id": "sub", "plan": {"id": "child"}},
            {"id": "subs", "plan": {"id": "child"}, "forEach": [1, 2]},
            {"id": "work", "agent": {"instruction": "find it"}, "dependsOn": ["sub", "subs"]},
            {"id": "after", "tool": "r.read", "dependsOn": ["work"]},
        ]}),
    )
    .await;
    assert_eq!(run.status().as_str(), "completed");
    let spending = Spending::default();
    engine.recall_spending(run.id(), &spending).await.unwrap();
    assert_eq!(spending.calls(), world.called().len() as u64);
    assert_eq!(spending.calls(), 2 + 4 + 2 + 1);
    assert_eq!((spending.tokens().total(), run.tokens()), (60, 60));
}
