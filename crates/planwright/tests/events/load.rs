//! Many listeners on many plans, cut off at random, some of them slow: nothing is lost, doubled or
//! out of order.

use crate::client::Event;
use crate::world::{World, chain};
use planwright_core::principal::Principal;
use planwright_engine::RunOptions;
use planwright_server::events::EventsOptions;
use planwright_testing::dice::Dice;
use std::sync::Arc;
use std::time::Duration;
use tempfile::tempdir;

const CLIENTS: usize = 200;
const PLANS: usize = 100;
const STEPS: usize = 8;

/// Listens until the run is over, cutting the connection now and then.
async fn follow(world: Arc<World>, number: usize) -> Vec<Event> {
    let path = format!("/plan/plan-{}/events", number % PLANS);
    let mut dice = Dice::xor_shift(number as u64 * 7_919 + 1);
    let slow = number.is_multiple_of(10);
    let mut events: Vec<Event> = Vec::new();
    loop {
        let last = events.last().map(|event| event.seq().to_string());
        let mut client = world.listen(&path, last.as_deref()).await;
        let until_cut = 1 + dice.below(12);
        for _ in 0..until_cut {
            match client.next().await {
                Some(event) => events.push(event),
                None if events
                    .last()
                    .is_some_and(|event| event.name == "run.completed") =>
                {
                    return events;
                }
                None => break,
            }
            if slow {
                tokio::time::sleep(Duration::from_millis(dice.below(20) as u64)).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_listeners_of_a_hundred_plans_miss_nothing() {
    let directory = tempdir().unwrap();
    let options = EventsOptions {
        kept_events: 16,
        ..EventsOptions::default()
    };
    let world = Arc::new(World::start(directory.path(), options).await);
    for number in 0..PLANS {
        world
            .propose(chain(&format!("plan-{number}"), STEPS, 5))
            .await;
    }
    let listeners: Vec<_> = (0..CLIENTS)
        .map(|number| tokio::spawn(follow(Arc::clone(&world), number)))
        .collect();
    let runs: Vec<_> = (0..PLANS)
        .map(|number| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                let document =
                    serde_json::from_value(chain(&format!("plan-{number}"), STEPS, 5)).unwrap();
                let options = RunOptions::new(Principal::person("ada"));
                let mut handle = world
                    .engine
                    .runs()
                    .run_document(document, options)
                    .await
                    .unwrap();
                handle.wait().await.unwrap();
            })
        })
        .collect();
    for run in runs {
        run.await.unwrap();
    }
    for (number, listener) in listeners.into_iter().enumerate() {
        let events = listener.await.unwrap();
        let numbers: Vec<u64> = events.iter().map(Event::seq).collect();
        assert_eq!(
            numbers,
            (1..=numbers.len() as u64).collect::<Vec<_>>(),
            "listener {number}"
        );
        let heard: Vec<_> = events.into_iter().map(|event| event.data).collect();
        assert_eq!(
            heard,
            world.list(&format!("plan-{}", number % PLANS)).await,
            "listener {number}"
        );
    }
    Arc::into_inner(world).unwrap().stop().await;
}
