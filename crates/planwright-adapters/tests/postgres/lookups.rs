//! What an append costs does not grow with the journal that it is for, nor what a look at a plan costs with the other plans.

use crate::alone::MARKS;
use crate::chains::{Chain, artifacts};
use crate::databases::Database;
use futures::future::try_join_all;
use planwright_adapters::demo::Demo;
use planwright_adapters::toolbox::{InProcessServer, Toolbox, ToolboxOptions};
use planwright_core::plan::{Bounds, Document};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::Shown;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    Append, Artifacts as _, FeedOf, Journal as _, Position, RetentionStore as _, StreamIndex as _,
};
use planwright_engine::{Engine, RunOptions};
use planwright_testing::wait::wait_until;
use serde_json::Map;
use std::sync::Arc;

/// Entries of the long journal, and appends that are counted.
const LONG: usize = 3_000;
const APPENDS: u64 = 20;

/// Rows that were read, by an index or without one.
const READ: &str = "coalesce(idx_tup_fetch, 0) + seq_tup_read";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_reads_no_more_of_a_long_journal_than_of_a_short_one() {
    // The figures of one that was used before are not known.
    let database = Database::untouched();
    let mut chain = Chain::of("run/long");
    let store = database.open();
    for _ in 0..10 {
        let grown: Vec<Append> = (0..LONG / 10)
            .map(|_| {
                let key = format!("key-{}", chain.head.seq);
                chain.grow_keyed(Some(&key), "body")
            })
            .collect();
        store.append(grown).await.unwrap();
    }
    drop(store);
    // Most journals are short, and the database knows it: an average says nothing about this one.
    database.sql(
        "INSERT INTO planwright.streams (name, kind, created_at, updated_at) \
         SELECT 'run/short-' || n, 'run', 1, 1 FROM generate_series(1, 2000) AS n; \
         INSERT INTO planwright.entries (stream, seq, at, epoch, hash, key, body) \
         SELECT s.id, n, 1, 1, decode(repeat('00', 32), 'hex'), convert_to('key-' || n, 'utf8'), 'body' \
         FROM planwright.streams AS s, generate_series(1, 10) AS n WHERE s.name LIKE 'run/short-%'; \
         ANALYZE planwright.streams, planwright.entries",
    );
    // A connection says what it did when it ends.
    let count = |column: &str| -> u64 {
        let sql = format!("SELECT {column} FROM pg_stat_user_tables WHERE relname = 'entries'");
        database.sql(&sql).trim().parse().unwrap()
    };
    let written = LONG as u64 + 2_000 * 10;
    wait_until("the figures of what was there", || {
        count("n_tup_ins") == written
    });
    let before = count(READ);
    let store = database.open();
    for _ in 0..APPENDS {
        let key = format!("key-{}", chain.head.seq);
        let append = chain.grow_keyed(Some(&key), "body");
        store.append(vec![append]).await.unwrap();
    }
    drop(store);
    wait_until("the figures of the appends", || {
        count("n_tup_ins") == written + APPENDS
    });
    let read = count(READ) - before;
    assert!(read < APPENDS * 20, "{read} entries were read");
}

/// Plans with a run each, and looks that are counted.
const PLANS: u64 = 20_000;
const LOOKS: u64 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_at_a_plan_reads_nothing_of_the_others() {
    let database = Database::untouched();
    drop(database.open());
    // Many were written at once, and the database has not counted them yet.
    database.sql("ALTER TABLE planwright.streams SET (autovacuum_enabled = false)");
    for kind in ["plan", "run"] {
        database.sql(&format!(
            "INSERT INTO planwright.streams (name, kind, plan, status, label, created_at, updated_at) \
             SELECT '{kind}/p-' || n, '{kind}', 'p-' || n, 'completed', '', n, n FROM generate_series(1, {PLANS}) AS n"
        ));
    }
    let plan = format!("p-{}", PLANS / 2).parse().unwrap();
    let sql = "SELECT coalesce(sum(idx_blks_hit + idx_blks_read + heap_blks_hit + heap_blks_read), 0) \
               FROM pg_statio_user_tables WHERE relname = 'streams'";
    let read = || -> u64 { database.sql(sql).trim().parse().unwrap() };
    let mut counted = 0;
    wait_until("the figures of what was there", || {
        let before = std::mem::replace(&mut counted, read());
        counted > PLANS && before == counted
    });
    let store = database.open();
    for _ in 0..LOOKS {
        assert_eq!(store.runs(&plan).await.unwrap().len(), 1);
        assert_eq!(store.plans_by_age(None, 20).await.unwrap().len(), 20);
        let of = FeedOf::Plan(plan.clone());
        assert!(store.feed(&of, Position(0), 10).await.unwrap().is_empty());
    }
    drop(store);
    wait_until("the figures of the looks", || read() > counted);
    let looked = read() - counted;
    assert!(looked < LOOKS * 100, "{looked} blocks were read");
}

/// A plan that is wider than its limit: its steps start in an order that rests on times of earlier runs.
fn wide(number: usize) -> Document {
    let plan = format!(
        r#"{{"id":"wide-{number}","title":"wide","limits":{{"maxConcurrency":1}},"steps":[
           {{"id":"a","tool":"demo.echo","args":{{"value":1}}}},{{"id":"b","tool":"demo.echo","args":{{"value":2}}}}]}}"#
    );
    Document::read(plan.as_bytes(), &Bounds::default()).unwrap()
}

#[tokio::test]
async fn runs_that_start_at_once_look_for_times_of_other_plans_once() {
    const WIDE: usize = 20;
    let database = Database::new();
    let store = Arc::new(database.open());
    let person = Principal::person("ada");
    let mut ids = Vec::new();
    let servers: [Arc<dyn InProcessServer>; 1] = [Arc::new(Demo)];
    let tools = Arc::new(Toolbox::new(servers, ToolboxOptions::default()).unwrap());
    let artifacts = Arc::new(artifacts(&store));
    drop(store);
    database.log_statements(true);
    let store = Arc::new(database.open());
    let engine = Engine::builder(tools).store(store, artifacts).build();
    for number in 0..WIDE {
        let plans = engine.plans();
        let (review, _) = plans.propose(wide(number), &person).await.unwrap();
        let shown = Shown::Version(review.current().number);
        let id = review.id().clone();
        plans
            .approve(&id, &Map::new(), shown, &person, Assurance::Program)
            .await
            .unwrap();
        ids.push(id);
    }
    let runs = engine.runs();
    let starting = ids
        .iter()
        .map(|id| runs.start(id, RunOptions::new(person.clone())));
    for handle in try_join_all(starting).await.unwrap() {
        let mut handle = handle;
        handle.wait().await.unwrap();
    }
    let of_plans = "FROM planwright.streams WHERE kind = 'run' AND plan = $1";
    let logged = database.logged();
    let looks = logged.iter().filter(|(_, sql)| sql.contains(of_plans));
    let looks = looks.count();
    // The runs of each other plan in one look, and those of its own plan with each start.
    assert!((WIDE - 1..3 * WIDE).contains(&looks), "{looks} looks");
    database.log_statements(false);
}

#[tokio::test]
async fn a_value_that_was_put_a_moment_ago_is_not_put_again_unless_it_was_removed() {
    let database = Database::new();
    let store = Arc::new(database.open());
    let artifacts = artifacts(&store);
    let marks = || database.sql(MARKS);
    let kept = artifacts.put(b"value".to_vec()).await.unwrap();
    let before = marks();
    assert_eq!(artifacts.put(b"value".to_vec()).await.unwrap(), kept);
    assert_eq!(marks(), before, "it was put again");
    let later = Timestamp::from_millis(i64::MAX / 2);
    let removed = store.remove_unused_artifacts(later, false).await.unwrap();
    assert_eq!(removed.files, 1);
    assert_eq!(artifacts.put(b"value".to_vec()).await.unwrap(), kept);
    assert_eq!(artifacts.get(&kept).await.unwrap(), b"value");
}
