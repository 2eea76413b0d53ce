//! Several processes on one database: this test program starts itself again.

use crate::databases::Database;
use planwright_adapters::postgres::{Location, PostgresStore};
use planwright_core::journal::{Head, Record, StreamName, check_chain};
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    Append, AppendError, FeedOf, Journal as _, LeaseRule, Leases as _, OwnerId, Placed, Position,
};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);
const PROCESSES: usize = 8;

/// Appends of each process. A variable asks for more.
fn appends() -> usize {
    let asked = std::env::var("PLANWRIGHT_POSTGRES_APPENDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(100)
}

/// Starts this program again to do one thing.
fn start(role: &str, database: &Database, number: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", role, "--nocapture", "--ignored"])
        .env("PLANWRIGHT_POSTGRES_CHILD", database.url())
        .env("PLANWRIGHT_POSTGRES_NUMBER", number.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The store and the number of a process that a test started.
fn child() -> (PostgresStore, usize) {
    let url = std::env::var("PLANWRIGHT_POSTGRES_CHILD").unwrap();
    let number = std::env::var("PLANWRIGHT_POSTGRES_NUMBER").unwrap();
    let location = Location::parse(&url, None).unwrap();
    let store = PostgresStore::open(location, true).unwrap();
    (store, number.parse().unwrap())
}

fn append(stream: &StreamName, head: Head, epoch: u64, body: &[u8], lease: LeaseRule) -> Append {
    let at = Timestamp::from_millis(1);
    Append {
        stream: stream.clone(),
        expected: head,
        records: vec![Record::after(head, stream, at, epoch, None, body.to_vec())],
        lease,
        status: None,
        answers: Vec::new(),
        requests: Vec::new(),
        brought: Vec::new(),
        offers: Vec::new(),
    }
}

fn head_after(append: &Append) -> Head {
    append.records.last().unwrap().head()
}

#[tokio::test]
#[ignore = "another test starts it, in a process of its own"]
async fn one_of_many_writers() {
    let (store, number) = child();
    let run: StreamName = format!("run/r{number}").parse().unwrap();
    let shared: StreamName = "plan/shared".parse().unwrap();
    let owner = OwnerId(format!("process-{number}"));
    let opened = append(
        &run,
        Head::EMPTY,
        1,
        b"opened",
        LeaseRule::Open { owner, ttl: LONG },
    );
    let mut head = head_after(&opened);
    store.append(vec![opened]).await.unwrap();
    for turn in 0..appends() {
        // Commits of very different lengths, so that they overtake each other.
        let length = if turn % 10 == number { 30_000 } else { 40 };
        let held = LeaseRule::Held { epoch: 1 };
        let own = append(&run, head, 1, &vec![b'x'; length], held);
        head = head_after(&own);
        store.append(vec![own]).await.unwrap();
        if turn % 10 == 0 {
            let stale = append(&run, head, 9, b"stale", LeaseRule::Held { epoch: 9 });
            let refused = store.append(vec![stale]).await;
            assert!(
                matches!(refused, Err(AppendError::Fenced { .. })),
                "{refused:?}"
            );
            compete(&store, &shared, number).await;
        }
    }
}

/// Appends to a stream that every process writes to.
async fn compete(store: &PostgresStore, shared: &StreamName, number: usize) {
    loop {
        let head = store.head(shared).await.unwrap();
        let body = format!("by {number}");
        let appended = store
            .append(vec![append(
                shared,
                head,
                0,
                body.as_bytes(),
                LeaseRule::None,
            )])
            .await;
        match appended {
            Ok(()) => return,
            Err(AppendError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn eight_processes_append_and_a_reader_of_the_feed_misses_nothing() {
    let database = Database::new();
    let store = database.open();
    let mut children: Vec<Child> = (0..PROCESSES)
        .map(|number| start("processes::one_of_many_writers", &database, number))
        .collect();
    let competed = appends().div_ceil(10);
    let expected = PROCESSES * (1 + appends() + competed);
    let mut found: Vec<Placed> = Vec::new();
    while found.len() < expected {
        let ended = children
            .iter_mut()
            .all(|child| child.try_wait().unwrap().is_some());
        let after = found.last().map_or(Position(0), |placed| placed.position);
        let page = store.feed(&FeedOf::All, after, 17).await.unwrap();
        assert!(
            !ended || !page.is_empty(),
            "the feed ends at {}",
            found.len()
        );
        found.extend(page);
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    // Nothing missed, nothing doubled, nothing out of order.
    let positions: Vec<u64> = found.iter().map(|placed| placed.position.0).collect();
    assert_eq!(positions, (1..=expected as u64).collect::<Vec<_>>());
    let mut streams: BTreeMap<StreamName, Vec<Record>> = BTreeMap::new();
    for Placed { stream, record, .. } in found {
        streams.entry(stream).or_default().push(record);
    }
    assert_eq!(streams.len(), PROCESSES + 1);
    for (stream, records) in streams {
        check_chain(Head::EMPTY, &stream, &records).unwrap();
        let head = records.last().unwrap().head();
        assert_eq!(store.head(&stream).await.unwrap(), head);
    }
}

#[tokio::test]
#[ignore = "another test starts it, in a process of its own"]
async fn an_owner_that_is_killed() {
    let (store, _) = child();
    let run: StreamName = "run/r".parse().unwrap();
    let owner = OwnerId("doomed".to_owned());
    let open = LeaseRule::Open { owner, ttl: LONG };
    let opened = append(&run, Head::EMPTY, 1, b"opened", open);
    store.append(vec![opened]).await.unwrap();
    println!("ready");
    tokio::time::sleep(LONG).await;
}

#[tokio::test]
async fn the_runs_of_a_process_that_was_killed_are_taken_over_without_waiting_for_its_lease() {
    let database = Database::new();
    let store = database.open();
    let mut child = start("processes::an_owner_that_is_killed", &database, 0);
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut lines = output.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("ready")));
    let run = "r".parse().unwrap();
    let owner = OwnerId("heir".to_owned());
    assert!(!store.is_dead(&OwnerId("doomed".to_owned())).await.unwrap());
    assert!(store.acquire(&run, &owner, LONG).await.is_err());
    child.kill().unwrap();
    child.wait().unwrap();
    // A server that has just started waits a little longer with its verdict.
    let until = std::time::Instant::now() + Duration::from_secs(30);
    let lease = loop {
        match store.acquire(&run, &owner, LONG).await {
            Ok(lease) => break lease,
            Err(error) => assert!(std::time::Instant::now() < until, "{error}"),
        }
    };
    assert_eq!(lease.epoch, 2);
}
