//! A clock that is set, a machine that sleeps: what expires does, what waits for so many seconds
//! waits for them, and an owner that is alive keeps its runs.

use crate::world::{World, after, approved, chain, entries, options, person, status_of};
use planwright_core::id::RunId;
use planwright_core::journal::StreamName;
use planwright_core::run::RunEvent;
use planwright_engine::port::{Clock as _, Leases as _, OwnerId, StreamIndex as _};
use planwright_engine::{
    Engine, Retention, RunCommand, StartRunError, Supervisor, SupervisorOptions,
};
use serde_json::json;
use std::time::Duration;

const DAY: Duration = Duration::from_hours(24);

fn owner(name: &str) -> OwnerId {
    OwnerId(name.to_owned())
}

/// Notes a run as stalled after a minute.
fn impatient(world: &World, name: &str) -> Engine {
    world
        .builder(name)
        .store(world.store.clone(), world.artifacts.clone())
        .retention(Retention {
            stalled_after: Duration::from_mins(1),
            ..Retention::default()
        })
        .build()
}

async fn status(world: &World, run: &RunId) -> String {
    let info = world.store.info(&StreamName::Run(run.clone())).await;
    info.unwrap().unwrap().status.status.to_string()
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_expired_while_the_machine_slept_starts_nothing() {
    let world = World::new();
    let engine = world.engine_under("one", json!({"approval": {"expires_after": "1h"}}));
    let plan = approved(&engine, chain(1, "r.read", 1)).await;
    world.clock.suspend(DAY);
    let refused = engine.runs().start(&plan, options()).await.unwrap_err();
    assert!(matches!(refused, StartRunError::Refused(_)), "{refused}");
    assert!(world.made().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_does_not_time_out_because_the_machine_slept() {
    let world = World::new();
    let engine = world.engine("one");
    let plan = json!({"id": "p", "steps": [
        {"id": "a", "tool": "w.write", "args": {"ms": 5_000}, "timeoutSeconds": 10},
    ]});
    let plan = approved(&engine, plan).await;
    let mut handle = engine.runs().start(&plan, options()).await.unwrap();
    after(1_000).await;
    world.clock.suspend(DAY);
    let run = handle.wait().await.unwrap();
    assert_eq!(
        (status_of(&run, "a"), world.calls_of("a")),
        ("completed", 1)
    );
    let took = entries(&*world.store, run.id());
    let took = took.last().unwrap().at.since(took.first().unwrap().at);
    assert!(took >= DAY, "entries are dated by the time of day");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_times_out_wherever_the_clock_is_set() {
    for jump in ["forward", "back"] {
        let world = World::new();
        let engine = world.engine("one");
        let plan = json!({"id": "p", "steps": [
            {"id": "a", "tool": "r.read", "args": {"ms": 3_600_000}, "timeoutSeconds": 10},
        ]});
        let plan = approved(&engine, plan).await;
        let mut handle = engine.runs().start(&plan, options()).await.unwrap();
        after(1_000).await;
        match jump {
            "forward" => world.clock.set_forward(DAY),
            _ => world.clock.set_back(DAY),
        }
        let begun = world.clock.awake();
        let run = handle.wait().await.unwrap();
        let waited = world.clock.awake() - begun;
        assert_eq!(status_of(&run, "a"), "failed", "{jump}");
        let seconds = Duration::from_secs;
        assert!(
            (seconds(9)..seconds(11)).contains(&waited),
            "{jump}: {waited:?}"
        );
    }
}

fn failing_once() -> serde_json::Value {
    json!({"id": "p", "steps": [{
        "id": "a", "tool": "r.read", "args": {"fail": "busy", "retryable": true, "times": 1},
        "retry": {"max": 1, "backoff": 60.0},
    }]})
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_its_own_delay_wherever_the_clock_is_set() {
    for jump in ["forward", "back"] {
        let world = World::new();
        let engine = world.engine("one");
        let plan = approved(&engine, failing_once()).await;
        let mut handle = engine.runs().start(&plan, options()).await.unwrap();
        after(1_000).await;
        assert_eq!(world.calls_of("a"), 1);
        match jump {
            "forward" => world.clock.set_forward(DAY),
            _ => world.clock.set_back(DAY),
        }
        after(10_000).await;
        assert_eq!(world.calls_of("a"), 1, "{jump}: not before its time");
        after(120_000).await;
        assert_eq!(world.calls_of("a"), 2, "{jump}");
        let run = handle.wait().await.unwrap();
        let times: Vec<_> = entries(&*world.store, run.id())
            .into_iter()
            .map(|entry| entry.at)
            .collect();
        assert!(times.is_sorted(), "{jump}: {times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_clock_that_was_a_day_ahead_a_retry_does_not_wait_a_day() {
    let world = World::new();
    world.clock.set_forward(DAY);
    let one = world.engine("one");
    let plan = approved(&one, failing_once()).await;
    let handle = one.runs().start(&plan, options()).await.unwrap();
    after(1_000).await;
    world.store.kill_owner(&owner("one"));
    world.clock.set_back(DAY);
    let two = world.engine("two");
    let mut second = two.runs().resume(&plan, options()).await.unwrap();
    after(120_000).await;
    assert_eq!(world.calls_of("a"), 2);
    let run = second.wait().await.unwrap();
    assert_eq!(run.status().as_str(), "completed");
    drop(handle);
}

#[tokio::test(start_paused = true)]
async fn entries_of_a_plan_are_in_order_after_the_clock_went_back() {
    let world = World::new();
    let engine = world.engine("one");
    let plan = approved(&engine, chain(1, "r.read", 1)).await;
    world.clock.set_back(DAY);
    let mut handle = engine.runs().start(&plan, options()).await.unwrap();
    handle.wait().await.unwrap();
    let (review, _) = engine.plans().load_review(&plan).await.unwrap();
    assert!(review.updated_at() >= review.approvals()[0].at);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_alive_keeps_its_run_when_another_process_looks_after_a_sleep() {
    let world = World::new();
    let one = world.engine("one");
    world.store.show_alive(&owner("one"));
    let plan = approved(&one, chain(1, "w.write", 60_000)).await;
    let mut first = one.runs().start(&plan, options()).await.unwrap();
    after(1_000).await;
    world.clock.suspend(Duration::from_hours(8));
    let report = impatient(&world, "two")
        .maintenance()
        .run_maintenance()
        .await
        .unwrap();
    assert!(report.notices.is_empty(), "{:?}", report.notices);
    let run = first.wait().await.unwrap();
    assert_eq!(
        (status_of(&run, "s1"), world.calls_of("s1")),
        ("completed", 1)
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_dead_leaves_a_stalled_run_as_before() {
    let world = World::new();
    let one = world.engine("one");
    world.store.show_alive(&owner("one"));
    let plan = approved(&one, chain(1, "w.write", 3_600_000)).await;
    let first = one.runs().start(&plan, options()).await.unwrap();
    after(1_000).await;
    world.store.kill_owner(&owner("one"));
    after(120_000).await;
    let two = impatient(&world, "two");
    let report = two.maintenance().run_maintenance().await.unwrap();
    assert_eq!(report.notices.len(), 1, "{:?}", report.notices);
    assert_eq!(status(&world, first.run_id()).await, "stalled");
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_alive_keeps_its_run_when_another_service_wakes_up_with_it() {
    let world = World::new();
    let one = world.engine("one");
    world.store.show_alive(&owner("one"));
    let plan = approved(&one, chain(2, "w.write", 60_000)).await;
    let mut first = one.runs().start(&plan, options()).await.unwrap();
    let supervisor = Supervisor::start(world.engine("two"), &SupervisorOptions::default());
    after(5_000).await;
    world.clock.suspend(Duration::from_hours(8));
    let run = first.wait().await.unwrap();
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!(world.called(), ["s1", "s2"]);
    drop(supervisor);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_stopped_for_good_loses_its_run_to_another_service() {
    let world = World::new();
    let one = world.engine("one");
    let plan = approved(&one, chain(1, "r.read", 60_000)).await;
    let first = one.runs().start(&plan, options()).await.unwrap();
    let run = first.run_id().clone();
    after(1_000).await;
    // Its lock is held, and its lease is never renewed.
    world.store.show_alive(&owner("gone"));
    world.store.kill_owner(&owner("one"));
    let gone = owner("gone");
    let taking = world.store.acquire(&run, &gone, Duration::from_secs(30));
    taking.await.unwrap();
    let supervisor = Supervisor::start(world.engine("two"), &SupervisorOptions::default());
    after(29_000).await;
    assert_eq!(world.calls_of("s1"), 1, "its lease lasts");
    after(120_000).await;
    assert_eq!(status(&world, &run).await, "completed");
    assert_eq!(world.calls_of("s1"), 2);
    drop((first, supervisor));
}

#[tokio::test(start_paused = true)]
async fn a_command_reaches_an_owner_whose_lease_ran_out_in_a_sleep() {
    let world = World::new();
    let one = world.engine("one");
    world.store.show_alive(&owner("one"));
    let plan = approved(&one, chain(2, "w.write", 20_000)).await;
    let mut first = one.runs().start(&plan, options()).await.unwrap();
    after(1_000).await;
    world.clock.suspend(Duration::from_hours(8));
    let pause = RunCommand::Pause { by: person() };
    let two = world.engine("two");
    two.runs().command(first.run_id(), pause).await.unwrap();
    let run = first.wait().await.unwrap();
    assert_eq!(run.status().as_str(), "paused");
    assert_eq!(status_of(&run, "s1"), "completed", "its call was not lost");
}

#[tokio::test(start_paused = true)]
async fn the_runs_of_a_dead_peer_are_taken_over_at_once() {
    let world = World::new();
    let one = world.engine("one");
    let mut firsts = Vec::new();
    for number in 0..3 {
        let mut plan = chain(1, "r.read", 3_600_000);
        plan["id"] = json!(format!("p{number}"));
        let plan = approved(&one, plan).await;
        firsts.push(one.runs().start(&plan, options()).await.unwrap());
    }
    let supervisor = Supervisor::start(world.engine("two"), &SupervisorOptions::default());
    after(5_000).await;
    assert_eq!(world.made().len(), 3);
    world.store.kill_owner(&owner("one"));
    after(1_500).await;
    assert_eq!(world.made().len(), 6, "each was called again");
    for first in &firsts {
        let taken = entries(&*world.store, first.run_id())
            .into_iter()
            .any(|entry| matches!(entry.event, RunEvent::AttemptInterrupted { .. }));
        assert!(taken);
    }
    drop((firsts, supervisor));
}
