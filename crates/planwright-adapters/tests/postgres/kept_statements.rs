//! Statements of the writers, which the server parses and plans once for each of their connections.

use crate::chains::Chain;
use crate::databases::Database;
use planwright_adapters::postgres::PostgresStore;
use planwright_engine::port::Journal as _;
use planwright_testing::postgres::server;
use planwright_testing::wait::wait_until;

/// Statements of a transaction that appends to the journal of a plan, after those that begin it.
const LOCK: &str = "SELECT 1 FROM planwright.streams";
const INSERT: &str = "INSERT INTO planwright.entries";

/// Rows that were read, by an index or without one.
const READ: &str = "coalesce(idx_tup_fetch, 0) + seq_tup_read";

/// How often the log has this statement, under a name and without one.
fn count(log: &str, database: &Database, sql: &str) -> (usize, usize) {
    let lines = || {
        let own = format!("[{}] LOG:  execute ", database.name());
        log.lines()
            .filter_map(move |line| Some(line.split_once(&own)?.1.to_owned()))
            .filter(|statement| statement.contains(sql))
    };
    let unnamed = lines().filter(|line| line.starts_with("<unnamed>")).count();
    (lines().count() - unnamed, unnamed)
}

async fn append(store: &PostgresStore, chain: &mut Chain, times: usize) {
    for turn in 0..times {
        chain.put(store, &turn.to_string()).await;
    }
}

#[tokio::test]
async fn what_a_writer_uses_often_is_planned_once() {
    let database = Database::new();
    let logs = "log_statement = 'all'";
    server().sql("postgres", "ALTER SYSTEM SET log_line_prefix = '[%d] '");
    server().sql("postgres", "SELECT pg_reload_conf()");
    database.sql(&format!("ALTER DATABASE {} SET {logs}", database.name()));
    let store = database.open();
    let mut chain = Chain::of("plan/p");
    append(&store, &mut chain, 100).await;
    let log = server().log();
    for sql in [LOCK, INSERT] {
        let (named, unnamed) = count(&log, &database, sql);
        // One that was crossed by another is begun anew.
        assert!(named + unnamed >= 100, "{sql}: {named} and {unnamed}");
        // Four writers, each with the first uses of a connection of its own.
        assert!(named >= 80, "{sql}: {named} of 100");
    }
    database.sql(&format!(
        "ALTER DATABASE {} RESET log_statement",
        database.name()
    ));
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
