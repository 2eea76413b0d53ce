//! The laws of an outbox, for SQLite.

use planwright_adapters::sqlite::SqliteStore;
use planwright_engine::port::Outbox;
use std::sync::Arc;
use tempfile::TempDir;

fn make() -> (Arc<dyn Outbox>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("planwright.db")).unwrap();
    (Arc::new(store), directory)
}

planwright_engine::outbox_laws!(make);
