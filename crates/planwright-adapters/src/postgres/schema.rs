//! The tables: made and brought up to date in one transaction, by one process at a time.

use super::fault::{describe, store_error};
use super::open_error::OpenPostgresError;
use super::pool::{Lent, Pool};
use super::vault::{self, Found};
use std::fmt::Write as _;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

/// The migrations, in order. Their number is the version of the tables.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/postgres/0001_store.sql"),
    include_str!("../../migrations/postgres/0002_offers.sql"),
    include_str!("../../migrations/postgres/0003_encryption.sql"),
    include_str!("../../migrations/postgres/0004_services.sql"),
    include_str!("../../migrations/postgres/0005_plans_by_age.sql"),
    include_str!("../../migrations/postgres/0006_no_figures_of_values.sql"),
    include_str!("../../migrations/postgres/0007_calls_of_workers.sql"),
    include_str!("../../migrations/postgres/0008_sign_ins.sql"),
    include_str!("../../migrations/postgres/0009_cheap_entries.sql"),
];

/// Of the advisory lock that one process holds while it changes tables. Any number does that nothing else uses.
pub(super) const LOCK: i64 = 0x706c_616e_7772_6974;

/// The oldest server that is known to do.
const OLDEST_SERVER: i32 = 130_000;

pub(super) fn latest() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

/// What a new connection says about its server.
pub(super) struct ServerFacts {
    /// Whether a commit is durable when it is answered, without our asking for it.
    pub(super) durable: bool,
    /// The version of the tables; `None` without tables.
    pub(super) version: Option<i32>,
    /// The lock of the store.
    pub(super) found: Found,
}

/// Asks the server what there is. Nothing is changed.
pub(super) async fn inspect(pool: &Pool) -> Result<ServerFacts, OpenPostgresError> {
    let connection = pool.get().await.map_err(|error| match error {
        planwright_engine::port::StoreError::Unreachable(reason) => {
            OpenPostgresError::Unreachable(reason)
        }
        error => error.into(),
    })?;
    let durable = check_server(pool, &connection).await?;
    let read = |error: Error| failed(pool, &error);
    let version = version(&connection).await.map_err(read)?;
    if let Some(found) = version.filter(|found| *found > latest()) {
        let known = latest();
        return Err(OpenPostgresError::NewerSchema { found, known });
    }
    let found = match version {
        Some(found) if found >= vault::FIRST_VERSION => {
            vault::find(&connection).await.map_err(read)?
        }
        // The tables of earlier versions have no lock.
        Some(_) => Found {
            lock: None,
            is_empty: has_no_streams(&connection).await.map_err(read)?,
        },
        None => Found {
            lock: None,
            is_empty: true,
        },
    };
    Ok(ServerFacts {
        durable,
        version,
        found,
    })
}

async fn has_no_streams(client: &Client) -> Result<bool, Error> {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM planwright.streams)";
    Ok(client.query_typed_one(sql, &[]).await?.get(0))
}

/// Brings the tables up to date.
pub(super) async fn bring_up_to_date(pool: &Pool) -> Result<(), OpenPostgresError> {
    let connection = pool.get().await?;
    let found = migrate(pool, connection).await?;
    // Also if a newer process changed the tables while this one waited for its turn.
    let known = latest();
    match found > known {
        true => Err(OpenPostgresError::NewerSchema { found, known }),
        false => Ok(()),
    }
}

/// Returns whether a commit is durable when the server answers it.
async fn check_server(pool: &Pool, client: &Client) -> Result<bool, OpenPostgresError> {
    let sql = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), \
               current_setting('synchronous_commit')";
    let row = client.query_typed_one(sql, &[]).await;
    let row = row.map_err(|error| failed(pool, &error))?;
    let number: i32 = row.get(0);
    if number < OLDEST_SERVER {
        let version = number / 10_000;
        return Err(OpenPostgresError::Unsuitable(format!(
            "the server is Postgres {version}, and 13 is the oldest that is supported"
        )));
    }
    let encoding: String = row.get(1);
    if encoding != "UTF8" {
        return Err(OpenPostgresError::Unsuitable(format!(
            "its encoding is {encoding} and has to be UTF8"
        )));
    }
    let synchronous: String = row.get(2);
    Ok(synchronous != "off")
}

/// The version of the tables; `None` without tables.
async fn version(client: &Client) -> Result<Option<i32>, Error> {
    // The catalogs are asked, and not `to_regclass`, which may answer from a cache that is older than a lock
    // that was just waited for.
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables \
               WHERE schemaname = 'planwright' AND tablename = 'schema_version')";
    let exists: bool = client.query_typed_one(sql, &[]).await?.get(0);
    if !exists {
        return Ok(None);
    }
    let sql = "SELECT max(version) FROM planwright.schema_version";
    Ok(client.query_typed_one(sql, &[]).await?.get(0))
}

/// Applies what is missing, and returns the version that the tables have then. Ten processes that start at once wait for
/// each other here, and nine find nothing to do.
async fn migrate(pool: &Pool, connection: Lent) -> Result<i32, OpenPostgresError> {
    let done = migrate_within(&connection).await;
    let ended = match &done {
        Ok(_) => connection.batch_execute("COMMIT").await,
        Err(_) => connection.batch_execute("ROLLBACK").await,
    };
    if ended.is_err() {
        connection.discard();
    }
    let version = done.map_err(|error| failed(pool, &error))?;
    ended.map_err(|error| failed(pool, &error))?;
    Ok(version)
}

async fn migrate_within(client: &Client) -> Result<i32, Error> {
    client
        .batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        .await?;
    let sql = "SELECT pg_advisory_xact_lock($1)";
    client.query_typed(sql, &[(&LOCK, Type::INT8)]).await?;
    let found = version(client).await?.unwrap_or(0);
    let mut script = String::new();
    if found == 0 {
        // A role that may not make schemas can be given one.
        let exists: bool = client
            .query_typed_one(
                "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'planwright')",
                &[],
            )
            .await?
            .get(0);
        if !exists {
            script.push_str("CREATE SCHEMA planwright;\n");
        }
        script.push_str(
            "CREATE TABLE planwright.schema_version (version int PRIMARY KEY, \
             applied_at timestamptz NOT NULL DEFAULT now());\n",
        );
    }
    let applied = usize::try_from(found).unwrap_or(0);
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(applied) {
        script.push_str(migration);
        let version = number + 1;
        // Writing to a text cannot fail.
        let _ = writeln!(
            script,
            ";\nINSERT INTO planwright.schema_version (version) VALUES ({version});"
        );
    }
    client.batch_execute(&script).await?;
    Ok(found.max(latest()))
}

fn failed(pool: &Pool, error: &Error) -> OpenPostgresError {
    match store_error(error, pool.place()) {
        planwright_engine::port::StoreError::Unreachable(reason) => {
            OpenPostgresError::Unreachable(reason)
        }
        _ => OpenPostgresError::Unsuitable(format!("{}: {}", pool.place(), describe(error))),
    }
}
