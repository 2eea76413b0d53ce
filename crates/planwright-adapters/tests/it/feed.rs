//! The order of commits: shared by processes, and given to databases that are older than it.

use crate::scene::{Chain, Scene};
use crate::sharing::{child, told_path};
use planwright_adapters::sqlite::SqliteStore;
use planwright_core::journal::{Head, Record, StreamName, check_chain};
use planwright_core::time::Timestamp;
use planwright_engine::port::{FeedOf, Journal as _, Placed, Position};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;

const APPENDS: usize = 60;

#[tokio::test]
#[ignore = "another test starts it, in a process of its own"]
async fn child_that_writes_a_run() {
    let Some(path) = told_path() else { return };
    let store = SqliteStore::open(&path).unwrap();
    let mut chain = Chain::of(&format!("run/r{}", std::process::id()));
    for _ in 0..APPENDS {
        chain.put(&store, "by a child").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_write_at_once_share_one_order() {
    let scene = Scene::new();
    let store = scene.open();
    let spawn = || {
        child("feed::child_that_writes_a_run", &scene.path())
            .spawn()
            .unwrap()
    };
    let mut children = [spawn(), spawn()];
    let mut own = Chain::of("run/own");
    let mut followed = Vec::new();
    for _ in 0..APPENDS {
        own.put(&store, "by the parent").await;
        follow(&store, &mut followed).await;
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    follow(&store, &mut followed).await;
    let positions: Vec<_> = followed.iter().map(|placed| placed.position.0).collect();
    assert_eq!(positions, (1..=3 * APPENDS as u64).collect::<Vec<_>>());
    assert_eq!(
        followed,
        scene
            .open()
            .feed(&FeedOf::All, Position(0), usize::MAX)
            .await
            .unwrap()
    );
    let mut streams = BTreeMap::<_, Vec<_>>::new();
    for placed in followed {
        streams
            .entry(placed.stream)
            .or_default()
            .push(placed.record);
    }
    assert_eq!(streams.len(), 3);
    for (stream, records) in streams {
        assert_eq!(records.len(), APPENDS);
        check_chain(Head::EMPTY, &stream, &records).unwrap();
    }
}

async fn follow(store: &SqliteStore, followed: &mut Vec<Placed>) {
    loop {
        let after = followed
            .last()
            .map_or(Position(0), |placed| placed.position);
        let page = store.feed(&FeedOf::All, after, 5).await.unwrap();
        if page.is_empty() {
            return;
        }
        followed.extend(page);
    }
}

/// A database as the first release made it, with these entries: stream, time and body.
fn old_database(scene: &Scene, entries: &[(&str, i64, &str)]) {
    let db = Connection::open(scene.path()).unwrap();
    db.execute_batch(include_str!("../../migrations/sqlite/0001_journal.sql"))
        .unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    let mut heads = BTreeMap::<StreamName, (i64, Head)>::new();
    for (name, at, body) in entries {
        let stream: StreamName = name.parse().unwrap();
        let next = heads.len() as i64 + 1;
        let (id, head) = heads.entry(stream.clone()).or_insert((next, Head::EMPTY));
        if head.seq == 0 {
            let sql =
                "INSERT INTO streams (id, name, kind, plan, status, label, created_at, updated_at)
                       VALUES (?1, ?2, ?3, 'p', 'any', '', 0, 0)";
            let kind = name.split('/').next();
            db.execute(sql, params![*id, name, kind]).unwrap();
        }
        let at = Timestamp::from_millis(*at);
        let record = Record::after(
            *head,
            &stream,
            at,
            1,
            Some(format!("key {body}")),
            body.as_bytes().to_vec(),
        );
        let sql = "INSERT INTO entries (position, at, epoch, hash, key, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let Record {
            seq,
            epoch,
            key,
            body,
            hash,
            ..
        } = &record;
        let position = (*id << 32) | i64::try_from(*seq).unwrap();
        db.execute(
            sql,
            params![position, at.as_millis(), epoch, hash.as_bytes(), key, body],
        )
        .unwrap();
        *head = record.head();
    }
}

#[tokio::test]
async fn entries_older_than_the_order_are_ordered_by_time() {
    let scene = Scene::new();
    old_database(
        &scene,
        &[
            ("plan/p", 10, "proposed"),
            ("run/r", 20, "started"),
            ("plan/p", 20, "opened"),
            ("run/r", 40, "late"),
            // The clock went back.
            ("run/r", 30, "later"),
            ("plan/p", 35, "between"),
        ],
    );
    let store = scene.open();
    let found = store.feed(&FeedOf::All, Position(0), 100).await.unwrap();
    let bodies: Vec<_> = found
        .iter()
        .map(|placed| String::from_utf8(placed.record.body.clone()).unwrap())
        .collect();
    assert_eq!(
        bodies,
        ["proposed", "opened", "started", "between", "late", "later"]
    );
    let positions: Vec<_> = found.iter().map(|placed| placed.position.0).collect();
    assert_eq!(positions, [1, 2, 3, 4, 5, 6]);
    let plan = FeedOf::Plan("p".parse().unwrap());
    assert_eq!(store.feed(&plan, Position(0), 100).await.unwrap(), found);
    for name in ["plan/p", "run/r"] {
        let stream = name.parse().unwrap();
        let records = store.read(&stream, 0, 100).await.unwrap();
        assert_eq!(records.len(), 3);
        check_chain(Head::EMPTY, &stream, &records).unwrap();
    }
    assert!(store.integrity().await.unwrap().is_empty());
    let mut chain = Chain::of("plan/other");
    chain.put(&store, "next").await;
    assert_eq!(
        store.feed(&FeedOf::All, Position(6), 100).await.unwrap()[0].position,
        Position(7)
    );
}

#[test]
fn the_journal_of_an_old_database_is_still_never_rewritten() {
    let scene = Scene::new();
    old_database(&scene, &[("plan/p", 10, "proposed")]);
    drop(scene.open());
    let db = Connection::open(scene.path()).unwrap();
    for sql in ["UPDATE entries SET ordinal = 7", "DELETE FROM entries"] {
        let error = db.execute(sql, []).unwrap_err().to_string();
        assert!(error.contains("the journal is never"), "{sql}: {error}");
    }
}
