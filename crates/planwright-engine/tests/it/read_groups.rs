//! What the calls of a client cost in commits: two for one that changes something, and one for many
//! that only read, which are written together a moment later.

use crate::faults::FaultyStore;
use crate::sessions::{ended, open, wanted};
use crate::world::{World, after, entries, options};
use planwright_core::id::RunId;
use planwright_core::journal::StreamName;
use planwright_core::policy::{Mode, Policy};
use planwright_core::run::RunEvent;
use planwright_engine::port::{FeedOf, Journal as _, OwnerId, Position, StoreError};
use planwright_engine::{Engine, Session};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// A policy that lets everything be called.
fn allows_all(world: &World, store: &Arc<FaultyStore>) -> Engine {
    engine_named("one", world, store)
}

fn engine_named(name: &str, world: &World, store: &Arc<FaultyStore>) -> Engine {
    let policy = json!({"rules": [{"tool": "*", "then": "allow"}]});
    let policy = Policy::read(&serde_json::from_value(policy).unwrap()).unwrap();
    store.engine_of(world, world.builder(name).policy(Arc::new(policy)))
}

async fn call(session: &Session, tool: &str, value: u64) -> RunId {
    let call = session.call(wanted(tool, json!({"value": value}), false));
    let call = call.await.unwrap();
    assert_eq!(ended(&call).await.unwrap(), json!(value));
    call.run().clone()
}

fn is_recorded(world: &World, run: &RunId) -> bool {
    let succeeded = |event: &RunEvent| matches!(event, RunEvent::AttemptSucceeded { .. });
    let journal = entries(&*world.store, run);
    journal.iter().any(|entry| succeeded(&entry.event))
}

#[tokio::test(start_paused = true)]
async fn a_call_that_changes_something_costs_two_commits() {
    let world = World::new();
    let store = FaultyStore::new(&world);
    let session = open(&allows_all(&world, &store), Mode::Enforce).await;
    for tool in ["w.write", "k.put", "s.save"] {
        let before = store.appends();
        let run = call(&session, tool, 1).await;
        assert_eq!(store.appends() - before, 2, "{tool}");
        assert!(is_recorded(&world, &run), "{tool}");
    }
    // Each of them was durable before it was made.
    assert_eq!(world.made().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn calls_that_only_read_are_written_together_a_moment_later() {
    let world = World::new();
    let store = FaultyStore::new(&world);
    let session = open(&allows_all(&world, &store), Mode::Enforce).await;
    let before = store.appends();
    let mut runs = Vec::new();
    for value in 0..20 {
        runs.push(call(&session, "r.read", value).await);
    }
    assert!(store.appends() - before <= 1);
    after(150).await;
    assert!(runs.iter().all(|run| is_recorded(&world, run)));
    assert!(store.appends() - before <= 2);
    // Nothing is left to write.
    let before = store.appends();
    after(1000).await;
    assert_eq!(store.appends(), before);
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_a_change_is_in_the_journal_before_it() {
    let world = World::new();
    let store = FaultyStore::new(&world);
    let session = open(&allows_all(&world, &store), Mode::Enforce).await;
    let read = call(&session, "r.read", 1).await;
    assert!(!is_recorded(&world, &read));
    let before = store.appends();
    let changed = call(&session, "w.write", 2).await;
    assert!(is_recorded(&world, &read));
    assert_eq!(store.appends() - before, 2);
    let feed = world.store.feed(&FeedOf::All, Position(0), 10_000);
    let feed = feed.await.unwrap();
    let place = |run: &RunId| {
        let stream = StreamName::Run(run.clone());
        let places = feed.iter().filter(move |placed| placed.stream == stream);
        places.map(|placed| placed.position).collect::<Vec<_>>()
    };
    assert!(place(&read).iter().max() < place(&changed).iter().min());
}

#[tokio::test(start_paused = true)]
async fn what_this_process_looks_up_has_every_read_in_it() {
    let world = World::new();
    let store = FaultyStore::new(&world);
    let engine = allows_all(&world, &store);
    let session = open(&engine, Mode::Enforce).await;
    call(&session, "r.read", 1).await;
    let sessions = engine.sessions();
    let recorded = sessions.recorded_calls(session.plan());
    assert_eq!(recorded.await.unwrap().len(), 1);
    let read = call(&session, "r.look", 2).await;
    let of_session = FeedOf::Plan(session.plan().clone());
    let journals = engine.journals();
    let feed = journals.feed(&of_session, Position(0), 10_000);
    let stream = StreamName::Run(read);
    assert!(
        feed.await
            .unwrap()
            .iter()
            .any(|placed| placed.stream == stream)
    );
    let last = call(&session, "r.read", 3).await;
    session.close().await;
    assert!(is_recorded(&world, &last));
}

#[tokio::test(start_paused = true)]
async fn a_hundred_reads_at_once_are_a_few_commits_and_each_gets_its_own_answer() {
    let world = World::new();
    let store = FaultyStore::new(&world);
    let session = open(&allows_all(&world, &store), Mode::Enforce).await;
    let before = store.appends();
    let reads = (0..100).map(|value| call(&session, "r.read", value));
    let runs = futures::future::join_all(reads).await;
    after(200).await;
    assert!(runs.iter().all(|run| is_recorded(&world, run)));
    let commits = store.appends() - before;
    assert!(commits <= 8, "{commits} commits");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_gives_up_while_a_group_is_written_loses_nothing_of_it() {
    let world = World::new();
    let store = FaultyStore::slow(&world, Duration::from_millis(50));
    let engine = allows_all(&world, &store);
    let session = open(&engine, Mode::Enforce).await;
    let read = call(&session, "r.read", 1).await;
    let journals = engine.journals();
    tokio::select! {
        biased;
        _ = journals.feed(&FeedOf::All, Position(0), 10) => panic!("the group takes 50 ms"),
        () = after(10) => {}
    }
    assert!(!is_recorded(&world, &read));
    after(500).await;
    assert!(is_recorded(&world, &read));
    call(&session, "w.write", 2).await;
    session.close().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_while_what_was_read_cannot_be_written() {
    let world = World::new();
    let appends = {
        let store = FaultyStore::new(&world);
        let session = open(&allows_all(&world, &store), Mode::Enforce).await;
        session.close().await;
        store.appends()
    };
    let world = World::new();
    // The session is opened; then the store is busy three times.
    let store = FaultyStore::troubled(&world, appends..appends + 3, StoreError::Busy("x".into()));
    let session = open(&allows_all(&world, &store), Mode::Enforce).await;
    let first = call(&session, "r.read", 1).await;
    after(150).await;
    let read = session.call(wanted("r.read", json!({}), false)).await;
    let error = read.unwrap_err();
    assert_eq!(error.code.as_str(), "value_not_stored", "{error:?}");
    assert_eq!(world.made().len(), 1);
    after(10_000).await;
    assert!(is_recorded(&world, &first));
    let second = call(&session, "r.read", 2).await;
    session.close().await;
    assert!(is_recorded(&world, &second));
}

#[test]
fn a_process_that_is_killed_loses_records_of_reads_and_nothing_else() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap()
    };
    let first = runtime();
    let (world, run, changed, read) = first.block_on(async {
        let world = World::new();
        let store = FaultyStore::new(&world);
        let session = open(&allows_all(&world, &store), Mode::Enforce).await;
        let changed = call(&session, "w.write", 1).await;
        let read = call(&session, "r.read", 2).await;
        let run = session.run().clone();
        // A process that is killed ends nothing.
        std::mem::forget(session);
        (world, run, changed, read)
    });
    drop(first);
    world.store.kill_owner(&OwnerId("one".into()));
    assert!(is_recorded(&world, &changed));
    assert!(entries(&*world.store, &read).is_empty());
    runtime().block_on(async {
        let next = engine_named("two", &world, &FaultyStore::new(&world));
        let runs = next.runs();
        let resumed = runs.resume_run(&run, options());
        let ended = resumed.await.unwrap().wait().await.unwrap();
        assert!(ended.state().is_terminal(), "{:?}", ended.status());
        // Nothing is called again, and a new session works.
        assert_eq!(world.made().len(), 2);
        let session = open(&next, Mode::Enforce).await;
        call(&session, "r.read", 3).await;
        session.close().await;
    });
}
