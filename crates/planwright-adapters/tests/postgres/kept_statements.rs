//! Statements of the writers, which the server parses and plans once for each of their connections.

use crate::chains::Chain;
use crate::databases::Database;
use planwright_adapters::postgres::PostgresStore;
use planwright_engine::port::Journal as _;
use planwright_testing::wait::wait_until;

/// Statements of a transaction that appends to the journal of a plan, after those that begin it.
const LOCK: &str = "SELECT 1 FROM planwright.streams WHERE name = ANY($1) ORDER BY name FOR UPDATE";
const INSERT: &str = "INSERT INTO planwright.entries";

/// Rows that were read, by an index or without one.
const READ: &str = "coalesce(idx_tup_fetch, 0) + seq_tup_read";

async fn append(store: &PostgresStore, chain: &mut Chain, times: usize) {
    for turn in 0..times {
        chain.put(store, &turn.to_string()).await;
    }
}

#[tokio::test]
async fn what_a_writer_uses_often_is_planned_once() {
    let database = Database::new();
    database.log_statements(true);
    let store = database.open();
    let mut chain = Chain::of("plan/p");
    append(&store, &mut chain, 100).await;
    let logged = database.logged();
    for wanted in [LOCK, INSERT] {
        let names = logged
            .iter()
            .filter(|(_, sql)| sql.starts_with(wanted))
            .map(|(name, _)| name);
        let (unnamed, named): (Vec<_>, Vec<_>) = names.partition(|name| *name == "<unnamed>");
        assert_eq!(named.len() + unnamed.len(), 100, "{wanted}");
        // Four writers, each with the first uses of a connection of its own.
        assert!(named.len() >= 80, "{wanted}: {} of 100", named.len());
    }
    database.log_statements(false);
}

#[tokio::test]
async fn plans_that_were_made_for_empty_tables_are_good_for_full_ones() {
    let database = Database::untouched();
    let store = database.open();
    // No statistics come in between, which would have the plans made anew.
    database.sql(
        "ALTER TABLE planwright.streams SET (autovacuum_enabled = off); \
         ALTER TABLE planwright.entries SET (autovacuum_enabled = off)",
    );
    let mut chain = Chain::of("plan/p");
    append(&store, &mut chain, 40).await;
    database.sql(
        "INSERT INTO planwright.streams (name, kind, created_at, updated_at) \
         SELECT 'plan/copy-' || n, 'plan', 1, 1 FROM generate_series(1, 20000) AS n; \
         INSERT INTO planwright.entries (stream, seq, at, epoch, hash, key, body) \
         SELECT s.id, 1, 1, 0, decode(repeat('00', 32), 'hex'), NULL, 'x' FROM planwright.streams AS s \
         WHERE s.name LIKE 'plan/copy-%'",
    );
    // A connection says what it did when it ends.
    let count = |figure: &str| -> u64 {
        let sql = format!(
            "SELECT sum({figure}) FROM pg_stat_user_tables WHERE schemaname = 'planwright' \
             AND relname IN ('streams', 'entries')"
        );
        database.sql(&sql).trim().parse().unwrap()
    };
    wait_until("the figures of what was put there", || {
        count("n_tup_ins") >= 40_000
    });
    let before = count(READ);
    append(&store, &mut chain, 40).await;
    let records = store.read(&chain.stream, 0, 1_000).await.unwrap();
    assert_eq!(records, chain.records);
    drop(store);
    wait_until("the figures of the appends", || {
        count("n_tup_ins") == 40_000 + 1 + 80
    });
    let rows = count(READ) - before;
    assert!(rows < 2_000, "80 appends read {rows} rows");
}
