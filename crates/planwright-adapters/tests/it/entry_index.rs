//! The journal's indexes are written in batches, and no reader or writer can tell.

use crate::scene::{Chain, Scene, sealed};
use crate::sharing::{child, told_path};
use planwright_adapters::sqlite::SqliteStore;
use planwright_core::journal::{Head, Record, check_chain};
use planwright_core::time::Timestamp;
use planwright_engine::port::{Append, AppendError, FeedOf, Journal as _, LeaseRule, Position};
use rusqlite::{Connection, params};

/// More than are ever left unindexed.
const MANY: u64 = 150;

/// An append of one entry with this key.
fn keyed(chain: &mut Chain, key: &str) -> Append {
    let at = Timestamp::from_millis(1);
    let key = Some(key.to_owned());
    let record = Record::after(chain.head, &chain.stream, at, 1, key, b"body".to_vec());
    let expected = std::mem::replace(&mut chain.head, record.head());
    chain.records.push(record.clone());
    Append {
        stream: chain.stream.clone(),
        expected,
        records: vec![record],
        lease: LeaseRule::None,
        status: None,
        answers: Vec::new(),
        requests: Vec::new(),
        brought: Vec::new(),
        offers: Vec::new(),
    }
}

async fn positions(store: &SqliteStore) -> Vec<u64> {
    let found = store.feed(&FeedOf::All, Position(0), usize::MAX).await;
    let found = found.unwrap();
    found.iter().map(|placed| placed.position.0).collect()
}

fn rows_of(scene: &Scene, table: &str) -> u64 {
    let db = Connection::open(scene.path()).unwrap();
    db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
        row.get(0)
    })
    .unwrap()
}

#[tokio::test]
async fn a_run_that_goes_on_writes_little_more_than_one_page_per_commit() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    store
        .append(vec![keyed(&mut chain, "first")])
        .await
        .unwrap();
    scene.empty_log();
    for number in 0..100 {
        let append = keyed(&mut chain, &format!("step {number}"));
        store.append(vec![append]).await.unwrap();
    }
    // Behind them is room for more, so that the length of the log says nothing.
    let pages = scene.pages_in_log();
    assert!((100..160).contains(&pages), "{pages} pages for 100 commits");
}

#[tokio::test]
async fn keys_stay_unique_whether_they_are_indexed_or_not() {
    for encrypted in [false, true] {
        let scene = Scene::new();
        let open = || match encrypted {
            false => scene.open(),
            true => SqliteStore::open_with(sealed(scene.path())).unwrap(),
        };
        let stores = [open(), open()];
        let mut chain = Chain::of("run/r");
        for number in 0..MANY {
            let append = keyed(&mut chain, &format!("key {number}"));
            let store = &stores[usize::from(number % 3 == 0)];
            store.append(vec![append]).await.unwrap();
        }
        for store in stores.iter().chain([&open()]) {
            for number in [0, 1, 63, 64, 65, MANY - 2, MANY - 1] {
                let key = format!("key {number}");
                let refused = store.append(vec![keyed(&mut chain.clone(), &key)]).await;
                match refused {
                    Err(AppendError::Duplicate { key: found, .. }) => assert_eq!(found, key),
                    other => panic!("{key}: {other:?}"),
                }
            }
        }
        let other = keyed(&mut Chain::of("run/other"), "key 1");
        stores[0].append(vec![other]).await.unwrap();
        assert_eq!(stores[1].integrity().await.unwrap(), [""; 0]);
    }
}

#[tokio::test]
async fn one_append_cannot_say_a_key_twice_and_a_refused_key_stays_free() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    let mut twice = chain.clone();
    let mut append = keyed(&mut twice, "once");
    append.records.extend(keyed(&mut twice, "once").records);
    let refused = store.append(vec![append]).await;
    assert!(
        matches!(refused, Err(AppendError::Duplicate { .. })),
        "{refused:?}"
    );
    store.append(vec![keyed(&mut chain, "once")]).await.unwrap();
    assert_eq!(positions(&store).await, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_requests_of_a_group_leave_no_gap_and_no_key() {
    let scene = Scene::new();
    let store = std::sync::Arc::new(scene.open());
    let tasks: Vec<_> = (0..40)
        .map(|number| {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move {
                let mut chain = Chain::of(&format!("run/r{number}"));
                for step in 0..5 {
                    let stale = keyed(&mut Chain::of("run/r0"), "never");
                    let mut both = vec![keyed(&mut chain.clone(), &format!("key {step}"))];
                    // The second of the two is refused once run/r0 has begun, and both with it.
                    if number != 0 && step > 0 {
                        both.push(stale);
                        drop(store.append(both).await);
                    }
                    let append = keyed(&mut chain, &format!("key {step}"));
                    drop(store.append(vec![append]).await);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let found = positions(&store).await;
    let expected: Vec<_> = (1..=found.len() as u64).collect();
    assert_eq!(found, expected);
    assert_eq!(store.integrity().await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn the_order_is_whole_at_every_length() {
    let scene = Scene::new();
    let stores = [scene.open(), scene.open()];
    let mut chains: Vec<_> = (0..12).map(|n| Chain::of(&format!("run/r{n}"))).collect();
    for number in 0..MANY {
        let streams = if number < 100 { 3 } else { 12 };
        let chain = &mut chains[usize::try_from(number).unwrap() % streams];
        chain
            .put(&stores[usize::from(number % 2 == 0)], "body")
            .await;
        let after = Position(number.saturating_sub(2));
        let found = stores[0].feed(&FeedOf::All, after, 10).await.unwrap();
        let found: Vec<_> = found.iter().map(|placed| placed.position.0).collect();
        assert_eq!(found, (after.0 + 1..=number + 1).collect::<Vec<_>>());
    }
    assert!(rows_of(&scene, "entry_places") > 0, "some are indexed");
    assert_eq!(stores[0].integrity().await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn an_index_that_differs_from_the_journal_is_a_fault() {
    for (sql, fault) in [
        ("DELETE FROM entry_places WHERE ordinal = 3", "has no place"),
        (
            "UPDATE entry_places SET position = position + 1 WHERE ordinal = 3",
            "has no",
        ),
        (
            "DELETE FROM entry_keys WHERE key = 'key 3'",
            "is not indexed",
        ),
        (
            "INSERT INTO entry_keys VALUES (1, 'never')",
            "that no entry has",
        ),
        ("DELETE FROM unindexed", "has no place"),
    ] {
        let scene = Scene::new();
        let store = scene.open();
        let mut chain = Chain::of("run/r");
        for number in 0..MANY {
            let append = keyed(&mut chain, &format!("key {number}"));
            store.append(vec![append]).await.unwrap();
        }
        assert_eq!(store.integrity().await.unwrap(), [""; 0]);
        let db = Connection::open(scene.path()).unwrap();
        assert!(db.execute(sql, []).unwrap() > 0, "{sql}");
        let faults = store.integrity().await.unwrap();
        assert!(
            faults.iter().any(|found| found.contains(fault)),
            "{sql}: {faults:?}"
        );
    }
}

/// A database as the release before the batches made it: `count` entries with keys, in two runs.
fn old_database(scene: &Scene, count: u64) -> Vec<Chain> {
    let db = Connection::open(scene.path()).unwrap();
    for script in [
        include_str!("../../migrations/sqlite/0001_journal.sql"),
        include_str!("../../migrations/sqlite/0002_feed.sql"),
        include_str!("../../migrations/sqlite/0003_access.sql"),
        include_str!("../../migrations/sqlite/0004_notices.sql"),
        include_str!("../../migrations/sqlite/0005_answers.sql"),
        include_str!("../../migrations/sqlite/0006_standing.sql"),
    ] {
        db.execute_batch(script).unwrap();
    }
    db.pragma_update(None, "user_version", 6).unwrap();
    let mut chains = vec![Chain::of("run/a"), Chain::of("run/b")];
    for (id, chain) in (1_i64..).zip(&chains) {
        let sql =
            "INSERT INTO streams (id, name, kind, plan, status, label, created_at, updated_at)
                   VALUES (?1, ?2, 'run', 'p', 'any', '', 0, 0)";
        db.execute(sql, params![id, chain.stream.to_string()])
            .unwrap();
    }
    for ordinal in 1..=count {
        let which = usize::try_from(ordinal % 2).unwrap();
        let append = keyed(&mut chains[which], &format!("key {ordinal}"));
        let Record {
            seq,
            epoch,
            key,
            body,
            hash,
            ..
        } = &append.records[0];
        let position = ((which as i64 + 1) << 32) | i64::try_from(*seq).unwrap();
        let sql = "INSERT INTO entries (position, at, epoch, ordinal, hash, key, body)
                   VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6)";
        db.execute(
            sql,
            params![position, epoch, ordinal, hash.as_bytes(), key, body],
        )
        .unwrap();
    }
    chains
}

async fn assert_whole(store: &SqliteStore, chains: &[Chain], count: u64) {
    assert_eq!(positions(store).await, (1..=count).collect::<Vec<_>>());
    for chain in chains {
        let records = store.read(&chain.stream, 0, 1_000).await.unwrap();
        check_chain(Head::EMPTY, &chain.stream, &records).unwrap();
        assert_eq!(records, chain.records);
    }
    assert_eq!(store.integrity().await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_store_with_indexes_in_the_journal_is_brought_up_to_date() {
    for count in [0, 1, MANY] {
        let scene = Scene::new();
        let mut chains = old_database(&scene, count);
        let store = scene.open();
        assert_whole(&store, &chains, count).await;
        if count > 0 {
            let again = keyed(&mut chains[1].clone(), "key 1");
            let refused = store.append(vec![again]).await;
            assert!(
                matches!(refused, Err(AppendError::Duplicate { .. })),
                "{refused:?}"
            );
        }
        store
            .append(vec![keyed(&mut chains[1], "next")])
            .await
            .unwrap();
        assert_whole(&store, &chains, count + 1).await;
    }
}

#[test]
#[ignore = "another test starts it, in a process of its own"]
fn child_that_opens() {
    let Some(path) = told_path() else { return };
    drop(SqliteStore::open(&path).unwrap());
}

#[tokio::test]
async fn a_store_whose_update_was_killed_is_as_it_was_and_is_updated_by_the_next() {
    let scene = Scene::new();
    let chains = old_database(&scene, MANY);
    let log = scene.directory.path().join("log");
    let mut command = child("entry_index::child_that_opens", &scene.path());
    command.env("PLANWRIGHT_CRASH_AT", "1");
    command.env("PLANWRIGHT_CRASH_LOG", &log);
    assert!(!command.output().unwrap().status.success());
    let point = std::fs::read_to_string(log).unwrap();
    assert_eq!(point.trim(), "1 store: before the new schema is committed");
    let db = Connection::open(scene.path()).unwrap();
    let version: i64 = db
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 6);
    assert_eq!(indexes_of(&db), ["entries_by_key", "entries_by_ordinal"]);
    drop(db);
    assert_whole(&scene.open(), &chains, MANY).await;
}

fn indexes_of(db: &Connection) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'entries' ORDER BY name";
    let mut statement = db.prepare(sql).unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.collect::<Result<_, _>>().unwrap()
}
