//! Whose store it is: made, moved, copied, tampered with, adopted; and journals that another user
//! wrote.

use crate::scene::{Chain, LONG, Scene, new_key, owner, passphrase, sealed, signed};
use planwright_adapters::signing::SigningKey;
use planwright_adapters::sqlite::{
    ForeignStore, IdleStore, OpenStoreError, Options, Protection, Restore, RewriteStoreError,
    SqliteStore, StoreOwner, restore,
};
use planwright_adapters::vault::StretchCost;
use planwright_core::journal::{Head, Record};
use planwright_core::policy::{Role, Roles};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::access::{Grant, create};
use planwright_engine::port::{
    Append, AppendError, Journal as _, Leases as _, Mailbox as _, RetentionStore as _, StoreError,
    StoreHealth as _, StreamStatus, Tokens as _,
};
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::Arc;

const NOW: Timestamp = Timestamp::from_millis(5_000);

fn open(scene: &Scene, key: &Arc<SigningKey>) -> SqliteStore {
    SqliteStore::open_with(signed(scene.path(), key)).unwrap()
}

/// A store of this user with one journal.
async fn made(scene: &Scene, key: &Arc<SigningKey>) -> Chain {
    let store = open(scene, key);
    let mut chain = Chain::of("run/r");
    chain.open(&store, "owner", LONG).await;
    for number in 0..5 {
        let status = StreamStatus {
            plan: "p".parse().unwrap(),
            status: "completed".into(),
            label: format!("label {number}"),
        };
        let append = Append {
            status: Some(status),
            ..chain.grow(format!("entry {number}").as_bytes())
        };
        store.append(vec![append]).await.unwrap();
    }
    chain
}

/// The store with everything beside it, as `cp` copies it.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn refusal<T>(result: Result<T, impl Into<AppendError>>) -> String {
    match result.map_err(Into::into) {
        Err(AppendError::Store(StoreError::NotAdopted(why))) => why,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was written"),
    }
}

async fn read_all(store: &SqliteStore, chain: &Chain) -> Result<Vec<Record>, StoreError> {
    store.read(&chain.stream, 0, 1000).await
}

#[tokio::test]
async fn a_store_is_its_makers_and_others_can_only_read_it() {
    let scene = Scene::new();
    let key = new_key();
    let mut chain = made(&scene, &key).await;
    assert!(open(&scene, &key).foreign().is_none());
    chain.put(&open(&scene, &key), "more").await;

    let store = open(&scene, &new_key());
    assert_eq!(store.foreign(), Some(&ForeignStore::OtherKey(key.public())));
    assert_eq!(read_all(&store, &chain).await.unwrap(), chain.records);
    let append = chain.clone().grow(b"not mine");
    let said = refusal(store.append(vec![append]).await);
    assert!(said.contains("another user"), "{said}");
    let acquired = store.acquire(chain.run(), &owner("me"), LONG).await;
    assert!(
        matches!(
            acquired,
            Err(planwright_engine::port::AcquireError::Store(
                StoreError::NotAdopted(_)
            ))
        ),
        "{acquired:?}"
    );
    refusal(store.send(chain.run(), b"go".to_vec()).await);
    refusal(store.probe().await);
    drop(store);
    // A user without a key owns nothing, and neither does a program that asks for no owner.
    for owner in [StoreOwner::Unknown, StoreOwner::Unchecked] {
        let options = Options {
            owner,
            ..Options::new(scene.path())
        };
        let store = SqliteStore::open_with(options).unwrap();
        refusal(store.probe().await);
    }
    assert_eq!(
        read_all(&open(&scene, &key), &chain).await.unwrap(),
        chain.records
    );
}

#[tokio::test]
async fn a_copy_is_not_what_was_made_and_a_folder_that_moved_is() {
    let scene = Scene::new();
    let key = new_key();
    let chain = made(&scene, &key).await;
    let elsewhere = Scene::new();
    copy(scene.directory.path(), elsewhere.directory.path());
    let store = open(&elsewhere, &key);
    assert_eq!(store.foreign(), Some(&ForeignStore::Copied));
    assert_eq!(read_all(&store, &chain).await.unwrap(), chain.records);
    refusal(store.probe().await);
    drop(store);

    // The same files at another path.
    let moved = Scene::new();
    for entry in std::fs::read_dir(scene.directory.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::rename(entry.path(), moved.directory.path().join(entry.file_name())).unwrap();
    }
    assert!(open(&moved, &key).foreign().is_none());
    // Other files at the path it has by now.
    let kept = Scene::new();
    copy(moved.directory.path(), kept.directory.path());
    std::fs::remove_file(moved.path()).unwrap();
    std::fs::copy(kept.path(), moved.path()).unwrap();
    assert!(open(&moved, &key).foreign().is_none());
}

#[tokio::test]
async fn journals_that_say_nothing_of_their_owner_are_nobodys() {
    let scene = Scene::new();
    let mut chain = Chain::of("run/r");
    chain.put(&scene.open(), "made by an earlier release").await;
    let key = new_key();
    let store = open(&scene, &key);
    assert_eq!(store.foreign(), Some(&ForeignStore::NoIdentity));
    assert_eq!(read_all(&store, &chain).await.unwrap(), chain.records);
    refusal(store.append(vec![chain.clone().grow(b"more")]).await);
    drop(store);
    // Taking the identity away makes no store one's own.
    let other = Scene::new();
    made(&other, &key).await;
    let db = Connection::open(other.path()).unwrap();
    db.execute("DELETE FROM identity", []).unwrap();
    drop(db);
    assert_eq!(
        open(&other, &key).foreign(),
        Some(&ForeignStore::NoIdentity)
    );
    // An empty one is given to its first user, with many of them at once.
    let fresh = Scene::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(open(&fresh, &key).foreign().is_none()));
        }
    });
}

#[tokio::test]
async fn an_identity_that_was_changed_is_noticed() {
    let scene = Scene::new();
    let (key, thief) = (new_key(), new_key());
    made(&scene, &key).await;
    let change = |sql: &str| {
        let db = Connection::open(scene.path()).unwrap();
        db.execute(sql, []).unwrap();
    };
    // Another user writes their key, or another time, into it.
    change("UPDATE identity SET made_at = made_at + 1");
    assert_eq!(
        open(&scene, &key).foreign(),
        Some(&ForeignStore::BadSignature)
    );
    change("UPDATE identity SET made_at = made_at - 1");
    assert!(open(&scene, &key).foreign().is_none());
    let public = thief.public();
    let db = Connection::open(scene.path()).unwrap();
    db.execute(
        "UPDATE identity SET public_key = ?1",
        params![public.as_bytes()],
    )
    .unwrap();
    drop(db);
    assert_eq!(
        open(&scene, &key).foreign(),
        Some(&ForeignStore::OtherKey(public))
    );
    assert_eq!(
        open(&scene, &thief).foreign(),
        Some(&ForeignStore::BadSignature)
    );
}

#[tokio::test]
async fn an_adopted_store_is_the_adopters_and_brings_no_access() {
    let scene = Scene::new();
    let (ada, bob) = (new_key(), new_key());
    let mut chain = made(&scene, &ada).await;
    let store = open(&scene, &ada);
    let grant = Grant {
        to: Principal::person("ada"),
        role: Role::Admin,
        lifetime: None,
    };
    create(
        &store,
        &Roles::default(),
        &Principal::person("ada"),
        &grant,
        NOW,
    )
    .await
    .unwrap();
    let message = store.send(chain.run(), b"go on".to_vec()).await.unwrap();
    drop(store);

    let adopting = || Options {
        adopt: true,
        ..signed(scene.path(), &bob)
    };
    let store = SqliteStore::open_with(adopting()).unwrap();
    assert!(store.adopting().is_some());
    // No other process has it open meanwhile, and a user who gives up has changed nothing about whose it is.
    drop(store);
    let store = SqliteStore::open_with(adopting()).unwrap();
    let settled = store.settle_adopted(NOW).await.unwrap();
    assert_eq!((settled.tokens_revoked, settled.commands_refused), (1, 1));
    drop(store);
    assert!(
        open(&scene, &bob).foreign().is_some(),
        "killed before the end"
    );

    let store = SqliteStore::open_with(adopting()).unwrap();
    store.settle_adopted(NOW).await.unwrap();
    chain.put(&store, "written while it is adopted").await;
    store.adopt(NOW).await.unwrap();
    drop(store);
    let store = open(&scene, &bob);
    assert!(store.foreign().is_none());
    assert_eq!(store.adopted_at(), Some(NOW));
    assert_eq!(read_all(&store, &chain).await.unwrap(), chain.records);
    assert!(
        store
            .list()
            .await
            .unwrap()
            .iter()
            .all(|token| !token.is_valid(NOW))
    );
    assert!(store.answer(message).await.unwrap().unwrap().is_err());
    chain.put(&store, "mine").await;
    drop(store);
    assert_eq!(
        open(&scene, &ada).foreign(),
        Some(&ForeignStore::OtherKey(bob.public()))
    );
}

/// Writes another body into an entry, and hashes everything behind it anew, as one who has the file
/// and knows the format can.
fn rewrite_entry(scene: &Scene, chain: &Chain, seq: u64, body: &[u8]) {
    let db = Connection::open(scene.path()).unwrap();
    db.execute_batch("DROP TRIGGER entries_are_never_changed")
        .unwrap();
    let mut head = Head::EMPTY;
    for record in &chain.records {
        let body = if record.seq == seq {
            body
        } else {
            &record.body
        };
        let again = Record::after(
            head,
            &chain.stream,
            record.at,
            record.epoch,
            record.key.clone(),
            body.to_vec(),
        );
        head = again.head();
        let changed = db
            .execute(
                "UPDATE entries SET body = ?2, hash = ?3 WHERE position & 4294967295 = ?1
                 AND position >> 32 = (SELECT id FROM streams WHERE name = ?4)",
                params![
                    record.seq,
                    again.body,
                    again.hash.as_bytes(),
                    chain.stream.to_string()
                ],
            )
            .unwrap();
        assert_eq!(changed, 1);
    }
    // What was acknowledged is forgotten too.
    std::fs::write(scene.file("-heads"), b"").unwrap();
}

fn expect_changed(read: Result<Vec<Record>, StoreError>) {
    match read {
        Err(StoreError::Damaged { reason, .. }) => {
            assert!(reason.contains("the key of this store"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_rewritten_journal_with_hashes_taken_anew_is_noticed() {
    for seq in [1, 3, 6] {
        let scene = Scene::new();
        let key = new_key();
        let chain = made(&scene, &key).await;
        let mut other = Chain::of("run/other");
        other.put(&open(&scene, &key), "untouched").await;
        rewrite_entry(&scene, &chain, seq, b"approved by another user");
        let store = open(&scene, &key);
        expect_changed(read_all(&store, &chain).await);
        assert_eq!(read_all(&store, &other).await.unwrap(), other.records);
        drop(store);
        // Without the key it is a chain like any other: that is what the mark is for.
        let stranger = open(&scene, &new_key());
        assert_eq!(
            read_all(&stranger, &chain).await.unwrap().len(),
            chain.records.len()
        );
    }
}

#[tokio::test]
async fn entries_that_were_added_behind_the_back_of_the_owner_are_noticed() {
    let scene = Scene::new();
    let key = new_key();
    let mut chain = made(&scene, &key).await;
    // A service that has the store open is not deceived either.
    let store = open(&scene, &key);
    assert_eq!(read_all(&store, &chain).await.unwrap(), chain.records);
    let record = {
        drop(chain.grow(b"plan_approved"));
        chain.records.last().unwrap().clone()
    };
    let db = Connection::open(scene.path()).unwrap();
    db.execute(
        "INSERT INTO entries (position, at, epoch, ordinal, hash, key, body)
         VALUES ((SELECT id FROM streams WHERE name = 'run/r') << 32 | ?1, 1, 1, 1000, ?2, NULL, ?3)",
        params![record.seq, record.hash.as_bytes(), record.body],
    )
    .unwrap();
    expect_changed(read_all(&store, &chain).await);
}

#[tokio::test]
async fn a_mark_of_another_place_or_store_counts_for_nothing() {
    let scene = Scene::new();
    let key = new_key();
    let chain = made(&scene, &key).await;
    let db = Connection::open(scene.path()).unwrap();
    let mark: Vec<u8> = db
        .query_row(
            "SELECT mark FROM entries ORDER BY position DESC LIMIT 1",
            [],
            |row| row.get(0),
        )
        .unwrap();
    // The end is cut off, and the mark of the lost end put on what is left.
    db.execute_batch("DROP TRIGGER entries_are_never_removed")
        .unwrap();
    db.execute("DELETE FROM entries WHERE position & 4294967295 = 6", [])
        .unwrap();
    db.execute(
        "UPDATE entries SET mark = ?1 WHERE position & 4294967295 = 5",
        params![mark],
    )
    .unwrap();
    drop(db);
    std::fs::write(scene.file("-heads"), b"").unwrap();
    expect_changed(read_all(&open(&scene, &key), &chain).await);
}

fn protection() -> Protection {
    Protection::Sealed {
        passphrase: passphrase("correct horse"),
        cost: StretchCost::FLOOR,
    }
}

#[tokio::test]
async fn marks_survive_encryption_sealing_and_backups() {
    let scene = Scene::new();
    let key = new_key();
    let mut chain = made(&scene, &key).await;
    let artifacts = scene.file("-artifacts");
    let with_passphrase = |path| Options {
        owner: StoreOwner::Key(Arc::clone(&key)),
        ..sealed(path)
    };
    // Encrypted: a new file under the old name.
    let idle = IdleStore::open(signed(scene.path(), &key)).unwrap();
    let (idle, _) = idle
        .rewrite(&protection(), &artifacts, &mut |_| ())
        .unwrap();
    idle.finish(&artifacts).unwrap();
    let store = SqliteStore::open_with(with_passphrase(scene.path())).unwrap();
    assert!(store.foreign().is_none());
    assert_eq!(read_all(&store, &chain).await.unwrap(), chain.records);
    chain.put(&store, "written encrypted").await;
    // Sealed, and brought back.
    store.seal(&chain.stream, chain.head, NOW).await.unwrap();
    assert_eq!(read_all(&store, &chain).await.unwrap(), chain.records);
    // A backup of a user is theirs where they restore it.
    let backup = scene.directory.path().join("backup");
    store.backup(&artifacts, &backup, NOW, &mut |_| ()).unwrap();
    store.restore(&chain.stream).await.unwrap();
    assert_eq!(read_all(&store, &chain).await.unwrap(), chain.records);
    drop(store);
    let idle = IdleStore::open(with_passphrase(scene.path())).unwrap();
    let (idle, _) = idle
        .rewrite(&Protection::Plain, &artifacts, &mut |_| ())
        .unwrap();
    idle.finish(&artifacts).unwrap();
    chain.put(&open(&scene, &key), "and plain again").await;

    let elsewhere = Scene::new();
    let what = |key: &Arc<SigningKey>, scene: &Scene| Restore {
        from: backup.clone(),
        to: Options {
            owner: StoreOwner::Key(Arc::clone(key)),
            ..sealed(scene.path())
        },
        artifacts: scene.file("-artifacts"),
        replace: false,
        keep_tokens: false,
        now: NOW,
    };
    restore(&what(&key, &elsewhere), &mut |_| ()).unwrap();
    let store = SqliteStore::open_with(with_passphrase(elsewhere.path())).unwrap();
    assert!(store.foreign().is_none());
    assert_eq!(read_all(&store, &chain).await.unwrap().len(), 7);
    // That of another user is theirs.
    let stranger = new_key();
    let third = Scene::new();
    restore(&what(&stranger, &third), &mut |_| ()).unwrap();
    let options = Options {
        owner: StoreOwner::Key(stranger),
        ..sealed(third.path())
    };
    let store = SqliteStore::open_with(options).unwrap();
    assert_eq!(store.foreign(), Some(&ForeignStore::OtherKey(key.public())));
}

#[tokio::test]
async fn a_store_of_another_user_is_not_rewritten() {
    let scene = Scene::new();
    made(&scene, &new_key()).await;
    let refused = IdleStore::open(signed(scene.path(), &new_key()));
    assert!(
        matches!(
            refused,
            Err(RewriteStoreError::Open(OpenStoreError::Foreign(
                ForeignStore::OtherKey(_)
            )))
        ),
        "{refused:?}"
    );
}
