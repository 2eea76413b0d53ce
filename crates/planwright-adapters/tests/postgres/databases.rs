//! Databases for tests: each test has one to itself, and the next one finds it empty.

use planwright_adapters::postgres::{Location, PostgresOptions, PostgresStore};
use planwright_adapters::vault::{Passphrase, StretchCost};
use planwright_testing::postgres::{Server, server};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A database that is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Database {
    name: String,
}

/// Removes everything that a test left, and begins counting anew.
const EMPTY: &str = "DO $$ DECLARE t text; BEGIN \
    FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'planwright' \
             AND tablename NOT IN ('schema_version', 'feed_end') LOOP \
      EXECUTE format('DELETE FROM planwright.%I', t); END LOOP; \
    FOR t IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'planwright' LOOP \
      EXECUTE format('ALTER SEQUENCE planwright.%I RESTART', t); END LOOP; \
    IF to_regclass('planwright.feed_end') IS NOT NULL THEN \
      UPDATE planwright.feed_end SET position = 0; END IF; END $$";

impl Database {
    /// An empty database, with or without tables.
    pub(crate) fn new() -> Self {
        if let Some(name) = FREE.lock().unwrap().pop() {
            server().sql(&name, EMPTY);
            return Self { name };
        }
        Self::untouched()
    }

    /// A database that no store was ever opened in.
    pub(crate) fn untouched() -> Self {
        let name = format!("test_{}", MADE.fetch_add(1, Ordering::Relaxed));
        server().create_database(&name);
        Self { name }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn url(&self) -> String {
        server().url(&self.name)
    }

    pub(crate) fn open(&self) -> PostgresStore {
        open(server(), &self.name)
    }

    pub(crate) fn location(&self) -> Location {
        Location::parse(&self.url(), None).unwrap()
    }

    /// Options of an encrypted store whose passphrase is `correct horse`, as cheap to open as is allowed.
    pub(crate) fn sealed(&self) -> PostgresOptions {
        PostgresOptions {
            passphrase: Some(passphrase("correct horse")),
            cost: StretchCost::FLOOR,
            ..PostgresOptions::new(self.location(), true)
        }
    }

    /// Opens it with its passphrase; a new one is made encrypted.
    pub(crate) fn open_sealed(&self) -> PostgresStore {
        PostgresStore::open_with(self.sealed()).unwrap()
    }

    /// Runs statements in it as the superuser.
    pub(crate) fn sql(&self, statements: &str) -> String {
        server().sql(&self.name, statements)
    }

    /// Has the server log each statement of connections that are made from now on, while this is used.
    pub(crate) fn log_statements(&self, logged: bool) {
        server().sql("postgres", "ALTER SYSTEM SET log_line_prefix = '[%d] '");
        server().sql("postgres", "SELECT pg_reload_conf()");
        let set = match logged {
            true => "SET log_statement = 'all'",
            false => "RESET log_statement",
        };
        self.sql(&format!("ALTER DATABASE {} {set}", self.name));
    }

    /// The statements that were logged, each after the name under which it was prepared, or `<unnamed>`.
    pub(crate) fn logged(&self) -> Vec<(String, String)> {
        let own = format!("[{}] LOG:  execute ", self.name);
        let log = server().log();
        let statements = log.lines().filter_map(|line| line.split_once(&own));
        let parts = statements.filter_map(|(_, statement)| statement.split_once(": "));
        let parts = parts.map(|(name, sql)| (name.to_owned(), sql.to_owned()));
        parts.collect()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            FREE.lock().unwrap().push(std::mem::take(&mut self.name));
        }
    }
}

pub(crate) fn passphrase(text: &str) -> Passphrase {
    Passphrase::new(text.to_owned()).unwrap()
}

pub(crate) fn open(server: &Server, database: &str) -> PostgresStore {
    let location = Location::parse(&server.url(database), None).unwrap();
    PostgresStore::open(location, true).unwrap()
}
