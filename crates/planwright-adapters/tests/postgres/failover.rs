//! A primary that dies, and one that does not know that another has taken its place.

use crate::alone::{MARKS, held, warm_up_by};
use crate::faults::{append, next};
use planwright_adapters::postgres::{Location, PostgresStore};
use planwright_core::journal::{Head, StreamName};
use planwright_engine::port::Journal as _;
use planwright_testing::postgres::{Server, ServerPair};
use planwright_testing::wait::wait_until;
use std::sync::Arc;

fn open(url: &str) -> PostgresStore {
    PostgresStore::open(Location::parse(url, None).unwrap(), true).unwrap()
}

fn start() -> ServerPair {
    let pair = ServerPair::start();
    pair.primary().create_database("plans");
    pair
}

/// Ends the wait of commits for a standby, as an operator might: the server then answers them as if it had confirmed them.
fn cancel_waits(server: &Server) {
    let sql =
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    wait_until("a commit that waits for the standby", || {
        server.sql("plans", sql) != "0"
    });
}

fn entries(server: &Server) -> String {
    server.sql("plans", "SELECT count(*) FROM planwright.entries")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_answered_is_lost_when_a_standby_takes_over() {
    let pair = Arc::new(start());
    let store = Arc::new(open(&pair.url("plans")));
    let (written, mut progress) = tokio::sync::watch::channel(0);
    let writers: Vec<_> = (0..4)
        .map(|number| {
            let (store, written) = (Arc::clone(&store), written.clone());
            tokio::spawn(async move {
                let stream: StreamName = format!("plan/p{number}").parse().unwrap();
                let mut head = Head::EMPTY;
                for turn in 0..200 {
                    let record = next(&stream, head, &turn.to_string());
                    head = record.records[0].head();
                    append(&store, record).await;
                    written.send_modify(|count| *count += 1);
                }
                (stream, head)
            })
        })
        .collect();
    for turn in 1..=2 {
        progress
            .wait_for(|count| *count >= 150 * turn)
            .await
            .unwrap();
        let pair = Arc::clone(&pair);
        let failing = tokio::task::spawn_blocking(move || {
            pair.fail_over();
            // The second failover leads back to where the first server was.
            pair.rejoin();
        });
        failing.await.unwrap();
    }
    for writer in writers {
        let (stream, head) = writer.await.unwrap();
        assert_eq!(store.head(&stream).await.unwrap(), head);
        let records = store.read(&stream, 0, 1000).await.unwrap();
        assert_eq!(records.len(), 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_was_replaced_and_does_not_know_it_is_not_believed() {
    let pair = start();
    let store = Arc::new(open(&pair.url("plans")));
    let stream: StreamName = "plan/p".parse().unwrap();
    let first = next(&stream, Head::EMPTY, "first");
    let head = first.records[0].head();
    append(&store, first).await;
    pair.promote_standby();
    let (replaced, primary) = (pair.standby(), pair.primary());
    let second = next(&stream, head, "second");
    let head = second.records[0].head();
    let appending = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { append(&store, second).await })
    };
    cancel_waits(replaced);
    appending.await.unwrap();
    // It is shown where it counts for nothing, and written where it counts.
    assert_eq!(entries(replaced), "2");
    assert_eq!(entries(primary), "2");
    assert_eq!(store.head(&stream).await.unwrap(), head);
    let third = next(&stream, head, "third");
    append(&store, third).await;
    assert_eq!(
        (entries(replaced), entries(primary)),
        ("2".into(), "3".into())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_is_it_believed_about_an_append_that_is_one_statement() {
    let pair = start();
    let store = Arc::new(open(&pair.url("plans")));
    let mut chain = warm_up_by(&store, || pair.primary().sql("plans", MARKS)).await;
    pair.promote_standby();
    let (replaced, primary) = (pair.standby(), pair.primary());
    let append = held(chain.grow("not confirmed"));
    let appending = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.append(vec![append]).await })
    };
    cancel_waits(replaced);
    appending.await.unwrap().unwrap();
    let written = chain.records.len().to_string();
    assert_eq!(
        (entries(replaced), entries(primary)),
        (written.clone(), written)
    );
    assert_eq!(store.head(&chain.stream).await.unwrap(), chain.head);
    store.append(vec![held(chain.grow("after"))]).await.unwrap();
    assert_eq!(entries(primary), chain.records.len().to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_no_standby_confirms_is_not_answered() {
    let pair = start();
    let store = Arc::new(open(&pair.primary().url("plans")));
    let stream: StreamName = "plan/p".parse().unwrap();
    pair.promote_standby();
    let replaced = pair.standby();
    let appending = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            store
                .append(vec![next(&stream, Head::EMPTY, "first")])
                .await
        })
    };
    // The append, and then what looks for its outcome: both are shown to all, and neither is durable.
    for _ in 0..3 {
        cancel_waits(replaced);
    }
    wait_until("another look", || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        replaced.sql("plans", sql) != "0"
    });
    assert!(!appending.is_finished());
    // Its operator says that it may go on alone: then what was written counts.
    let sql = "ALTER SYSTEM SET synchronous_standby_names = ''";
    replaced.sql("postgres", sql);
    replaced.sql("postgres", "SELECT pg_reload_conf()");
    appending.await.unwrap().unwrap();
    assert_eq!(entries(replaced), "1");
}
