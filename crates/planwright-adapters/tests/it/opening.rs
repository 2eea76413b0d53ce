//! Opening, closing and opening again.

use crate::scene::{Chain, LONG, Scene, owner};
use planwright_adapters::sqlite::{OpenStoreError, Options, SqliteStore};
use planwright_engine::port::{
    Append, AppendError, Journal as _, Leases as _, Mailbox as _, StoreError, StreamIndex as _,
    StreamStatus,
};
use rusqlite::Connection;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

#[tokio::test]
async fn everything_survives_reopening() {
    let scene = Scene::new();
    let mut chain = Chain::of("run/r");
    let (status, message, lease);
    {
        let store = scene.open();
        chain.put(&store, "one").await;
        status = StreamStatus {
            plan: "p".parse().unwrap(),
            status: "running".into(),
            label: "A run".into(),
        };
        let append = Append {
            status: Some(status.clone()),
            ..chain.grow(b"two")
        };
        store.append(vec![append]).await.unwrap();
        message = store.send(chain.run(), b"pause".to_vec()).await.unwrap();
        lease = store.acquire(chain.run(), &owner("a"), LONG).await.unwrap();
    }
    let store = scene.open();
    assert_eq!(
        store.read(&chain.stream, 0, 10).await.unwrap(),
        chain.records
    );
    assert_eq!(
        store.info(&chain.stream).await.unwrap().unwrap().status,
        status
    );
    assert_eq!(store.messages(chain.run()).await.unwrap()[0].id, message);
    assert_eq!(store.streams().await.unwrap(), [chain.stream.clone()]);
    assert!(store.damage().await.unwrap().is_empty());
    assert!(store.integrity().await.unwrap().is_empty());
    // Its owner has left, so the run is free, and the epoch goes on.
    assert_eq!(
        store
            .acquire(chain.run(), &owner("b"), LONG)
            .await
            .unwrap()
            .epoch,
        lease.epoch + 1
    );
}

#[tokio::test]
async fn only_the_owner_can_see_the_files() {
    let scene = Scene::new();
    let path = scene.directory.path().join("made/here/planwright.db");
    let store = SqliteStore::open(&path).unwrap();
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), expected, "{}", path.display());
    }
}

#[tokio::test]
async fn the_journal_cannot_be_rewritten_with_sql() {
    let scene = Scene::new();
    let store = scene.open();
    Chain::of("run/r").put(&store, "one").await;
    let db = Connection::open(scene.path()).unwrap();
    for sql in [
        "UPDATE entries SET body = x'00'",
        "DELETE FROM entries",
        "UPDATE entries SET at = 7",
    ] {
        let error = db.execute(sql, []).unwrap_err().to_string();
        assert!(error.contains("the journal is never"), "{sql}: {error}");
    }
    assert_eq!(
        db.query_row("SELECT stream || '/' || seq FROM entries", [], |row| row
            .get(0)),
        Ok("1/1".to_owned())
    );
}

#[test]
fn a_newer_schema_is_refused() {
    let scene = Scene::new();
    drop(scene.open());
    Connection::open(scene.path())
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let error = SqliteStore::open(&scene.path()).unwrap_err();
    assert!(
        matches!(error, OpenStoreError::NewerSchema { found: 99, .. }),
        "{error}"
    );
}

#[test]
fn a_file_that_is_not_a_database_is_refused_and_left_alone() {
    let scene = Scene::new();
    let text = "dear diary, this is not a database. ".repeat(100);
    std::fs::write(scene.path(), &text).unwrap();
    let error = SqliteStore::open(&scene.path()).unwrap_err();
    assert!(matches!(error, OpenStoreError::NotADatabase), "{error}");
    assert_eq!(std::fs::read_to_string(scene.path()).unwrap(), text);
}

#[test]
fn what_is_not_a_regular_file_is_refused() {
    let scene = Scene::new();
    std::fs::create_dir(scene.path()).unwrap();
    let error = SqliteStore::open(&scene.path()).unwrap_err();
    assert!(matches!(error, OpenStoreError::NotAFile(_)), "{error}");
    let link = scene.directory.path().join("link.db");
    symlink(scene.directory.path().join("elsewhere.db"), &link).unwrap();
    let error = SqliteStore::open(&link).unwrap_err();
    assert!(matches!(error, OpenStoreError::NotAFile(_)), "{error}");
    let beneath = scene.directory.path().join("file");
    std::fs::write(&beneath, "").unwrap();
    let error = SqliteStore::open(&beneath.join("planwright.db")).unwrap_err();
    assert!(matches!(error, OpenStoreError::Directory { .. }), "{error}");
}

#[test]
fn a_directory_without_permission_is_refused() {
    let scene = Scene::new();
    let closed = scene.directory.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500)).unwrap();
    let result = SqliteStore::open(&closed.join("planwright.db"));
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    // Nothing is closed to the superuser.
    if !rustix::process::geteuid().is_root() {
        let error = result.unwrap_err();
        assert!(matches!(error, OpenStoreError::File { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_locked_database_is_waited_for_and_then_reported() {
    let scene = Scene::new();
    let options = Options {
        busy_timeout: Duration::from_millis(50),
        ..Options::new(scene.path())
    };
    let store = SqliteStore::open_with(options).unwrap();
    let other = Connection::open(scene.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut chain = Chain::of("run/r");
    match store.append(vec![chain.clone().grow(b"one")]).await {
        Err(AppendError::Store(StoreError::Busy(reason))) => {
            assert!(reason.contains("locked"), "{reason}");
        }
        other => panic!("expected a failure, got {other:?}"),
    }
    assert!(
        store.read(&chain.stream, 0, 1).await.unwrap().is_empty(),
        "readers do not wait"
    );
    other.execute_batch("ROLLBACK").unwrap();
    chain.put(&store, "one").await;
}

#[test]
fn opening_and_closing_does_nothing_slow() {
    let scene = Scene::new();
    drop(scene.open());
    let started = std::time::Instant::now();
    for _ in 0..20 {
        drop(scene.open());
    }
    // About a millisecond each; the bound leaves room for a busy machine.
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
}
