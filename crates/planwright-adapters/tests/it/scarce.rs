//! No file descriptor is free for a moment, and the store is read all the same.

use crate::scene::{Chain, Scene};
use crate::sharing::{child, told_path};
use planwright_adapters::sqlite::SqliteStore;
use planwright_engine::port::{Journal as _, StoreError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::time::Duration;

/// Opens files until there is no descriptor left.
fn take_all_descriptors() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

#[tokio::test]
#[ignore = "another test starts it, in a process of its own"]
async fn child_that_reads_without_descriptors() {
    let Some(path) = told_path() else { return };
    // Few of them, and only in this process.
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let few = Rlimit {
        current: Some(64),
        maximum,
    };
    setrlimit(Resource::Nofile, few).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let stream = Chain::of("run/r").stream;
    let taken = take_all_descriptors();
    // For as long as there is none, it is said to be busy and not broken.
    let refused = store.head(&stream).await;
    assert!(
        matches!(&refused, Err(StoreError::Busy(reason)) if reason.contains("descriptor")),
        "{refused:?}"
    );
    let freeing = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        drop(taken);
    });
    assert_eq!(store.head(&stream).await.unwrap().seq, 1);
    freeing.join().unwrap();
    println!("\nread");
}

#[tokio::test]
async fn a_store_is_read_once_a_descriptor_is_free() {
    let scene = Scene::new();
    let store = scene.open();
    Chain::of("run/r").put(&store, "one").await;
    drop(store);
    let test = "scarce::child_that_reads_without_descriptors";
    let output = child(test, &scene.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.lines().any(|line| line == "read"), "{said}");
}
