//! Tokens in the SQLite store.

use crate::scene::Scene;
use planwright_adapters::sqlite::SqliteStore;
use planwright_core::policy::{Role, Roles};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::access::{Grant, create, recognise};
use planwright_engine::port::Tokens;
use std::sync::Arc;
use tempfile::TempDir;

fn make() -> (Arc<dyn Tokens>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("planwright.db")).unwrap();
    (Arc::new(store), directory)
}

planwright_engine::token_laws!(make);

mod passes {
    use super::*;
    use planwright_engine::port::Passes;

    fn make_passes() -> (Arc<dyn Passes>, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&directory.path().join("planwright.db")).unwrap();
        (Arc::new(store), directory)
    }

    planwright_engine::pass_laws!(make_passes);
}

mod passkeys {
    use super::*;
    use planwright_engine::port::Passkeys;

    fn make_passkeys() -> (Arc<dyn Passkeys>, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&directory.path().join("planwright.db")).unwrap();
        (Arc::new(store), directory)
    }

    planwright_engine::passkey_laws!(make_passkeys);
}

const NOW: Timestamp = Timestamp::from_millis(1);

async fn given(store: &SqliteStore) -> planwright_engine::access::Minted {
    let grant = Grant {
        to: Principal::person("bob"),
        role: Role::Approver,
        lifetime: None,
    };
    create(
        store,
        &Roles::default(),
        &Principal::person("ada"),
        &grant,
        NOW,
    )
    .await
    .unwrap()
}

#[tokio::test]
async fn what_another_process_revokes_counts_at_once() {
    let scene = Scene::new();
    let one = scene.open();
    let two = scene.open();
    let minted = given(&one).await;
    for store in [&one, &two, &one] {
        assert!(
            recognise(store, minted.text.expose(), NOW)
                .await
                .unwrap()
                .is_some()
        );
    }
    assert!(two.revoke(&minted.token.id, NOW).await.unwrap());
    for store in [&one, &two] {
        assert!(
            recognise(store, minted.text.expose(), NOW)
                .await
                .unwrap()
                .is_none()
        );
    }
}

#[tokio::test]
async fn a_token_is_nowhere_on_disk() {
    let scene = Scene::new();
    let store = scene.open();
    let minted = given(&store).await;
    let text = minted.text.expose().as_bytes();
    for entry in std::fs::read_dir(scene.directory.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        assert!(
            !bytes.windows(text.len()).any(|window| window == text),
            "{}",
            path.display()
        );
    }
}

#[tokio::test]
async fn a_row_that_says_nonsense_opens_nothing() {
    let scene = Scene::new();
    let store = scene.open();
    let minted = given(&store).await;
    let db = rusqlite::Connection::open(scene.path()).unwrap();
    db.execute("UPDATE tokens SET role = 'root'", []).unwrap();
    assert!(recognise(&store, minted.text.expose(), NOW).await.is_err());
}
