//! Servers that restart and connections that break in the middle of a commit.

use crate::databases::{Database, open};
use planwright_adapters::postgres::{Location, PostgresStore};
use planwright_core::id::RunId;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    Append, AppendError, Journal as _, Lease, LeaseRule, Leases as _, Mailbox as _, OwnerId,
};
use planwright_testing::postgres::{Server, server};
use planwright_testing::proxy::{CommitCut, Proxy};
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn next(stream: &StreamName, head: Head, body: &str) -> Append {
    let at = Timestamp::from_millis(1);
    let record = Record::after(head, stream, at, 1, None, body.as_bytes().to_vec());
    Append {
        stream: stream.clone(),
        expected: head,
        records: vec![record],
        lease: LeaseRule::None,
        status: None,
        answers: Vec::new(),
        requests: Vec::new(),
        brought: Vec::new(),
        offers: Vec::new(),
    }
}

/// Appends and tries again for as long as the store says that nothing was written, as the engine does.
pub(crate) async fn append(store: &PostgresStore, append: Append) {
    loop {
        match store.append(vec![append.clone()]).await {
            Ok(()) => return,
            Err(AppendError::Store(error)) if error.may_pass() => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashes_loses_and_doubles_nothing() {
    let server = Arc::new(Server::start());
    server.create_database("plans");
    let store = Arc::new(open(&server, "plans"));
    let restarting = {
        let server = Arc::clone(&server);
        std::thread::spawn(move || {
            for _ in 0..3 {
                std::thread::sleep(std::time::Duration::from_millis(300));
                server.stop();
                server.resume();
            }
        })
    };
    let writers = (0..4).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let stream: StreamName = format!("plan/p{number}").parse().unwrap();
            let mut head = Head::EMPTY;
            let mut written = 0;
            while written < 20 {
                let record = next(&stream, head, &written.to_string());
                head = record.records[0].head();
                append(&store, record).await;
                written += 1;
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            (stream, head, written)
        })
    });
    let writers: Vec<_> = writers.collect();
    for writer in writers {
        let (stream, head, written) = writer.await.unwrap();
        assert_eq!(store.head(&stream).await.unwrap(), head);
        let records = store.read(&stream, 0, 1000).await.unwrap();
        assert_eq!(records.len(), written);
    }
    restarting.join().unwrap();
}

pub(crate) fn through(proxy: &Proxy, database: &Database) -> PostgresStore {
    let port = server().port();
    let url = database
        .url()
        .replace(&format!(":{port}/"), &format!(":{}/", proxy.port()));
    PostgresStore::open(Location::parse(&url, None).unwrap(), true).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_outcome_of_an_interrupted_commit_is_looked_up() {
    let database = Database::new();
    let proxy = Proxy::start(server().port());
    let store = through(&proxy, &database);
    let stream: StreamName = "plan/p".parse().unwrap();
    let mut head = Head::EMPTY;
    for turn in 0..10 {
        let cuts = [CommitCut::After, CommitCut::Before];
        proxy.cut_next_commit(cuts[turn % 2]);
        let record = next(&stream, head, &turn.to_string());
        head = record.records[0].head();
        // Once: what was committed is not taken for a conflict, and what was not is written again.
        store.append(vec![record]).await.unwrap();
        assert_eq!(proxy.cuts(), turn + 1, "nothing was cut");
    }
    let records = store.read(&stream, 0, 100).await.unwrap();
    assert_eq!(records.len(), 10);
    assert_eq!(store.head(&stream).await.unwrap(), head);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_sent_once_though_the_connection_breaks() {
    let database = Database::new();
    let proxy = Proxy::start(server().port());
    let store = through(&proxy, &database);
    let run = "r".parse().unwrap();
    for cut in [CommitCut::After, CommitCut::Before, CommitCut::After] {
        proxy.cut_next_commit(cut);
        store.send(&run, b"pause".to_vec()).await.unwrap();
    }
    assert_eq!(proxy.cuts(), 3);
    assert_eq!(store.messages(&run).await.unwrap().len(), 3);
}

async fn acquire(store: &PostgresStore, run: &RunId) -> Lease {
    let owner = OwnerId("owner".to_owned());
    let ttl = Duration::from_secs(600);
    store.acquire(run, &owner, ttl).await.unwrap()
}

/// Begun without a row and with one, by their texts and prepared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_taken_once_though_the_connection_breaks() {
    const TURNS: usize = 8;
    let database = Database::new();
    let proxy = Proxy::start(server().port());
    let store = through(&proxy, &database);
    let run: RunId = "r".parse().unwrap();
    append(
        &store,
        next(&"run/r".parse().unwrap(), Head::EMPTY, "opened"),
    )
    .await;
    // The owner shows that it is alive with its first lease.
    append(
        &store,
        next(&"run/q".parse().unwrap(), Head::EMPTY, "opened"),
    )
    .await;
    acquire(&store, &"q".parse().unwrap()).await;
    let cuts = [CommitCut::After, CommitCut::Before];
    let mut epoch = 0;
    for turn in 0..TURNS {
        if turn >= TURNS / 2 {
            for _ in 0..6 {
                epoch += 1;
                let lease = acquire(&store, &run).await;
                assert_eq!(lease.epoch, epoch);
                store.release(&lease).await.unwrap();
            }
        }
        proxy.cut_next_commit(cuts[turn % 2]);
        epoch += 1;
        let lease = acquire(&store, &run).await;
        assert_eq!(proxy.cuts(), turn + 1, "nothing was cut");
        assert_eq!(lease.epoch, epoch);
        assert_eq!(store.lease(&run).await.unwrap(), Some(lease.clone()));
        store.release(&lease).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_looked_up_stays_true_when_the_answer_to_the_look_gets_lost_too() {
    let database = Database::new();
    let proxy = Proxy::start(server().port());
    let store = through(&proxy, &database);
    let stream: StreamName = "plan/p".parse().unwrap();
    let mut head = Head::EMPTY;
    for (turn, first) in [CommitCut::Before, CommitCut::After]
        .into_iter()
        .enumerate()
    {
        proxy.cut_next_commit(first);
        // The commits of the looks.
        proxy.cut_next_commit(CommitCut::After);
        proxy.cut_next_commit(CommitCut::Before);
        let record = next(&stream, head, &turn.to_string());
        head = record.records[0].head();
        store.append(vec![record]).await.unwrap();
        assert_eq!(proxy.cuts(), 3 * (turn + 1), "nothing was cut");
        assert_eq!(store.head(&stream).await.unwrap(), head);
    }
}
