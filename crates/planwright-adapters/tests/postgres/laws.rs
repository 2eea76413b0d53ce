//! The laws of a store, of an outbox, of tokens, passes, passkeys, requests, retention and offers, for Postgres.

use crate::databases::Database;
use planwright_adapters::postgres::PostgresStore;
use planwright_engine::port::Store;
use std::sync::Arc;

fn opened() -> (Arc<PostgresStore>, Database) {
    let database = Database::new();
    (Arc::new(database.open()), database)
}

fn make() -> (Arc<dyn Store>, Database) {
    let (store, database) = opened();
    (store, database)
}

planwright_engine::store_laws!(make);

mod outbox {
    use super::*;
    use planwright_engine::port::Outbox;

    fn make_outbox() -> (Arc<dyn Outbox>, Database) {
        let (store, database) = opened();
        (store, database)
    }

    planwright_engine::outbox_laws!(make_outbox);
}

mod artifacts {
    use super::*;
    use planwright_adapters::files::FileArtifacts;
    use planwright_adapters::postgres::PostgresArtifacts;
    use planwright_engine::port::Artifacts;

    fn make_artifacts() -> (Arc<dyn Artifacts>, (Database, tempfile::TempDir)) {
        let (store, database) = opened();
        let directory = tempfile::tempdir().unwrap();
        let files = FileArtifacts::new(directory.path());
        let artifacts = PostgresArtifacts::new(store, files);
        (Arc::new(artifacts), (database, directory))
    }

    planwright_engine::artifact_laws!(make_artifacts);
}

mod tokens {
    use super::*;
    use planwright_engine::port::Tokens;

    fn make_tokens() -> (Arc<dyn Tokens>, Database) {
        let (store, database) = opened();
        (store, database)
    }

    planwright_engine::token_laws!(make_tokens);
}

mod passes {
    use super::*;
    use planwright_engine::port::Passes;

    fn make_passes() -> (Arc<dyn Passes>, Database) {
        let (store, database) = opened();
        (store, database)
    }

    planwright_engine::pass_laws!(make_passes);
}

mod notes {
    use super::*;
    use planwright_engine::port::ServiceNotes;

    fn make_notes() -> (Arc<dyn ServiceNotes>, Database) {
        let (store, database) = opened();
        (store, database)
    }

    planwright_engine::note_laws!(make_notes);
}

mod passkeys {
    use super::*;
    use planwright_engine::port::Passkeys;

    fn make_passkeys() -> (Arc<dyn Passkeys>, Database) {
        let (store, database) = opened();
        (store, database)
    }

    planwright_engine::passkey_laws!(make_passkeys);
}

mod retention {
    use super::*;
    use planwright_engine::conformance::retention::BoundedStore;

    fn make_bounded() -> (Arc<dyn BoundedStore>, Database) {
        let (store, database) = opened();
        (store, database)
    }

    planwright_engine::retention_laws!(make_bounded);
}

mod answers {
    use super::*;
    use planwright_adapters::postgres::Location;
    use planwright_engine::conformance::answer::Subject;

    fn make_subject() -> (Subject, Database) {
        let (store, database) = opened();
        let url = database.url();
        let subject = Subject {
            store: Arc::<PostgresStore>::clone(&store),
            answers: store,
            reopen: Box::new(move |_| {
                let location = Location::parse(&url, None).unwrap();
                let store = Arc::new(PostgresStore::open(location, true).unwrap());
                (Arc::<PostgresStore>::clone(&store), store)
            }),
        };
        (subject, database)
    }

    planwright_engine::answer_laws!(make_subject);
}

mod offers {
    use super::*;
    use planwright_engine::conformance::offer::OfferingStore;

    fn make_offers() -> (OfferingStore, Database) {
        let (store, database) = opened();
        let subject = OfferingStore {
            store: Arc::<PostgresStore>::clone(&store),
            offers: store,
        };
        (subject, database)
    }

    planwright_engine::offer_laws!(make_offers);
}
