//! Room in the log, and what is written into the log while it is made.

use crate::scene::{Chain, Scene};
use planwright_engine::port::Journal as _;
use planwright_testing::wait::wait_until;

/// About as long as the log gets.
const ROOM: u64 = 4 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_committed_while_room_is_made_stays() {
    for _ in 0..3 {
        let scene = Scene::new();
        let stores = [("run/a", scene.open()), ("run/b", scene.open())];
        let writing = stores.map(|(name, store)| {
            tokio::spawn(async move {
                let mut chain = Chain::of(name);
                // Long enough that SQLite makes the log longer itself while the other store does.
                for turn in 0..100 {
                    chain.put(&store, &"entry ".repeat(1 + turn * 40)).await;
                }
                (store, chain)
            })
        });
        let mut written = Vec::new();
        for task in writing {
            written.push(task.await.unwrap());
        }
        wait_until("room in the log", || log_bytes(&scene) >= ROOM);
        for (store, chain) in &written {
            let found = store.read(&chain.stream, 0, 1_000).await.unwrap();
            assert_eq!(found, chain.records);
            assert!(store.integrity().await.unwrap().is_empty());
        }
        let chains: Vec<Chain> = written.into_iter().map(|(_, chain)| chain).collect();
        let store = scene.open();
        for chain in chains {
            let found = store.read(&chain.stream, 0, 1_000).await.unwrap();
            assert_eq!(found, chain.records);
        }
    }
}

#[tokio::test]
async fn a_log_with_room_is_recovered_like_any_other() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    for turn in 0..40 {
        chain.put(&store, &turn.to_string()).await;
    }
    wait_until("room in the log", || log_bytes(&scene) >= ROOM);
    // As after a crash: nothing was copied into the main file, and there is no index of the log.
    let crashed = Scene::new();
    for suffix in ["", "-wal", "-heads"] {
        std::fs::copy(scene.file(suffix), crashed.file(suffix)).unwrap();
    }
    let recovered = crashed.open();
    let found = recovered.read(&chain.stream, 0, 1_000).await.unwrap();
    assert_eq!(found, chain.records);
    chain.put(&recovered, "and on").await;
    let found = recovered.read(&chain.stream, 0, 1_000).await.unwrap();
    assert_eq!(found, chain.records);
}

#[tokio::test]
async fn a_short_command_makes_no_room() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    for turn in 0..20 {
        chain.put(&store, &turn.to_string()).await;
    }
    drop(store);
    assert!(log_bytes(&scene) < 1 << 20);
}

fn log_bytes(scene: &Scene) -> u64 {
    std::fs::metadata(scene.file("-wal")).unwrap().len()
}
