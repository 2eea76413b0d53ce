//! A store that is written often makes its log longer than it is, and nobody reads the difference.

use crate::scene::{Chain, Scene};
use planwright_adapters::sqlite::SqliteStore;
use planwright_engine::port::Journal as _;

/// What a page takes in the log.
const FRAME: u64 = 4096 + 24;

fn log_bytes(scene: &Scene) -> u64 {
    std::fs::metadata(scene.file("-wal")).unwrap().len()
}

async fn put_many(store: &SqliteStore, chain: &mut Chain, count: u32) {
    for number in 0..count {
        chain.put(store, &format!("entry {number}")).await;
    }
}

#[tokio::test]
async fn many_commits_find_room_in_the_log_and_few_make_none() {
    let scene = Scene::new();
    let store = scene.open();
    scene.empty_log();
    let mut chain = Chain::of("run/r");
    put_many(&store, &mut chain, 20).await;
    let few = log_bytes(&scene);
    assert!(few < 40 * FRAME, "{few} bytes for 20 commits");
    let mut growths = 0;
    let mut before = few;
    for _ in 0..10 {
        put_many(&store, &mut chain, 20).await;
        growths += u32::from(log_bytes(&scene) > before);
        before = log_bytes(&scene);
    }
    assert!(before > (scene.pages_in_log() + 16) * FRAME, "{before}");
    assert!(growths < 8, "the log grew {growths} times");
}

#[tokio::test]
async fn room_in_the_log_is_no_entry_of_any_stream() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    put_many(&store, &mut chain, 120).await;
    // As a process that was killed leaves it: what is in the log has to be found again.
    let copy = Scene::new();
    for suffix in ["", "-wal", "-heads"] {
        std::fs::copy(scene.file(suffix), copy.file(suffix)).unwrap();
    }
    let opened = copy.open();
    let records = opened.read(&chain.stream, 0, 1_000).await.unwrap();
    assert_eq!(records, chain.records);
    assert_eq!(opened.integrity().await.unwrap(), [""; 0]);
    put_many(&opened, &mut chain, 120).await;
    drop(opened);
    let records = copy.open().read(&chain.stream, 0, 1_000).await.unwrap();
    assert_eq!(records, chain.records);
}

/// Two stores make room in one log in turn, and lose nothing of each other's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_share_the_room() {
    let scene = Scene::new();
    let tasks: Vec<_> = ["run/a", "run/b"]
        .into_iter()
        .map(|name| {
            let store = scene.open();
            tokio::spawn(async move {
                let mut chain = Chain::of(name);
                put_many(&store, &mut chain, 400).await;
                chain
            })
        })
        .collect();
    let mut chains = Vec::new();
    for task in tasks {
        chains.push(task.await.unwrap());
    }
    let store = scene.open();
    for chain in chains {
        let records = store.read(&chain.stream, 0, 1_000).await.unwrap();
        assert_eq!(records, chain.records);
    }
    assert_eq!(store.integrity().await.unwrap(), [""; 0]);
}
