//! The schema and its migrations. The version is kept in SQLite's `user_version`.

use super::open::OpenStoreError;
use planwright_engine::crash;
use rusqlite::{Connection, TransactionBehavior};

/// The n-th script leads from version n to n + 1. A script that was released is never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_journal.sql"),
    include_str!("../../migrations/sqlite/0002_feed.sql"),
    include_str!("../../migrations/sqlite/0003_access.sql"),
    include_str!("../../migrations/sqlite/0004_notices.sql"),
    include_str!("../../migrations/sqlite/0005_answers.sql"),
    include_str!("../../migrations/sqlite/0006_standing.sql"),
    include_str!("../../migrations/sqlite/0007_entry_index.sql"),
    include_str!("../../migrations/sqlite/0008_sealed_journals.sql"),
    include_str!("../../migrations/sqlite/0009_request_changes.sql"),
    include_str!("../../migrations/sqlite/0010_identity.sql"),
    include_str!("../../migrations/sqlite/0011_brought.sql"),
    include_str!("../../migrations/sqlite/0012_passes.sql"),
    include_str!("../../migrations/sqlite/0013_passkeys.sql"),
];

/// Brings the schema up to date. Of several processes that open at once, one does it and the others
/// find it done. Returns whether anything was changed.
pub(super) fn migrate(connection: &mut Connection) -> Result<bool, OpenStoreError> {
    let known = MIGRATIONS.len();
    if version(connection)? == known {
        return Ok(false);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    for script in &MIGRATIONS[found..] {
        transaction.execute_batch(script)?;
    }
    transaction.pragma_update(
        None,
        "user_version",
        i64::try_from(known).expect("a few migrations"),
    )?;
    crash::point("store: before the new schema is committed");
    transaction.commit()?;
    Ok(found != known)
}

fn version(connection: &Connection) -> Result<usize, OpenStoreError> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match usize::try_from(found) {
        Ok(version) if version <= MIGRATIONS.len() => Ok(version),
        _ => Err(OpenStoreError::NewerSchema {
            found,
            known: MIGRATIONS.len(),
        }),
    }
}
