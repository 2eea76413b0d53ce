//! Order, time, retries, timeouts and failures.

use crate::faults::FaultyStore;
use crate::world::{
    World, after, approved, chain, entries, millis, options, person, reads, report_of, status_of,
};
use planwright_core::journal::Entry;
use planwright_core::run::{Run, RunEvent};
use planwright_engine::port::Clock as _;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_diamond_of_200_ms_tools_ends_after_600_ms() {
    let ms = || json!({"ms": 200});
    let run = World::new()
        .run(reads(&[
            ("1", &[], ms()),
            ("2", &["1"], ms()),
            ("3", &["1"], ms()),
            ("4", &["2", "3"], ms()),
        ]))
        .await;
    assert_eq!(run.status().as_str(), "completed");
    assert!((600..620).contains(&millis(&run)), "{} ms", millis(&run));
}

#[tokio::test(start_paused = true)]
async fn three_unbalanced_lanes_with_three_slots_end_after_800_ms() {
    let mut steps = Vec::new();
    for (lane, times) in [[600, 100, 100], [100, 600, 100], [100, 100, 600]]
        .into_iter()
        .enumerate()
    {
        for (at, ms) in times.into_iter().enumerate() {
            let before: Vec<String> = (at > 0)
                .then(|| format!("l{lane}-{}", at - 1))
                .into_iter()
                .collect();
            steps.push(json!({
                "id": format!("l{lane}-{at}"), "tool": "r.read", "dependsOn": before, "args": {"ms": ms},
            }));
        }
    }
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "steps": steps, "limits": {"maxConcurrency": 3}}))
        .await;
    assert_eq!(run.status().as_str(), "completed");
    assert!((800..820).contains(&millis(&run)), "{} ms", millis(&run));
    assert!(world.peak("") <= 3);
}

#[tokio::test(start_paused = true)]
async fn a_plan_without_steps_completes_at_once() {
    let run = World::new().run(json!({"id": "p", "steps": []})).await;
    assert_eq!((run.status().as_str(), millis(&run)), ("completed", 0));
}

#[tokio::test(start_paused = true)]
async fn retries_pause_longer_each_time_and_end() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "steps": [{
            "id": "a", "tool": "r.read", "args": {"fail": "not now", "retryable": true},
            "retry": {"max": 3, "backoff": 1.0, "factor": 2.0},
        }]}))
        .await;
    assert_eq!(run.status().as_str(), "failed");
    let at: Vec<i64> = world
        .made()
        .iter()
        .map(|made| made.at.as_millis())
        .collect();
    let pauses: Vec<i64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses, [1000, 2000, 4000]);
    assert_eq!(report_of(&run, "a").attempts, 4);
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_falls_due_while_its_pause_is_written_is_made_at_once() {
    let world = World::new();
    let store = FaultyStore::slow(&world, Duration::from_millis(5));
    let engine = store.engine(&world, "slow");
    let begun = tokio::time::Instant::now();
    let plan = json!({"id": "p", "steps": [{
        "id": "a", "tool": "r.read", "args": {"fail": "twice", "times": 2, "retryable": true},
        "retry": {"max": 3, "backoff": 0.002, "factor": 1.0},
    }]});
    let id = approved(&engine, plan).await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    let run = handle.wait().await.unwrap();
    assert_eq!(run.status().as_str(), "completed");
    // Without a timer of its own the run would wait for the renewal of its lease, 10 seconds.
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_not_worth_a_retry_is_called_once() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "steps": [
            {"id": "a", "tool": "r.read", "args": {"fail": "never"}, "retry": {"max": 3}},
        ]}))
        .await;
    assert_eq!((run.status().as_str(), world.made().len()), ("failed", 1));
    let error = report_of(&run, "a").error.unwrap();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("tool_error", "never")
    );
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_succeeds_completes_the_step() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "steps": [
            {"id": "a", "tool": "r.read", "args": {"fail": "twice", "times": 2, "retryable": true}, "retry": {"max": 3}},
        ]}))
        .await;
    assert_eq!(
        (run.status().as_str(), world.made().len()),
        ("completed", 3)
    );
}

#[tokio::test(start_paused = true)]
async fn a_timeout_fails_the_step_and_stops_the_call() {
    let world = World::new();
    let began = world.clock.now();
    let run = world
        .run(json!({"id": "p", "steps": [
            {"id": "a", "tool": "r.read", "args": {"ms": 1000}, "timeoutSeconds": 0.05},
        ]}))
        .await;
    let error = report_of(&run, "a").error.unwrap();
    assert_eq!(error.code.as_str(), "timeout");
    assert!(error.message.starts_with("timeout"));
    assert!((50..60).contains(&millis(&run)), "{} ms", millis(&run));
    let told = world.told_to_stop();
    assert_eq!(
        told.len(),
        1,
        "a call is told to stop even if the run is over with it"
    );
    assert_eq!(told[0].1.since(began).as_millis(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_timed_out_is_told_to_stop_while_the_run_goes_on() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "steps": [
            {"id": "slow", "tool": "r.read", "args": {"ms": 1000}, "timeoutSeconds": 0.05, "critical": false},
            {"id": "other", "tool": "r.read", "args": {"ms": 300}},
        ]}))
        .await;
    assert_eq!(
        (run.status().as_str(), status_of(&run, "slow")),
        ("completed", "failed")
    );
    let told = world.told_to_stop();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1.since(run.start().at).as_millis(), 50);
}

#[tokio::test(start_paused = true)]
async fn an_unsafe_call_that_timed_out_has_an_unknown_outcome_and_is_not_repeated() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "steps": [
            {"id": "a", "tool": "w.write", "args": {"ms": 1000}, "timeoutSeconds": 0.05, "retry": {"max": 3}},
        ]}))
        .await;
    assert_eq!(
        (
            run.status().as_str(),
            status_of(&run, "a"),
            world.made().len()
        ),
        ("waiting", "outcome_unknown", 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_not_critical_blocks_its_dependants_only() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "steps": [
            {"id": "1", "tool": "r.read"},
            {"id": "2", "tool": "r.read"},
            {"id": "3", "tool": "r.read", "args": {"fail": "no"}, "critical": false},
            {"id": "4", "tool": "r.read", "dependsOn": ["1"]},
            {"id": "5", "tool": "r.read", "dependsOn": ["3"]},
        ]}))
        .await;
    assert_eq!(
        (
            run.status().as_str(),
            status_of(&run, "4"),
            status_of(&run, "5")
        ),
        ("completed", "completed", "blocked")
    );
    assert_eq!(
        report_of(&run, "5").error.unwrap().code,
        "dependency_failed:3".into()
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_critical_failure_nothing_starts_and_what_is_in_flight_finishes() {
    let world = World::new();
    let run = world
        .run(reads(&[
            ("fails", &[], json!({"ms": 100, "fail": "no"})),
            ("long", &[], json!({"ms": 300})),
            ("short", &[], json!({"ms": 50})),
            ("next", &["short"], json!({"ms": 200})),
            ("never", &["next"], json!({})),
            ("after", &["fails"], json!({})),
        ]))
        .await;
    assert_eq!(run.status().as_str(), "failed");
    let steps = ["long", "next", "never", "after"].map(|step| status_of(&run, step));
    assert_eq!(steps, ["completed", "completed", "cancelled", "blocked"]);
    let why = report_of(&run, "never").error.unwrap().message;
    assert_eq!(why, "not run: step `fails` did not succeed");
    assert_eq!(millis(&run), 300);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_observer_changes_nothing() {
    let world = World::new();
    let engine = world.engine("one");
    let id = approved(&engine, chain(5, "r.read", 10)).await;
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let watching = Arc::clone(&seen);
    let mut options = options();
    options.observers = vec![
        Arc::new(|_: &Run, _: &Entry<RunEvent>| panic!("this observer is broken")),
        Arc::new(move |_: &Run, entry: &Entry<RunEvent>| watching.lock().unwrap().push(entry.seq)),
    ];
    let run = engine
        .runs()
        .start(&id, options)
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (run.status().as_str(), world.made().len()),
        ("completed", 5)
    );
    let expected: Vec<u64> = (2..=run.seq()).collect();
    assert_eq!(
        *seen.lock().unwrap(),
        expected,
        "every entry after the first, once, in order"
    );
}

#[tokio::test(start_paused = true)]
async fn a_panicking_tool_costs_its_own_step_only() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "steps": [
            {"id": "bad", "tool": "w.write", "args": {"panic": true}},
            {"id": "good", "tool": "r.read", "args": {"ms": 50}},
        ]}))
        .await;
    assert_eq!(
        (status_of(&run, "bad"), status_of(&run, "good")),
        ("outcome_unknown", "completed")
    );
    assert_eq!(world.calls_of("bad"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_optional_step_without_its_tool_is_skipped_and_what_follows_is_asked_about_at_once() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "steps": [
            {"id": "a", "tool": "gone.tool", "optional": true},
            {"id": "b", "tool": "r.read", "dependsOn": ["a"], "approvalRequired": true},
        ]}))
        .await;
    assert_eq!(
        (status_of(&run, "a"), status_of(&run, "b")),
        ("skipped", "awaiting_approval")
    );
    assert_eq!(millis(&run), 0, "no step waits to be asked");
}

#[tokio::test(start_paused = true)]
async fn cancelling_in_flight_stops_the_calls_and_the_rest_never_runs() {
    let world = World::new();
    let engine = world.engine("one");
    let steps = json!({"id": "p", "steps": [
        {"id": "done", "tool": "r.read", "args": {"ms": 10}},
        {"id": "stops", "tool": "r.read", "args": {"ms": 1000}},
        {"id": "lost", "tool": "w.write", "args": {"ms": 1000, "stop": "lost"}},
        {"id": "clean", "tool": "k.put", "args": {"ms": 1000, "stop": "lost"}},
        {"id": "never", "tool": "r.read", "dependsOn": ["stops"]},
    ]});
    let id = approved(&engine, steps).await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    after(100).await;
    handle.cancel(person()).await.unwrap();
    handle.cancel(person()).await.unwrap_or(());
    let run = handle.wait().await.unwrap();
    assert_eq!(run.status().as_str(), "cancelled");
    let steps = ["done", "stops", "lost", "clean", "never"].map(|step| status_of(&run, step));
    assert_eq!(
        steps,
        [
            "completed",
            "cancelled",
            "outcome_unknown",
            "cancelled",
            "cancelled"
        ]
    );
    assert_eq!(millis(&run), 100);
    let requests = entries(&*world.store, run.id());
    let requests = requests
        .iter()
        .filter(|entry| matches!(entry.event, RunEvent::CancelRequested { .. }));
    assert_eq!(requests.count(), 1, "cancelling twice is cancelling once");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_stop_is_given_up_after_a_grace() {
    let world = World::new();
    let engine = world.engine("one");
    let id = approved(
        &engine,
        json!({"id": "p", "steps": [{"id": "a", "tool": "w.write", "args": {"ms": 3_600_000, "stop": "never"}}]}),
    )
    .await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    after(100).await;
    handle.cancel(person()).await.unwrap();
    let run = handle.wait().await.unwrap();
    assert_eq!(
        (run.status().as_str(), status_of(&run, "a")),
        ("cancelled", "outcome_unknown")
    );
    assert!(millis(&run) < 10_000);
}

#[tokio::test(start_paused = true)]
async fn pausing_lets_calls_in_flight_finish_and_resuming_goes_on() {
    let world = World::new();
    let engine = world.engine("one");
    let id = approved(&engine, chain(3, "r.read", 100)).await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    after(150).await;
    handle.pause(person()).await.unwrap();
    let run = handle.wait().await.unwrap();
    assert_eq!((run.status().as_str(), world.called().len()), ("paused", 2));
    let steps = ["s1", "s2", "s3"].map(|step| status_of(&run, step));
    assert_eq!(steps, ["completed", "completed", "ready"]);
    let run = engine
        .runs()
        .resume(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (run.status().as_str(), world.called()),
        ("completed", ["s1", "s2", "s3"].map(String::from).to_vec())
    );
}

#[tokio::test(start_paused = true)]
async fn a_chain_costs_one_commit_per_step_and_one() {
    for n in [1, 2, 10, 50] {
        let world = World::new();
        let faulty = crate::faults::FaultyStore::new(&world);
        let engine = faulty.engine(&world, "one");
        let id = approved(&engine, chain(n, "r.read", 10)).await;
        let approved = faulty.appends();
        let mut handle = engine.runs().start(&id, options()).await.unwrap();
        let run = handle.wait().await.unwrap();
        assert_eq!(run.status().as_str(), "completed");
        // The first opens the run and starts its first step.
        assert_eq!(faulty.appends() - approved, n + 1, "chain of {n}");
    }
}
