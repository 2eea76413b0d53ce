//! The laws of a store, of retention, of answers and of offers through PgBouncer in transaction mode, which makes each
//! transaction of a connection on another connection to the server.

use crate::databases::Database;
use planwright_adapters::postgres::{Location, PostgresStore};
use planwright_engine::port::Store;
use planwright_testing::pgbouncer::Bouncer;
use planwright_testing::postgres::server;
use std::sync::{Arc, OnceLock};

/// The one that the tests of this process share: few connections, so that they change hands.
fn bouncer() -> &'static Bouncer {
    static BOUNCER: OnceLock<Bouncer> = OnceLock::new();
    BOUNCER.get_or_init(|| Bouncer::start(server(), 6))
}

fn open(database: &Database) -> PostgresStore {
    let listen = format!("127.0.0.1:{}", server().port());
    let url = format!("{}?listen={listen}", bouncer().url(database.name()));
    PostgresStore::open(Location::parse(&url, None).unwrap(), true).unwrap()
}

fn opened() -> (Arc<PostgresStore>, Database) {
    let database = Database::new();
    (Arc::new(open(&database)), database)
}

fn make() -> (Arc<dyn Store>, Database) {
    let (store, database) = opened();
    (store, database)
}

planwright_engine::store_laws!(make);

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
    use planwright_engine::conformance::answer::Subject;

    fn make_subject() -> (Subject, Arc<Database>) {
        let (store, database) = opened();
        let database = Arc::new(database);
        let same = Arc::clone(&database);
        let subject = Subject {
            store: Arc::<PostgresStore>::clone(&store),
            answers: store,
            reopen: Box::new(move |_| {
                let store = Arc::new(open(&same));
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
