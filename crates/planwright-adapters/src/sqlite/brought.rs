//! How much each principal has brought into the store. A cache beside the journals: it limits, and
//! proves nothing.

use planwright_core::journal::StreamName;
use planwright_core::principal::Principal;
use planwright_engine::port::Brought;
use rusqlite::{Connection, OptionalExtension as _, params};

/// Counts what comes in with an append to this stream.
pub(super) fn count(
    connection: &Connection,
    stream: &StreamName,
    brought: &[Brought],
) -> Result<(), rusqlite::Error> {
    let StreamName::Plan(plan) = stream else {
        return Ok(());
    };
    for Brought { by, bytes } in brought {
        let by = by.to_string();
        let bytes = i64::try_from(*bytes).unwrap_or(i64::MAX);
        let sql = "INSERT INTO brought (principal, plan, bytes) VALUES (?1, ?2, ?3)
                   ON CONFLICT (principal, plan) DO UPDATE SET bytes = bytes + ?3";
        let mut statement = connection.prepare_cached(sql)?;
        statement.execute(params![by, plan.as_str(), bytes])?;
        let sql = "INSERT INTO brought_in_all (principal, bytes) VALUES (?1, ?2)
                   ON CONFLICT (principal) DO UPDATE SET bytes = bytes + ?2";
        connection
            .prepare_cached(sql)?
            .execute(params![by, bytes])?;
    }
    Ok(())
}

/// Gives back what was brought to a plan that is removed for good.
pub(super) fn give_back(
    connection: &Connection,
    stream: &StreamName,
) -> Result<(), rusqlite::Error> {
    let StreamName::Plan(plan) = stream else {
        return Ok(());
    };
    let sql = "UPDATE brought_in_all AS all_of SET bytes = max(0, all_of.bytes - of_plan.bytes)
               FROM brought AS of_plan
               WHERE of_plan.plan = ?1 AND of_plan.principal = all_of.principal";
    connection.execute(sql, [plan.as_str()])?;
    connection.execute("DELETE FROM brought WHERE plan = ?1", [plan.as_str()])?;
    Ok(())
}

/// Bytes that a principal has brought in.
pub(super) fn sum(connection: &Connection, by: &Principal) -> Result<u64, rusqlite::Error> {
    let sql = "SELECT bytes FROM brought_in_all WHERE principal = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let bytes: Option<i64> = statement
        .query_row([by.to_string()], |row| row.get(0))
        .optional()?;
    Ok(u64::try_from(bytes.unwrap_or_default()).unwrap_or_default())
}
