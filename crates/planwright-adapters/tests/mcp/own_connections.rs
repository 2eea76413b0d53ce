//! A server that plans do not share: each run has a connection of its own.

use crate::beside::{bank, lines};
use crate::scene::{Scene, TIMEOUT, call, code};
use planwright_engine::port::{Call, CallError, Outcome, Tools as _};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn call_of(run: &str, tool: &str, args: Value) -> Call {
    Call {
        run: run.parse().unwrap(),
        top_run: run.parse().unwrap(),
        acts_for: None,
        ..call(tool, args)
    }
}

async fn read(scene: &Scene, run: &str) -> Outcome {
    let alone = call_of(run, "read", json!({ "alone": true }));
    scene.make(alone, TIMEOUT).await
}

/// Waits until so many processes are left.
async fn left(scene: &Scene, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while scene.processes().len() != count {
        assert!(Instant::now() < deadline, "{:?}", scene.processes());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn each_run_has_a_process_that_ends_with_it() {
    let scene = bank(|spec| spec.per_plan = true).await;
    assert_eq!(lines(&scene, "starts"), 1, "the one that lists the tools");
    for run in ["run_1", "run_1", "run_2", "run_1"] {
        assert_eq!(read(&scene, run).await, Ok(json!("read")));
    }
    assert_eq!(lines(&scene, "starts"), 3);
    assert_eq!(scene.processes().len(), 3);
    scene.servers.release(&"run_1".parse().unwrap());
    left(&scene, 2).await;
    assert_eq!(read(&scene, "run_2").await, Ok(json!("read")));
    assert_eq!(lines(&scene, "starts"), 3);
    // It may come back, as a run does that waited for a person.
    assert_eq!(read(&scene, "run_1").await, Ok(json!("read")));
    assert_eq!(lines(&scene, "starts"), 4);
    scene.end().await;
}

#[tokio::test]
async fn a_connection_that_breaks_costs_no_other_run_a_call() {
    let scene = bank(|spec| spec.per_plan = true).await;
    let pay = scene.make(call_of("run_1", "pay", json!({})), TIMEOUT);
    let breaks = async {
        while lines(&scene, "effects") == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let unnamed = json!({ "alone": true, "shape": "unnamed" });
        let broken = scene.make(call_of("run_2", "read", unnamed), TIMEOUT).await;
        // The payment is answered after this.
        let read = scene
            .make(call_of("run_1", "read", json!({})), TIMEOUT)
            .await;
        (broken, read)
    };
    let (paid, (broken, read)) = tokio::join!(pay, breaks);
    assert!(matches!(broken, Err(CallError::Lost(_))), "{broken:?}");
    assert_eq!(read, Ok(json!("read")));
    assert_eq!(paid, Ok(json!("paid")));
    assert_eq!(lines(&scene, "effects"), 1);
    scene.end().await;
}

#[tokio::test]
async fn more_runs_than_there_may_be_connections_are_refused_with_the_limit() {
    let scene = bank(|spec| {
        spec.per_plan = true;
        spec.max_connections = 2;
    })
    .await;
    assert_eq!(read(&scene, "run_1").await, Ok(json!("read")));
    assert_eq!(read(&scene, "run_2").await, Ok(json!("read")));
    let refused = read(&scene, "run_3").await;
    assert!(
        matches!(&refused, Err(CallError::Unavailable(why))
            if why.contains("2 connections") && why.contains("`max_connections` in [servers.s]")),
        "{refused:?}"
    );
    assert_eq!(lines(&scene, "starts"), 3);
    scene.servers.release(&"run_1".parse().unwrap());
    assert_eq!(read(&scene, "run_3").await, Ok(json!("read")));
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_is_shared_has_one_process_for_all_runs() {
    let scene = bank(|_| {}).await;
    for run in ["run_1", "run_2"] {
        assert_eq!(read(&scene, run).await, Ok(json!("read")));
        scene.servers.release(&run.parse().unwrap());
    }
    assert_eq!(lines(&scene, "starts"), 1);
    let large = json!({ "alone": true, "shape": "head" });
    let outcome = scene.make(call_of("run_3", "read", large), TIMEOUT).await;
    assert_eq!(code(&outcome), "output_too_large");
    scene.end().await;
}
