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

/// A store that marks what is written as its owner's.
mod when_signed {
    use super::*;
    use crate::scene::{new_key, signed};

    fn make_signed() -> (Arc<dyn Store>, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let options = signed(directory.path().join("planwright.db"), &new_key());
        let store = SqliteStore::open_with(options).unwrap();
        (Arc::new(store), directory)
    }

    planwright_engine::store_laws!(make_signed);
}
