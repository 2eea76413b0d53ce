//! An encrypted store obeys the same laws, opens with its passphrase and with nothing else, and
//! shows nothing.

use crate::scene::{Chain, LONG, Scene, passphrase, sealed};
use planwright_adapters::files::FileArtifacts;
use planwright_adapters::sqlite::{OpenStoreError, Options, SqliteStore, is_encrypted};
use planwright_adapters::vault::UnlockError;
use planwright_core::digest::Digest;
use planwright_core::journal::Record;
use planwright_core::policy::{Role, Roles};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::access::{Grant, create};
use planwright_engine::port::{
    Answers as _, Append, Artifacts as _, Asking, Claim, Journal as _, LeaseRule, Mailbox as _,
    Store, StreamStatus, Tokens,
};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

mod laws {
    use super::*;

    fn make() -> (Arc<dyn Store>, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open_with(sealed(directory.path().join("planwright.db"))).unwrap();
        (Arc::new(store), directory)
    }

    planwright_engine::store_laws!(make);
}

mod token_laws {
    use super::*;

    fn make() -> (Arc<dyn Tokens>, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open_with(sealed(directory.path().join("planwright.db"))).unwrap();
        (Arc::new(store), directory)
    }

    planwright_engine::token_laws!(make);
}

#[tokio::test]
async fn only_the_passphrase_opens_it_and_a_wrong_one_changes_nothing() {
    let scene = Scene::new();
    let mut chain = Chain::of("run/r");
    let store = scene.open_sealed();
    chain.put(&store, "one").await;
    drop(store);
    let before = files(scene.directory.path());
    assert_eq!(is_encrypted(&scene.path()).unwrap(), Some(true));
    assert!(matches!(
        SqliteStore::open(&scene.path()),
        Err(OpenStoreError::Encrypted)
    ));
    for wrong in ["correct horses", "Correct horse", " "] {
        let options = Options {
            passphrase: Some(passphrase(wrong)),
            ..sealed(scene.path())
        };
        let refused = SqliteStore::open_with(options);
        assert!(
            matches!(
                refused,
                Err(OpenStoreError::Unlock(UnlockError::WrongPassphrase))
            ),
            "{wrong}"
        );
    }
    assert_eq!(files(scene.directory.path()), before);
    let store = scene.open_sealed();
    assert_eq!(
        store.read(&chain.stream, 0, 10).await.unwrap(),
        chain.records
    );
    chain.put(&store, "two").await;
    assert!(store.damage().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_passphrase_is_not_taken_for_a_plain_store() {
    let scene = Scene::new();
    let store = scene.open();
    Chain::of("run/r").put(&store, "one").await;
    drop(store);
    let refused = SqliteStore::open_with(sealed(scene.path()));
    assert!(matches!(refused, Err(OpenStoreError::NotEncrypted)));
    assert_eq!(is_encrypted(&scene.path()).unwrap(), Some(false));
    assert_eq!(is_encrypted(&scene.file("-nothing")).unwrap(), None);
}

#[test]
fn a_new_store_is_not_locked_with_a_short_passphrase() {
    let scene = Scene::new();
    let options = Options {
        passphrase: Some(passphrase("short")),
        ..sealed(scene.path())
    };
    assert!(matches!(
        SqliteStore::open_with(options),
        Err(OpenStoreError::Passphrase(_))
    ));
}

#[tokio::test]
async fn a_damaged_lock_is_reported_and_never_replaced() {
    for sql in [
        "UPDATE vault SET wrapped_key = substr(wrapped_key, 1, 20)",
        "UPDATE vault SET salt = x''",
        "UPDATE vault SET memory_kib = 8",
        "UPDATE vault SET memory_kib = 4000000000",
        "UPDATE vault SET format = 2",
        "UPDATE vault SET nonce = zeroblob(24)",
    ] {
        let scene = Scene::new();
        let store = scene.open_sealed();
        Chain::of("run/r").put(&store, "one").await;
        drop(store);
        rusqlite::Connection::open(scene.path())
            .unwrap()
            .execute(sql, [])
            .unwrap();
        let refused = SqliteStore::open_with(sealed(scene.path()));
        assert!(matches!(refused, Err(OpenStoreError::Unlock(_))), "{sql}");
    }
}

fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if !path.to_string_lossy().ends_with("-shm") {
                files.push((path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// Texts that a thief must not find: in bodies, keys, labels, commands, refusals, large values, a
/// growing journal.
const CANARIES: [&str; 13] = [
    "canary-body-1",
    "canary-body-2",
    "canary-key",
    "canary-label",
    "canary-label-again",
    "canary-message",
    "canary-refusal",
    "canary-artifact",
    "canary-large",
    "canary-plan",
    "canary-late",
    "canary-answered",
    "canary-answer-of-the-service",
];

async fn plant(scene: &Scene) {
    let store = scene.open_sealed();
    let mut run = Chain::of("run/r");
    run.open(&store, "owner", LONG).await;
    run.put(&store, CANARIES[0]).await;
    let record = Record::after(
        run.head,
        &run.stream,
        Timestamp::from_millis(2),
        1,
        Some(CANARIES[2].to_owned()),
        CANARIES[1].into(),
    );
    let append = run.grow(b"");
    let status = |label: &str| {
        Some(StreamStatus {
            plan: "p".parse().unwrap(),
            status: "running".into(),
            label: label.to_owned(),
        })
    };
    store
        .append(vec![Append {
            records: vec![record.clone()],
            status: status(CANARIES[3]),
            ..append
        }])
        .await
        .unwrap();
    run.head = record.head();
    store
        .append(vec![Append {
            status: status(CANARIES[4]),
            ..run.grow(CANARIES[10].as_bytes())
        }])
        .await
        .unwrap();
    let message = store.send(run.run(), CANARIES[5].into()).await.unwrap();
    let answers = vec![(message, Err(CANARIES[6].to_owned()))];
    store
        .append(vec![Append {
            answers,
            ..run.grow(CANARIES[11].as_bytes())
        }])
        .await
        .unwrap();
    assert_eq!(
        store.answer(message).await.unwrap(),
        Some(Err(CANARIES[6].to_owned()))
    );
    let asking = Asking {
        principal: Digest::of_bytes(b"ada"),
        key: Digest::of_bytes(b"key"),
        request: Digest::of_bytes(CANARIES[12].as_bytes()),
        owner: crate::scene::owner("owner"),
        limit: 1,
    };
    assert_eq!(
        store
            .claim(&asking, Timestamp::from_millis(1))
            .await
            .unwrap(),
        Claim::Fresh
    );
    store
        .keep(&asking.claim(), CANARIES[12].into())
        .await
        .unwrap();
    let again = store
        .claim(&asking, Timestamp::from_millis(2))
        .await
        .unwrap();
    assert_eq!(again, Claim::Answered(CANARIES[12].into()));
    let mut plan = Chain::of("plan/p");
    plan.put(&store, &CANARIES[9].repeat(2_000)).await;
    let artifacts =
        FileArtifacts::with_cipher(scene.file("-artifacts"), Arc::clone(store.cipher()));
    artifacts.put(CANARIES[7].into()).await.unwrap();
    let large = artifacts
        .put(CANARIES[8].repeat(10_000).into())
        .await
        .unwrap();
    assert_eq!(
        artifacts.get(&large).await.unwrap(),
        CANARIES[8].repeat(10_000).into_bytes()
    );
    let grant = Grant {
        to: Principal::person("ada"),
        role: Role::Viewer,
        lifetime: None,
    };
    create(
        &store,
        &Roles::default(),
        &grant.to,
        &grant,
        Timestamp::from_millis(1),
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn nothing_that_was_kept_is_found_in_stolen_files() {
    let scene = Scene::new();
    plant(&scene).await;
    let stolen = files(scene.directory.path());
    assert!(
        stolen
            .iter()
            .any(|(path, bytes)| path.ends_with("-wal") && !bytes.is_empty())
    );
    for canary in CANARIES {
        let digest = Digest::of_bytes(canary.as_bytes());
        for (path, bytes) in &stolen {
            let found = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
            assert!(!found(canary.as_bytes()), "{canary} in {path}");
            assert!(
                !found(digest.as_bytes()) && !found(digest.hex().as_bytes()),
                "digest of {canary} in {path}"
            );
            assert!(
                !path.contains(&digest.hex()),
                "{path} is named by its content"
            );
        }
    }
}

#[tokio::test]
async fn the_hashes_of_the_chain_are_masked_everywhere() {
    let scene = Scene::new();
    let store = scene.open_sealed();
    let mut chain = Chain::of("run/r");
    chain.put(&store, "guess me").await;
    chain.put(&store, "and me").await;
    drop(store);
    for (path, bytes) in files(scene.directory.path()) {
        for record in &chain.records {
            let hash = record.hash.as_bytes();
            assert!(
                !bytes.windows(hash.len()).any(|window| window == hash),
                "{path}"
            );
        }
    }
    assert!(scene.open_sealed().damage().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_lost_tail_of_an_encrypted_store_is_noticed() {
    let scene = Scene::new();
    let store = scene.open_sealed();
    let mut chain = Chain::of("run/r");
    chain.try_put(&store, LeaseRule::None).await.unwrap();
    drop(store);
    rusqlite::Connection::open(scene.path())
        .unwrap()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    let store = scene.open_sealed();
    chain.put(&store, "lost").await;
    drop(store);
    std::fs::write(scene.file("-wal"), b"").unwrap();
    let lost = scene.open_sealed().damage().await.unwrap();
    assert_eq!((lost.len(), lost[0].present, lost[0].promised), (1, 1, 2));
}
