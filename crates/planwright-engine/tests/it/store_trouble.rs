//! A store that cannot be written for a while: what has happened is recorded all the same.

use crate::faults::FaultyStore;
use crate::world::{World, approved, chain, entries, options, reads, report_of, status_of};
use planwright_core::id::RunId;
use planwright_core::journal::Entry;
use planwright_core::run::{Run, RunEvent, StoredValue};
use planwright_engine::Observer;
use planwright_engine::memory::MemoryArtifacts;
use planwright_engine::port::{
    ArtifactError, ArtifactRef, Artifacts, BoxFuture, Clock as _, OwnerId, StoreError,
};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A plan whose second step must never be called twice.
fn plan() -> serde_json::Value {
    let mut plan = chain(3, "r.read", 10);
    plan["steps"][1]["tool"] = json!("w.write");
    plan
}

fn troubles() -> [StoreError; 3] {
    [
        StoreError::Busy("the database is locked by another process".to_owned()),
        StoreError::Full,
        StoreError::ReadOnly,
    ]
}

/// Collects what a run says about its store.
#[derive(Default)]
struct Waits(Mutex<Vec<String>>);

impl Observer for Waits {
    fn entry(&self, _: &Run, _: &Entry<RunEvent>) {}

    fn waits_for_store(&self, _: &RunId, reason: &str) {
        self.0.lock().unwrap().push(reason.to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn a_known_outcome_is_recorded_when_the_store_works_again() {
    for error in troubles() {
        // The first append of a run opens it, which the caller is told about.
        for first in 2..5 {
            let world = World::new();
            let store = FaultyStore::troubled(&world, first..first + 8, error.clone());
            let engine = store.engine(&world, "one");
            let id = approved(&engine, plan()).await;
            let waits = Arc::new(Waits::default());
            let mut options = options();
            options.observers.push(Arc::<Waits>::clone(&waits));
            let mut handle = engine.runs().start(&id, options).await.unwrap();
            let run = handle.wait().await.unwrap();
            assert_eq!(run.status().as_str(), "completed", "{error} at {first}");
            for step in ["s1", "s2", "s3"] {
                assert_eq!(world.calls_of(step), 1, "`{step}`: {error} at {first}");
            }
            assert_eq!(*waits.0.lock().unwrap(), [error.to_string()]);
            entries(&*world.store, run.id());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_opened_is_no_run_and_calls_nothing() {
    for error in troubles() {
        let world = World::new();
        let store = FaultyStore::troubled(&world, 1..2, error.clone());
        let engine = store.engine(&world, "one");
        let id = approved(&engine, plan()).await;
        let refused = engine.runs().start(&id, options()).await.unwrap_err();
        assert!(
            refused.to_string().contains(&error.to_string()),
            "{refused}"
        );
        assert!(world.made().is_empty(), "{error}");
        let (review, _) = engine.plans().load_review(&id).await.unwrap();
        assert!(review.runs().is_empty(), "{error}");
        // The approval was not spent.
        let mut handle = engine.runs().start(&id, options()).await.unwrap();
        let run = handle.wait().await.unwrap();
        assert_eq!(run.status().as_str(), "completed", "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_full_ends_the_run_and_the_outcome_is_unknown() {
    let world = World::new();
    let store = FaultyStore::troubled(&world, 3..usize::MAX, StoreError::Full);
    let engine = store.engine(&world, "one");
    let id = approved(&engine, plan()).await;
    let before = world.clock.now();
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    let error = handle.wait().await.unwrap_err();
    assert!(error.to_string().contains("the disk is full"), "{error}");
    let waited = world.clock.now().since(before);
    assert!(waited >= Duration::from_mins(10), "{waited:?}");
    world.store.kill_owner(&OwnerId("one".into()));
    let mut handle = world
        .engine("two")
        .runs()
        .resume(&id, options())
        .await
        .unwrap();
    let run = handle.wait().await.unwrap();
    assert_eq!(status_of(&run, "s2"), "outcome_unknown");
    assert_eq!(world.calls_of("s2"), 1);
    let reason = report_of(&run, "s2").error.unwrap().message;
    assert!(reason.contains("or could not record"), "{reason}");
}

/// Passes everything on to a place in memory, and fails so many times first.
#[derive(Debug)]
struct FaultyArtifacts {
    inner: Arc<MemoryArtifacts>,
    failures: AtomicUsize,
}

impl Artifacts for FaultyArtifacts {
    fn put(&self, bytes: Vec<u8>) -> BoxFuture<'_, Result<ArtifactRef, ArtifactError>> {
        let fewer = |left: usize| left.checked_sub(1);
        let failed = self
            .failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
        if failed.is_ok() {
            let full = ArtifactError::Io("No space left on device".to_owned());
            return Box::pin(std::future::ready(Err(full)));
        }
        self.inner.put(bytes)
    }

    fn get<'a>(
        &'a self,
        artifact: &'a ArtifactRef,
    ) -> BoxFuture<'a, Result<Vec<u8>, ArtifactError>> {
        self.inner.get(artifact)
    }
}

async fn run_with_artifacts(world: &World, failures: usize, plan: serde_json::Value) -> Run {
    let artifacts = Arc::new(FaultyArtifacts {
        inner: Arc::clone(&world.artifacts),
        failures: AtomicUsize::new(0),
    });
    let store = Arc::<planwright_engine::memory::MemoryStore>::clone(&world.store);
    let engine = world
        .builder("one")
        .store(store, Arc::<FaultyArtifacts>::clone(&artifacts))
        .build();
    let id = approved(&engine, plan).await;
    artifacts.failures.store(failures, Ordering::SeqCst);
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    handle.wait().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_large_result_is_stored_when_there_is_space_again_and_its_tool_called_once() {
    for tool in ["r.read", "w.write"] {
        let world = World::with(|tools| tools.pages = vec!["x".repeat(100 * 1024)]);
        let mut plan = reads(&[("a", &[], json!({"page": 0}))]);
        plan["steps"][0]["tool"] = json!(tool);
        let run = run_with_artifacts(&world, 8, plan).await;
        assert_eq!(run.status().as_str(), "completed");
        assert_eq!(world.calls_of("a"), 1);
        let stored = report_of(&run, "a").value.unwrap();
        assert!(matches!(stored, StoredValue::Artifact(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_stored_for_long_is_unknown_with_the_reason() {
    let world = World::with(|tools| tools.pages = vec!["x".repeat(100 * 1024)]);
    let before = world.clock.now();
    let mut plan = reads(&[("a", &[], json!({"page": 0}))]);
    plan["steps"][0]["tool"] = json!("w.write");
    let run = run_with_artifacts(&world, usize::MAX, plan).await;
    assert_eq!(status_of(&run, "a"), "outcome_unknown");
    assert_eq!(world.calls_of("a"), 1);
    assert!(world.clock.now().since(before) >= Duration::from_secs(30));
    let reason = report_of(&run, "a").error.unwrap().message;
    assert!(reason.contains("No space left on device"), "{reason}");
}
