//! Opening a store: many at once, where nothing may be made, and where there is no server.

use crate::databases::Database;
use planwright_adapters::postgres::{Location, OpenPostgresError, PostgresStore};
use planwright_core::journal::StreamName;
use planwright_engine::port::{Journal as _, StoreHealth as _};
use planwright_testing::wait::wait_until;
use std::sync::Barrier;

/// Of the lock that a process holds while it changes tables: all versions of the program use the same.
const LOCK: i64 = 0x706c_616e_7772_6974;

fn location(url: &str) -> Location {
    Location::parse(url, None).unwrap()
}

#[test]
fn ten_that_start_at_once_make_one_store() {
    let database = Database::untouched();
    let together = Barrier::new(10);
    std::thread::scope(|scope| {
        let opening = (0..10).map(|_| {
            scope.spawn(|| {
                let location = location(&database.url());
                together.wait();
                PostgresStore::open(location, true).unwrap()
            })
        });
        let opening: Vec<_> = opening.collect();
        for opened in opening {
            drop(opened.join().unwrap());
        }
    });
    let versions =
        database.sql("SELECT string_agg(version::text, ' ') FROM planwright.schema_version");
    assert_eq!(
        versions, "1 2 3 4 5 6 7 8 9",
        "each migration was made once"
    );
}

#[test]
fn a_database_without_a_store_is_left_alone_by_those_who_only_read() {
    let database = Database::untouched();
    let refused = PostgresStore::open(location(&database.url()), false);
    assert!(
        matches!(refused, Err(OpenPostgresError::Empty)),
        "{refused:?}"
    );
    let made = database.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'planwright'");
    assert_eq!(made, "0");
}

#[tokio::test]
async fn what_was_written_is_there_after_the_store_was_closed() {
    let database = Database::new();
    let store = database.open();
    store.probe().await.unwrap();
    drop(store);
    let store = PostgresStore::open(location(&database.url()), false).unwrap();
    let stream: StreamName = "plan/p".parse().unwrap();
    assert!(store.read(&stream, 0, 1).await.unwrap().is_empty());
    let report = store.report().await.unwrap();
    assert!(report.is_durable && report.schema == 9, "{report:?}");
}

#[test]
fn tables_of_a_newer_version_are_not_touched() {
    let database = Database::untouched();
    drop(database.open());
    database.sql("INSERT INTO planwright.schema_version (version) VALUES (99)");
    let refused = PostgresStore::open(location(&database.url()), true);
    assert!(
        matches!(
            refused,
            Err(OpenPostgresError::NewerSchema { found: 99, .. })
        ),
        "{refused:?}"
    );
    database.sql("DELETE FROM planwright.schema_version WHERE version = 99");
}

#[test]
fn tables_that_became_newer_while_another_waited_for_its_turn_are_not_touched() {
    let database = Database::untouched();
    let newer = format!(
        "BEGIN; SELECT pg_advisory_xact_lock({LOCK}); SELECT pg_sleep(2); \
         CREATE SCHEMA IF NOT EXISTS planwright; CREATE TABLE planwright.schema_version (version int); \
         GRANT ALL ON SCHEMA planwright TO PUBLIC; GRANT ALL ON planwright.schema_version TO PUBLIC; \
         INSERT INTO planwright.schema_version VALUES (99); COMMIT"
    );
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    std::thread::scope(|scope| {
        let changing = scope.spawn(|| database.sql(&newer));
        wait_until("the newer process to have its turn", || {
            database.sql(waiting) == "1"
        });
        let refused = PostgresStore::open(location(&database.url()), true);
        assert!(
            matches!(
                refused,
                Err(OpenPostgresError::NewerSchema { found: 99, .. })
            ),
            "{refused:?}"
        );
        changing.join().unwrap();
    });
    database.sql("DROP SCHEMA planwright CASCADE");
}

#[test]
fn a_server_that_is_not_there_is_named_without_the_password() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let url = format!("postgres://ada:hunter2@127.0.0.1:{port}/plans");
    let refused = PostgresStore::open(location(&url), true).unwrap_err();
    assert!(matches!(refused, OpenPostgresError::Unreachable(_)));
    let text = format!("{refused} {refused:?}");
    assert!(text.contains(&format!("127.0.0.1:{port}")), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}
