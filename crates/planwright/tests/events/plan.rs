//! The stream of one plan.

use crate::client::Event;
use crate::world::{World, chain};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::Shown;
use planwright_engine::{RunCommand, RunOptions};
use planwright_server::events::EventsOptions;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tempfile::tempdir;

fn seqs(events: &[Event]) -> Vec<u64> {
    events.iter().map(Event::seq).collect()
}

fn data(events: &[Event]) -> Vec<Value> {
    events.iter().map(|event| event.data.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_given_at_once() {
    let directory = tempdir().unwrap();
    let world = World::start(directory.path(), EventsOptions::default()).await;
    world.propose(chain("plan-a", 2, 0)).await;
    let events = world.list("plan-a").await;
    let names: Vec<_> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["plan.created", "plan.step", "plan.step", "plan.proposed"]
    );
    assert_eq!(events[1]["step"]["state"], "queued");
    let page = world
        .get("/plan/plan-a/events?after=1&limit=2", "application/json")
        .await
        .json();
    assert_eq!(page["events"].as_array().unwrap().len(), 2);
    assert_eq!(page["next"], "3");
    let rest = world.get("/plan/plan-a/events?after=3", "*/*").await.json();
    assert_eq!(rest["events"].as_array().unwrap().len(), 1);
    assert_eq!(rest.get("next"), None);
    assert_eq!(
        world.get("/plan/plan-a/events", "text/html").await.status,
        406
    );
    assert_eq!(
        world
            .get("/plan/absent/events", "application/json")
            .await
            .status,
        404
    );
    assert_eq!(
        world
            .get("/plan/absent/events", "text/event-stream")
            .await
            .status,
        404
    );
    assert_eq!(
        world
            .get("/plan/plan-a/events?limit=0", "application/json")
            .await
            .status,
        400
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_replays_goes_on_live_and_ends_with_the_run() {
    let directory = tempdir().unwrap();
    let world = World::start(directory.path(), EventsOptions::default()).await;
    world.propose(chain("plan-a", 3, 20)).await;
    let mut client = world.listen("/plan/plan-a/events", None).await;
    for header in [
        "content-type: text/event-stream",
        "x-accel-buffering: no",
        "cache-control: no-store",
    ] {
        assert!(client.headers.contains(header), "{}", client.headers);
    }
    let mut events = vec![client.next().await.unwrap()];
    assert!(client.retry.is_some());
    world.run(chain("plan-a", 3, 20)).await;
    events.extend(client.rest().await);
    assert_eq!(seqs(&events), (1..=events.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap().name, "run.completed");
    assert_eq!(data(&events), world.list("plan-a").await);
    let mut states: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in events
        .iter()
        .filter(|event| event.data.get("runId").is_some() && event.name == "plan.step")
    {
        let step = &event.data["step"];
        let word = step["state"].as_str().unwrap().to_owned();
        states
            .entry(step["id"].as_str().unwrap().to_owned())
            .or_default()
            .push(word);
    }
    assert_eq!(states.len(), 3);
    assert!(
        states
            .values()
            .all(|words| *words == ["queued", "running", "completed"]),
        "{states:?}"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_comes_back_gets_what_it_missed_exactly_once() {
    let directory = tempdir().unwrap();
    let world = World::start(directory.path(), EventsOptions::default()).await;
    world.run(chain("plan-a", 3, 0)).await;
    let whole = world.listen("/plan/plan-a/events", None).await.rest().await;
    for last in [0, 1, 7, whole.len() as u64 - 1, whole.len() as u64] {
        let resumed = world
            .listen("/plan/plan-a/events", Some(&last.to_string()))
            .await
            .rest()
            .await;
        assert_eq!(resumed, whole[usize::try_from(last).unwrap()..]);
        let path = format!("/plan/plan-a/events?after={last}");
        assert_eq!(world.listen(&path, None).await.rest().await, resumed);
        // What a browser was first told to begin with is not where it goes on.
        let stale = world
            .listen("/plan/plan-a/events?after=2", Some(&last.to_string()))
            .await;
        assert_eq!({ stale }.rest().await, resumed);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_survives_a_restart() {
    let directory = tempdir().unwrap();
    let world = World::start(directory.path(), EventsOptions::default()).await;
    world.run(chain("plan-a", 3, 0)).await;
    let before = world.listen("/plan/plan-a/events", None).await.rest().await;
    world.stop().await;
    let world = World::start(directory.path(), EventsOptions::default()).await;
    assert_eq!(
        world.listen("/plan/plan-a/events", None).await.rest().await,
        before
    );
    assert_eq!(
        world
            .listen("/plan/plan-a/events", Some("5"))
            .await
            .rest()
            .await,
        before[5..]
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_memory_has_forgotten_comes_from_the_journal() {
    let directory = tempdir().unwrap();
    let options = EventsOptions {
        kept_events: 3,
        ..EventsOptions::default()
    };
    let world = World::start(directory.path(), options).await;
    let mut live = {
        world.propose(chain("plan-a", 30, 1)).await;
        world.listen("/plan/plan-a/events", None).await
    };
    world.run(chain("plan-a", 30, 1)).await;
    let whole = world.listen("/plan/plan-a/events", None).await.rest().await;
    assert_eq!(seqs(&whole), (1..=whole.len() as u64).collect::<Vec<_>>());
    assert!(whole.len() > 90);
    let resumed = world
        .listen("/plan/plan-a/events", Some("10"))
        .await
        .rest()
        .await;
    assert_eq!(resumed, whole[10..]);
    // A client that cannot keep up with so short a memory is cut off, and goes on where it was.
    let mut events = live.rest().await;
    while events.len() < whole.len() {
        let last = events
            .last()
            .map_or_else(|| "0".to_owned(), |event| event.seq().to_string());
        events.extend(
            world
                .listen("/plan/plan-a/events", Some(&last))
                .await
                .rest()
                .await,
        );
    }
    assert_eq!(events, whole);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_cannot_go_on_is_told_to_begin_anew() {
    let directory = tempdir().unwrap();
    let options = EventsOptions {
        max_replay: 5,
        ..EventsOptions::default()
    };
    let world = World::start(directory.path(), options).await;
    world.run(chain("plan-a", 3, 0)).await;
    let last = world.list("plan-a").await.len() as u64;
    for (named, reason) in [
        ("2", "too_old"),
        ("9999", "unknown_id"),
        ("no number", "unknown_id"),
    ] {
        let events = world
            .listen("/plan/plan-a/events", Some(named))
            .await
            .rest()
            .await;
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!((events[0].name.as_str(), events[0].seq()), ("reset", last));
        let snapshot = &events[0].data;
        assert_eq!(snapshot["reason"], reason);
        assert_eq!(snapshot["status"], "completed");
        assert_eq!(
            snapshot["steps"][2],
            json!({ "id": "s3", "state": "completed" })
        );
    }
    let close = (last - 5).to_string();
    assert_eq!(
        world
            .listen("/plan/plan-a/events", Some(&close))
            .await
            .rest()
            .await
            .len(),
        5
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_stays_open_while_there_is_something_to_expect() {
    let directory = tempdir().unwrap();
    let options = EventsOptions {
        keep_alive: Duration::from_millis(20),
        ..EventsOptions::default()
    };
    let world = World::start(directory.path(), options).await;
    world.propose(chain("plan-a", 1, 0)).await;
    let mut client = world.listen("/plan/plan-a/events?types=run.*", None).await;
    let mut following = world
        .listen("/plan/plan-a/events?types=run.*&follow=true", None)
        .await;
    while client.comments < 3 {
        let waited = tokio::time::timeout(Duration::from_millis(30), client.next()).await;
        assert!(waited.is_err(), "nothing runs yet: {waited:?}");
    }
    world.run(chain("plan-a", 1, 0)).await;
    let names: Vec<_> = client
        .rest()
        .await
        .into_iter()
        .map(|event| event.name)
        .collect();
    assert_eq!(names, ["run.started", "run.completed"]);
    // A client that wants to follow is told about the next run too.
    world.run(chain("plan-a", 1, 0)).await;
    for name in [
        "run.started",
        "run.completed",
        "run.started",
        "run.completed",
    ] {
        assert_eq!(following.next().await.unwrap().name, name);
    }
    // The service stops: so do the streams.
    world.tell_to_stop();
    assert_eq!(following.next().await, None);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gated_step_is_told_to_wait_and_goes_on_once_it_is_approved() {
    let directory = tempdir().unwrap();
    let world = World::start(directory.path(), EventsOptions::default()).await;
    let mut document = chain("plan-a", 1, 0);
    document["steps"][0]["approvalRequired"] = json!(true);
    let run = world.run(document).await;
    let mut client = world.listen("/plan/plan-a/events", None).await;
    let state = |event: &Event| {
        event.data["step"]["state"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    while state(&client.next().await.unwrap()) != "awaiting_approval" {}
    let command = RunCommand::Approve {
        step: "s1".parse().unwrap(),
        shown: Shown::Digest(run.start().digest).into(),
        by: Principal::person("ada"),
        assurance: Assurance::Program,
    };
    world
        .engine
        .runs()
        .command(run.id(), command)
        .await
        .unwrap();
    let rest = client.rest().await;
    let states: Vec<_> = rest.iter().map(state).collect();
    assert_eq!(states, ["approved", "running", "completed", ""]);
    assert_eq!(rest[0].data["by"]["name"], "ada");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_of_a_byte_now_and_then_delays_nobody() {
    let directory = tempdir().unwrap();
    let options = EventsOptions {
        stall_timeout: Duration::from_millis(300),
        ..EventsOptions::default()
    };
    let world = World::start(directory.path(), options).await;
    let mut document = chain("plan-a", 200, 0);
    for step in document["steps"].as_array_mut().unwrap() {
        step["title"] = json!("x".repeat(4_000));
    }
    world.propose(document.clone()).await;
    let mut slow = Vec::new();
    for _ in 0..5 {
        slow.push(world.listen("/plan/plan-a/events", None).await);
    }
    let crawl = tokio::spawn(async move {
        loop {
            for client in &mut slow {
                client.byte().await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let mut fast = world.listen("/plan/plan-a/events", None).await;
    let started = Instant::now();
    let options = RunOptions::new(Principal::person("ada"));
    let document = serde_json::from_value(document).unwrap();
    let mut handle = world
        .engine
        .runs()
        .run_document(document, options)
        .await
        .unwrap();
    let events = fast.rest().await;
    handle.wait().await.unwrap();
    assert_eq!(seqs(&events), (1..=events.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap().name, "run.completed");
    assert!(started.elapsed() < Duration::from_secs(60));
    // Those who take nothing are let go of.
    let waiting = Instant::now();
    while world.streams() > 0 {
        assert!(
            waiting.elapsed() < Duration::from_secs(30),
            "{} streams are still open",
            world.streams()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    crawl.abort();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_streams_than_there_is_room_for_are_told_to_come_again() {
    let directory = tempdir().unwrap();
    let options = EventsOptions {
        max_streams_each: 2,
        ..EventsOptions::default()
    };
    let world = World::start(directory.path(), options).await;
    world.propose(chain("plan-a", 1, 0)).await;
    let first = world.listen("/plan/plan-a/events", None).await;
    let _second = world.listen("/plan/plan-a/events", None).await;
    let refused = world
        .try_listen("/plan/plan-a/events", None)
        .await
        .err()
        .unwrap();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(
        refused.headers.contains("retry-after: "),
        "{}",
        refused.headers
    );
    assert_eq!(world.list("plan-a").await.len(), 3);
    drop(first);
    let waiting = Instant::now();
    while world.try_listen("/plan/plan-a/events", None).await.is_err() {
        assert!(waiting.elapsed() < Duration::from_secs(30));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cloudevents_carry_the_same_data() {
    let directory = tempdir().unwrap();
    let world = World::start(directory.path(), EventsOptions::default()).await;
    world.run(chain("plan-a", 1, 0)).await;
    let plain = world.list("plan-a").await;
    let path = "/plan/plan-a/events?format=cloudevents";
    let events = world.listen(path, None).await.rest().await;
    assert_eq!(
        events
            .iter()
            .map(|event| event.data["data"].clone())
            .collect::<Vec<_>>(),
        plain
    );
    let types: Vec<_> = events
        .iter()
        .map(|event| event.data["type"].as_str().unwrap())
        .collect();
    assert!(
        types.contains(&"dev.planwright.plan.step.completed.v1"),
        "{types:?}"
    );
    let list = world.get(path, "application/json").await.json();
    assert_eq!(list["events"][0]["specversion"], "1.0");
    assert_eq!(
        world
            .get("/plan/plan-a/events?format=xml", "application/json")
            .await
            .status,
        400
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_is_told_live_and_not_kept() {
    let directory = tempdir().unwrap();
    let world = World::start(directory.path(), EventsOptions::default()).await;
    let mut document = chain("plan-a", 1, 0);
    document["steps"][0]["args"] = json!({ "progress": 30 });
    world.propose(document.clone()).await;
    let mut client = world.listen("/plan/plan-a/events", None).await;
    world.run(document).await;
    let events = client.rest().await;
    let progress: Vec<_> = events
        .iter()
        .filter(|event| event.name == "plan.progress")
        .collect();
    assert!(
        !progress.is_empty() && progress.len() < 30,
        "{} of 30",
        progress.len()
    );
    assert!(
        progress
            .iter()
            .all(|event| event.id.is_none() && event.data["step"]["id"] == "s1")
    );
    let kept = world.list("plan-a").await;
    assert_eq!(kept.len(), events.len() - progress.len());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_logs_are_told_live_in_their_order_and_not_kept() {
    let directory = tempdir().unwrap();
    let world = World::start(directory.path(), EventsOptions::default()).await;
    let mut document = chain("plan-a", 1, 0);
    document["steps"][0]["args"] = json!({ "log": 20, "ms": 1_000 });
    world.propose(document.clone()).await;
    let mut client = world.listen("/plan/plan-a/events", None).await;
    let only_steps = "/plan/plan-a/events?types=plan.step";
    let mut others = world.listen(only_steps, None).await;
    world.run(document).await;
    let events = client.rest().await;
    let logged: Vec<_> = events
        .iter()
        .filter(|event| event.name == "plan.log")
        .collect();
    let texts: Vec<_> = logged
        .iter()
        .map(|event| event.data["message"].as_str().unwrap().to_owned())
        .collect();
    let expected: Vec<_> = (1..=20).map(|line| format!("line {line}")).collect();
    assert_eq!(texts, expected);
    let traces: BTreeSet<_> = events
        .iter()
        .map(|event| event.data["traceId"].to_string())
        .collect();
    assert_eq!(traces.len(), 1, "{traces:?}");
    assert!(logged.iter().all(|event| {
        event.id.is_none() && event.data["level"] == "notice" && event.data["step"]["id"] == "s1"
    }));
    let others = others.rest().await;
    assert!(others.iter().all(|event| event.name == "plan.step"));
    let kept = world.list("plan-a").await;
    assert_eq!(kept.len(), events.len() - logged.len());
    world.stop().await;
}
