//! The laws of requests that must not be done twice, for SQLite, plain and sealed.

use planwright_adapters::sqlite::SqliteStore;
use planwright_engine::conformance::answer::Subject;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

fn subject(path: PathBuf, open: fn(&Path) -> SqliteStore) -> Subject {
    let store = Arc::new(open(&path));
    Subject {
        store: Arc::<SqliteStore>::clone(&store),
        answers: store,
        reopen: Box::new(move |_| {
            let store = Arc::new(open(&path));
            (Arc::<SqliteStore>::clone(&store), store)
        }),
    }
}

mod plain {
    use super::*;

    fn make() -> (Subject, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("planwright.db");
        let open = |path: &Path| SqliteStore::open(path).unwrap();
        (subject(path, open), directory)
    }

    planwright_engine::answer_laws!(make);
}

mod sealed {
    use super::*;
    use crate::scene::sealed as sealed_options;

    fn make() -> (Subject, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("planwright.db");
        let open = |path: &Path| SqliteStore::open_with(sealed_options(path.to_owned())).unwrap();
        (subject(path, open), directory)
    }

    planwright_engine::answer_laws!(make);
}
