//! Health: a probe fails where a write would, and a store whose files are gone acknowledges
//! nothing.

use crate::scene::{Chain, Scene};
use crate::sharing::{child, told_path, wait_for};
use planwright_adapters::sqlite::{Options, SqliteStore, find_lock_holder};
use planwright_engine::port::{AppendError, Journal as _, StoreError, StoreHealth as _};
use rusqlite::Connection;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// What is promised about a store whose files are removed.
const NOTICED: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_probe_is_written_and_means_nothing() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    chain.put(&store, "one").await;
    scene.empty_log();
    let log = || std::fs::metadata(scene.file("-wal")).unwrap().len();
    assert_eq!(log(), 0);
    store.probe().await.unwrap();
    assert!(log() > 4_096, "{}", log());
    assert!(!scene.file("-probe").exists());
    let last = chain.records.last().unwrap().at;
    assert_eq!(store.last_change().await.unwrap(), Some(last));
    chain.put(&store, "two").await;
    drop(store);
    let store = scene.open();
    assert_eq!(
        store.read(&chain.stream, 0, 9).await.unwrap(),
        chain.records
    );
    assert!(store.integrity().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_probe_of_a_store_that_another_process_holds_says_so() {
    let scene = Scene::new();
    let options = Options {
        busy_timeout: Duration::from_millis(20),
        ..Options::new(scene.path())
    };
    let store = SqliteStore::open_with(options).unwrap();
    let other = Connection::open(scene.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.probe().await.unwrap_err();
    assert!(matches!(refused, StoreError::Busy(_)), "{refused}");
    let refused = store.append(vec![Chain::of("run/r").grow(b"x")]).await;
    assert!(
        matches!(refused, Err(AppendError::Store(StoreError::Busy(_)))),
        "{refused:?}"
    );
    other.execute_batch("ROLLBACK").unwrap();
    store.probe().await.unwrap();
}

#[tokio::test]
async fn a_probe_needs_space_for_a_file_beside_the_database() {
    let scene = Scene::new();
    let store = scene.open();
    std::fs::create_dir(scene.file("-probe")).unwrap();
    let refused = store.probe().await.unwrap_err();
    assert!(matches!(refused, StoreError::Failed(_)), "{refused}");
    std::fs::remove_dir(scene.file("-probe")).unwrap();
    store.probe().await.unwrap();
}

#[tokio::test]
async fn a_store_that_was_removed_acknowledges_nothing() {
    for files in [
        &["", "-wal", "-shm", "-heads"][..],
        &[""],
        &["-wal"],
        &["-heads"],
    ] {
        let scene = Scene::new();
        let store = scene.open();
        let mut chain = Chain::of("run/r");
        chain.put(&store, "one").await;
        for file in files {
            std::fs::remove_file(scene.file(file)).unwrap();
        }
        let removed = Instant::now();
        let refused = loop {
            match store.append(vec![chain.clone().grow(b"two")]).await {
                Ok(()) => {
                    chain.grow(b"two");
                    assert!(
                        removed.elapsed() < NOTICED,
                        "{files:?} is still acknowledged"
                    );
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(error) => break error,
            }
        };
        assert!(
            matches!(&refused, AppendError::Store(StoreError::Lost(reason)) if reason.contains("removed")),
            "{refused}"
        );
        let refused = store.probe().await;
        assert!(matches!(refused, Err(StoreError::Lost(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_store_that_was_removed_or_replaced_is_noticed_without_a_write() {
    for replaced in [false, true] {
        let scene = Scene::new();
        let store = scene.open();
        Chain::of("run/r").put(&store, "one").await;
        let failure = store.failure();
        assert_eq!(*failure.borrow(), None);
        if replaced {
            std::fs::copy(scene.path(), scene.file(".other")).unwrap();
            std::fs::rename(scene.file(".other"), scene.path()).unwrap();
        } else {
            std::fs::remove_dir_all(scene.directory.path()).unwrap();
        }
        let reason = noticed(failure).await;
        let word = if replaced { "replaced" } else { "removed" };
        assert_eq!(
            reason,
            format!("planwright.db was {word} while it was in use")
        );
    }
}

async fn noticed(mut failure: watch::Receiver<Option<String>>) -> String {
    let reason = failure.wait_for(Option::is_some);
    let reason = tokio::time::timeout(NOTICED, reason).await.unwrap();
    reason.unwrap().clone().unwrap()
}

#[test]
#[ignore = "another test starts it, in a process of its own"]
fn child_that_holds_the_lock() {
    let Some(path) = told_path() else { return };
    let db = Connection::open(path).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    println!("\nholding");
    loop {
        std::thread::park();
    }
}

#[test]
fn the_process_that_holds_the_lock_is_named() {
    let scene = Scene::new();
    let store = scene.open();
    assert_eq!(find_lock_holder(&scene.path()), None);
    let mut holder = child("health::child_that_holds_the_lock", &scene.path())
        .spawn()
        .unwrap();
    wait_for(&mut holder, "holding");
    let found = find_lock_holder(&scene.path());
    holder.kill().unwrap();
    holder.wait().unwrap();
    let found = found.unwrap();
    assert_eq!(found.process, holder.id());
    // The kernel keeps the first fifteen characters of the program's name, or of its thread's.
    assert!(found.program.is_some(), "{found}");
    assert_eq!(find_lock_holder(&scene.path()), None);
    drop(store);
}
