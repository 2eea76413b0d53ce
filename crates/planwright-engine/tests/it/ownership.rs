//! One owner per run: leases, epochs, and what becomes of an owner that lost its run.

use crate::faults::FaultyStore;
use crate::world::{World, after, approved, chain, entries, options, status_of};
use planwright_engine::port::{AppendError, Leases as _, OwnerId};
use planwright_engine::{RunError, StartRunError};
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_second_engine_takes_over_once_the_lease_ran_out_and_the_first_is_fenced() {
    let world = World::new();
    let one = FaultyStore::losing_renewals(&world).engine(&world, "one");
    let steps = json!({"id": "p", "steps": [
        {"id": "short", "tool": "r.read", "args": {"ms": 40_000}},
        {"id": "long", "tool": "r.read", "args": {"ms": 90_000}},
        {"id": "next", "tool": "r.read", "dependsOn": ["short"]},
    ]});
    let id = approved(&one, steps).await;
    let mut first = one.runs().start(&id, options()).await.unwrap();
    let two = world.engine("two");
    after(10_000).await;
    let held = two.runs().resume(&id, options()).await.unwrap_err();
    assert!(matches!(held, StartRunError::Acquire(_)), "{held}");

    after(25_000).await;
    let mut second = two.runs().resume(&id, options()).await.unwrap();
    let fenced = first.wait().await.unwrap_err();
    assert!(
        matches!(
            fenced,
            RunError::Append(AppendError::Fenced {
                ours: 1,
                found: 2,
                ..
            })
        ),
        "{fenced}"
    );
    let told: Vec<String> = world
        .told_to_stop()
        .into_iter()
        .map(|(step, _)| step)
        .collect();
    assert_eq!(
        told,
        ["long"],
        "the calls of a fenced owner are told to stop"
    );
    assert_eq!(world.calls_of("next"), 0, "a fenced owner starts nothing");

    let run = second.wait().await.unwrap();
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!(
        ["short", "long", "next"].map(|step| world.calls_of(step)),
        [2, 2, 1]
    );
    let epochs: Vec<u64> = entries(&*world.store, run.id())
        .iter()
        .map(|entry| entry.epoch)
        .collect();
    assert!(epochs.is_sorted() && epochs.first() == Some(&1) && epochs.last() == Some(&2));
}

#[tokio::test(start_paused = true)]
async fn an_owner_learns_from_its_renewal_that_it_lost_the_run() {
    let world = World::new();
    let one = world.engine("one");
    let id = approved(&one, chain(1, "w.write", 3_600_000)).await;
    let mut first = one.runs().start(&id, options()).await.unwrap();
    after(100).await;
    world.store.kill_owner(&OwnerId("one".into()));
    let two = world.engine("two");
    let mut second = two.runs().resume(&id, options()).await.unwrap();
    let fenced = first.wait().await.unwrap_err();
    assert!(
        matches!(fenced, RunError::Append(AppendError::Fenced { .. })),
        "{fenced}"
    );
    assert_eq!(world.told_to_stop().len(), 1);
    let run = second.wait().await.unwrap();
    assert_eq!(
        (status_of(&run, "s1"), world.calls_of("s1")),
        ("outcome_unknown", 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_kept_while_a_long_call_goes_on() {
    let world = World::new();
    let one = world.builder("one").lease_ttl(Duration::from_secs(30));
    let one = one
        .store(world.store.clone(), world.artifacts.clone())
        .build();
    let id = approved(&one, chain(1, "r.read", 3_600_000)).await;
    let mut first = one.runs().start(&id, options()).await.unwrap();
    for _ in 0..10 {
        after(300_000).await;
        let held = world
            .engine("two")
            .runs()
            .resume(&id, options())
            .await
            .unwrap_err();
        assert!(matches!(held, StartRunError::Acquire(_)), "{held}");
    }
    assert_eq!(first.wait().await.unwrap().status().as_str(), "completed");
    assert!(
        world.store.lease(first.run_id()).await.unwrap().is_none(),
        "an ended run has no owner"
    );
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_executing_is_not_started_or_deleted() {
    let world = World::new();
    let engine = world.engine("one");
    let id = approved(&engine, chain(1, "r.read", 1000)).await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    let again = world
        .engine("two")
        .runs()
        .start(&id, options())
        .await
        .unwrap_err();
    assert!(
        matches!(again, StartRunError::AlreadyExecuting { .. }),
        "{again}"
    );
    let deleted = engine
        .plans()
        .delete(&id, &crate::world::person())
        .await
        .unwrap_err();
    assert_eq!(
        deleted.to_string(),
        "the plan is executing: cancel the run first"
    );
    handle.wait().await.unwrap();
    engine
        .plans()
        .delete(&id, &crate::world::person())
        .await
        .unwrap();
}
