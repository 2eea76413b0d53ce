//! Appends of a run that goes on by itself: each is one statement and one commit, and the laws are the same.

use crate::chains::Chain;
use crate::databases::Database;
use planwright_adapters::postgres::{Location, PostgresStore};
use planwright_core::journal::{Head, check_chain};
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    Append, AppendError, FeedOf, Journal as _, LeaseRule, Position, RetainError,
    RetentionStore as _, StoreError,
};
use planwright_testing::postgres::server;
use planwright_testing::proxy::{CommitCut, Proxy};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

const HELD: LeaseRule = LeaseRule::Held { epoch: 1 };

/// Appends after which the connection for them is there at the latest.
const SOON: usize = 500;

pub(crate) fn held(append: Append) -> Append {
    Append {
        lease: HELD,
        ..append
    }
}

/// Transactions of the writers leave marks, and appends that are one statement leave none.
pub(crate) const MARKS: &str = "SELECT count(*) FROM planwright.commit_marks";

fn marks(database: &Database) -> String {
    database.sql(MARKS)
}

/// Opens a run, and appends to it until that needs no transaction of the writers.
async fn warm_up(store: &PostgresStore, database: &Database) -> Chain {
    warm_up_by(store, || marks(database)).await
}

/// The same where `marks` counts the marks.
pub(crate) async fn warm_up_by(store: &PostgresStore, marks: impl Fn() -> String) -> Chain {
    warm_up_run(store, "run/r", marks).await
}

async fn warm_up_run(store: &PostgresStore, run: &str, marks: impl Fn() -> String) -> Chain {
    let mut chain = Chain::of(run);
    chain.open(store, "opened").await;
    for turn in 0..SOON {
        let before = marks();
        store
            .append(vec![held(chain.grow(&turn.to_string()))])
            .await
            .unwrap();
        if marks() == before {
            return chain;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the writers are still needed after {SOON} appends");
}

async fn check_journal(store: &PostgresStore, chain: &Chain) {
    let records = store.read(&chain.stream, 0, 10_000).await.unwrap();
    assert_eq!(records, chain.records);
    check_chain(Head::EMPTY, &chain.stream, &records).unwrap();
    assert_eq!(store.head(&chain.stream).await.unwrap(), chain.head);
}

async fn goes_on_alone(store: PostgresStore, database: Database) {
    let mut chain = warm_up(&store, &database).await;
    let before = marks(&database);
    for turn in 0..20 {
        let key = format!("key-{turn}");
        let body = format!("body-{turn}");
        let mut append = held(chain.grow_keyed(Some(&key), &body));
        // Several records are one statement too.
        append.records.extend(chain.grow("and another").records);
        store.append(vec![append]).await.unwrap();
    }
    assert_eq!(marks(&database), before, "a writer was needed");
    check_journal(&store, &chain).await;
    let all = store.feed(&FeedOf::All, Position(0), 10_000).await.unwrap();
    let seqs: Vec<u64> = all.iter().map(|placed| placed.record.seq).collect();
    assert_eq!(seqs, (1..=chain.head.seq).collect::<Vec<_>>());
    let places: Vec<u64> = all.iter().map(|placed| placed.position.0).collect();
    assert_eq!(places, (1..=chain.head.seq).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_run_that_goes_on_by_itself_needs_one_statement_per_append() {
    let database = Database::new();
    goes_on_alone(database.open(), database).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_does_one_in_an_encrypted_store() {
    let database = Database::new();
    goes_on_alone(database.open_sealed(), database).await;
}

#[tokio::test]
async fn what_is_not_written_is_refused_for_its_reason() {
    let database = Database::new();
    let store = database.open();
    let mut chain = warm_up(&store, &database).await;
    store
        .append(vec![held(chain.grow_keyed(Some("taken"), "body"))])
        .await
        .unwrap();

    let duplicate = held(chain.clone().grow_keyed(Some("taken"), "again"));
    let refused = store.append(vec![duplicate]).await;
    assert!(
        matches!(&refused, Err(AppendError::Duplicate { key, .. }) if key == "taken"),
        "{refused:?}"
    );

    let mut other = chain.clone();
    store.append(vec![held(chain.grow("first"))]).await.unwrap();
    let refused = store.append(vec![held(other.grow("second"))]).await;
    assert!(
        matches!(&refused, Err(AppendError::Conflict { found, .. }) if *found == chain.head),
        "{refused:?}"
    );

    let stale = Append {
        lease: LeaseRule::Held { epoch: 7 },
        ..chain.clone().grow("stale")
    };
    let refused = store.append(vec![stale]).await;
    assert!(
        matches!(
            refused,
            Err(AppendError::Fenced {
                ours: 7,
                found: 1,
                ..
            })
        ),
        "{refused:?}"
    );

    // The connection is as good as before.
    let before = marks(&database);
    store.append(vec![held(chain.grow("after"))]).await.unwrap();
    assert_eq!(marks(&database), before, "a writer was needed");

    database.sql("UPDATE planwright.streams SET sealed_at = 1");
    let refused = store.append(vec![held(chain.clone().grow("sealed"))]).await;
    assert!(
        matches!(refused, Err(AppendError::Store(StoreError::Sealed { .. }))),
        "{refused:?}"
    );
    check_journal(&store, &chain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_after_another_process_took_the_run() {
    let database = Database::new();
    let store = Arc::new(database.open());
    for turn in 0..5 {
        let mut chain = Chain::of(&format!("run/r{turn}"));
        chain.open(&store, "opened").await;
        let writing = {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                loop {
                    if let Err(error) = store.append(vec![held(chain.grow("body"))]).await {
                        return (chain, error);
                    }
                }
            })
        };
        tokio::time::sleep(Duration::from_millis(100)).await;
        let sql = format!(
            "UPDATE planwright.leases SET epoch = 2 WHERE run = 'r{turn}'; \
             SELECT count(*) FROM planwright.entries AS e JOIN planwright.streams AS s ON s.id = e.stream \
             WHERE s.name = 'run/r{turn}'"
        );
        let seen: usize = database.sql(&sql).parse().unwrap();
        let (chain, error) = writing.await.unwrap();
        assert!(
            matches!(
                error,
                AppendError::Fenced {
                    ours: 1,
                    found: 2,
                    ..
                }
            ),
            "{error}"
        );
        let records = store.read(&chain.stream, 0, 100_000).await.unwrap();
        assert_eq!(
            records.len(),
            seen,
            "the new owner has not seen all entries"
        );
        assert_eq!(records[..], chain.records[..seen]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_to_a_journal_that_another_process_closed() {
    let database = Database::new();
    let store = Arc::new(database.open());
    let other = database.open();
    for turn in 0..5 {
        let run = format!("run/r{turn}");
        let mut chain = warm_up_run(&store, &run, || marks(&database)).await;
        let stream = chain.stream.clone();
        let writing = {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                loop {
                    for _ in 0..5 {
                        if let Err(error) = store.append(vec![held(chain.grow("body"))]).await {
                            return (chain, error);
                        }
                    }
                    // A run that never rests is never closed.
                    tokio::time::sleep(Duration::from_millis(3)).await;
                }
            })
        };
        // It closes nothing that has grown meanwhile.
        let sealed = loop {
            let head = other.head(&stream).await.unwrap();
            match other.seal(&stream, head, Timestamp::from_millis(1)).await {
                Ok(sealed) => break sealed,
                Err(RetainError::Changed(_)) => {}
                Err(error) => panic!("{error}"),
            }
        };
        let (chain, error) = writing.await.unwrap();
        assert!(
            matches!(
                error,
                AppendError::Fenced { .. } | AppendError::Store(StoreError::Sealed { .. })
            ),
            "{error}"
        );
        assert_eq!(store.head(&stream).await.unwrap(), sealed.head);
        let records = store.read(&stream, 0, 100_000).await.unwrap();
        assert_eq!(records[..], chain.records[..records.len()]);
        assert_eq!(records.len() + 1, chain.records.len(), "one was refused");
    }
}

/// What a connection knows about a journal is what it left there itself.
#[tokio::test]
async fn a_journal_that_others_appended_to_is_looked_at_again() {
    let database = Database::new();
    let store = database.open();
    let other = database.open();
    let mut chain = warm_up(&store, &database).await;
    for turn in 0..20 {
        let body = turn.to_string();
        other.append(vec![held(chain.grow(&body))]).await.unwrap();
        let before = marks(&database);
        for _ in 0..3 {
            store.append(vec![held(chain.grow(&body))]).await.unwrap();
        }
        assert_eq!(marks(&database), before, "a writer was needed");
    }
    // A server that has lost entries is not appended to behind the gap.
    let lost = chain.clone();
    store.append(vec![held(chain.grow("lost"))]).await.unwrap();
    let sql = format!(
        "DELETE FROM planwright.entries WHERE seq = {}",
        chain.head.seq
    );
    database.sql(&sql);
    drop((store, other));
    let fresh = database.open();
    let found = warm_up_run(&fresh, "run/r2", || marks(&database)).await;
    assert_eq!(fresh.head(&found.stream).await.unwrap(), found.head);
    let refused = fresh.append(vec![held(chain.grow("behind"))]).await;
    assert!(
        matches!(&refused, Err(AppendError::Conflict { found, .. }) if *found == lost.head),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_append_the_same_at_once_one_is_refused() {
    let database = Database::new();
    let stores = [(); 2].map(|()| Arc::new(database.open()));
    let mut chain = warm_up(&stores[0], &database).await;
    for turn in 0..300 {
        let bodies = [format!("a{turn}"), format!("b{turn}")];
        let tried = [0, 1].map(|number| {
            let mut tried = chain.clone();
            let append = held(tried.grow(&bodies[number]));
            let store = Arc::clone(&stores[number]);
            (
                tried,
                tokio::spawn(async move { store.append(vec![append]).await }),
            )
        });
        let mut won = Vec::new();
        for (tried, done) in tried {
            match done.await.unwrap() {
                Ok(()) => won.push(tried),
                Err(AppendError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(won.len(), 1, "turn {turn}");
        chain = won.remove(0);
    }
    check_journal(&stores[1], &chain).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_outcome_of_an_interrupted_append_is_settled() {
    let database = Database::new();
    let proxy = Proxy::start(server().port());
    let port = server().port();
    let url = database
        .url()
        .replace(&format!(":{port}/"), &format!(":{}/", proxy.port()));
    let store = PostgresStore::open(Location::parse(&url, None).unwrap(), true).unwrap();
    let mut chain = warm_up(&store, &database).await;
    let mut cuts = 0;
    for cut in [CommitCut::After, CommitCut::Before].repeat(5) {
        proxy.cut_next_commit(cut);
        cuts += 1;
        // Once: what was committed is not taken for a conflict, and what was not is written again.
        store.append(vec![held(chain.grow("body"))]).await.unwrap();
        assert_eq!(proxy.cuts(), cuts, "nothing was cut");
        check_journal(&store, &chain).await;
        // A new connection is made for the next one.
        for _ in 0..SOON {
            let before = marks(&database);
            store.append(vec![held(chain.grow("more"))]).await.unwrap();
            if marks(&database) == before {
                break;
            }
        }
    }
}

#[tokio::test]
async fn an_append_whose_caller_goes_away_is_written_or_not() {
    let database = Database::new();
    let store = database.open();
    let mut chain = warm_up(&store, &database).await;
    let mut left = 0;
    for _ in 0..20 {
        let mut gone = chain.clone();
        let append = held(gone.grow("gone"));
        let mut appending = store.append(vec![append]);
        // On a busy machine the server may have answered by the time that it is looked at.
        if let Poll::Ready(written) = futures::poll!(&mut appending) {
            written.unwrap();
            chain = gone;
            continue;
        }
        drop(appending);
        left += 1;
        // It may still be on its way.
        loop {
            let mut tried = chain.clone();
            match store.append(vec![held(tried.grow("next"))]).await {
                Ok(()) => break chain = tried,
                Err(AppendError::Conflict { found, .. }) => {
                    assert_eq!(found, gone.head);
                    chain = gone.clone();
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(left > 0, "no caller went away in the middle");
    check_journal(&store, &chain).await;
}

#[test]
fn a_runtime_that_is_gone_leaves_no_connection_that_is_waited_for() {
    let database = Database::new();
    let store = database.open();
    for run in ["run/r1", "run/r2"] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let chain = warm_up_run(&store, run, || marks(&database)).await;
            check_journal(&store, &chain).await;
        });
    }
}
