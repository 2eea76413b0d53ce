//! The laws of a store, for SQLite.

use planwright_adapters::sqlite::SqliteStore;
use planwright_engine::port::Store;
use std::sync::Arc;
use tempfile::TempDir;

fn make() -> (Arc<dyn Store>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("planwright.db")).unwrap();
    (Arc::new(store), directory)
}

planwright_engine::store_laws!(make);
