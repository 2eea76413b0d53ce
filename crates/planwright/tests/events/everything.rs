//! The stream of everything.

use crate::client::Event;
use crate::world::{World, chain};
use planwright_server::events::EventsOptions;
use tempfile::tempdir;

async fn take(client: &mut crate::client::Client, count: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < count {
        events.push(client.next().await.unwrap());
    }
    events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_comes_in_one_order_and_goes_on_from_any_event() {
    let directory = tempdir().unwrap();
    let world = World::start(directory.path(), EventsOptions::default()).await;
    let mut live = world.listen("/events", None).await;
    world.propose(chain("plan-a", 3, 0)).await;
    world.run(chain("plan-b", 2, 0)).await;
    world.run(chain("plan-a", 3, 0)).await;
    let a = world.list("plan-a").await;
    let b = world.list("plan-b").await;
    let events = take(&mut live, a.len() + b.len()).await;
    let of = |plan: &str| {
        let own = events.iter().filter(|event| event.data["planId"] == plan);
        own.map(|event| event.data.clone()).collect::<Vec<_>>()
    };
    assert_eq!((of("plan-a"), of("plan-b")), (a, b));
    for (at, event) in events.iter().enumerate().step_by(3) {
        let mut resumed = world.listen("/events", event.id.as_deref()).await;
        let rest = take(&mut resumed, events.len() - at - 1).await;
        assert_eq!(rest, events[at + 1..], "after {:?}", event.id);
    }
    // The same list, in pages.
    let mut listed = Vec::new();
    let mut after = "0".to_owned();
    loop {
        let path = format!("/events?limit=4&after={after}");
        let page = world.get(&path, "application/json").await.json();
        listed.extend(page["events"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(
        listed,
        events
            .iter()
            .map(|event| event.data.clone())
            .collect::<Vec<_>>()
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_types_that_are_wanted_come() {
    let directory = tempdir().unwrap();
    let world = World::start(directory.path(), EventsOptions::default()).await;
    world.run(chain("plan-a", 2, 0)).await;
    let mut client = world
        .listen("/events?types=plan.created,run.*&after=0", None)
        .await;
    let names: Vec<_> = take(&mut client, 3)
        .await
        .into_iter()
        .map(|event| event.name)
        .collect();
    assert_eq!(names, ["plan.created", "run.started", "run.completed"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_never_was_begins_anew() {
    let directory = tempdir().unwrap();
    let options = EventsOptions {
        max_replay: 3,
        ..EventsOptions::default()
    };
    let world = World::start(directory.path(), options).await;
    world.run(chain("plan-a", 2, 0)).await;
    for (named, reason) in [
        ("1", "too_old"),
        ("99999", "unknown_id"),
        ("none", "unknown_id"),
    ] {
        let mut client = world.listen("/events", Some(named)).await;
        let event = client.next().await.unwrap();
        assert_eq!(
            (event.name.as_str(), &event.data["reason"]),
            ("reset", &reason.into()),
            "{named}"
        );
    }
    assert_eq!(
        world
            .get("/events?after=none", "text/event-stream")
            .await
            .status,
        400
    );
    world.stop().await;
}
