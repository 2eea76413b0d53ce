//! The store in a Postgres database, shared by any number of processes on any number of machines.
//!
//! Appends that wait are committed together, on several connections; everything is decided inside the
//! transaction, against rows that it has locked. A commit whose outcome is unknown, because the connection
//! broke, is looked up. No connection of the pool has any state beyond its transaction, so that a pooler such as
//! PgBouncer can stand in between. Where none does, a run that goes on alone appends with one statement, on a
//! connection of its own.
//!
//! The types of `tokio-postgres` stay in this folder.

mod answers;
mod appending;
mod artifacts;
mod commit;
mod decision;
mod fault;
mod feed;
mod hosts;
mod index;
mod journal;
mod kept_statements;
mod leases;
mod listener;
mod location;
mod mailbox;
mod offer_talk;
mod offers;
mod open_error;
mod outbox;
mod owners;
mod passes;
mod passkeys;
mod pool;
mod recode;
mod request_rates;
mod retention;
mod rewrite;
mod rows;
mod schema;
mod sealed_group;
mod sealed_tables;
mod service_notes;
mod settle;
mod sign_ins;
mod single_append;
mod single_statements;
mod store;
mod tls;
mod tokens;
mod vault;
mod wakeups;
mod workers;

pub use artifacts::PostgresArtifacts;
pub use location::{Location, LocationError};
pub use open_error::OpenPostgresError;
pub use rewrite::{IdlePostgresStore, NewProtection, RewritePostgresError, is_encrypted};
pub use store::{PostgresOptions, PostgresStore, ServerReport};
