//! What webhooks are still to be told, as rows beside the journal.

use super::fault::{Stop, failed};
use super::store::SqliteStore;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    BoxFuture, Delivery, DeliveryState, EndpointStanding, Outbox, Position, Settled, StoreError,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

/// Of those that were given up, the oldest are forgotten beyond this many.
const MAX_DEAD: i64 = 1000;

const COLUMNS: &str = "position, part, attempts, next_at, state, last_error";

/// Nothing is due at a disabled endpoint.
const ENABLED: &str = "EXISTS (SELECT 1 FROM endpoints WHERE name = ?1 AND disabled IS NULL)";

fn delivery(row: &Row<'_>) -> Result<Delivery, rusqlite::Error> {
    let state: String = row.get(4)?;
    Ok(Delivery {
        position: Position(row.get(0)?),
        index: row.get(1)?,
        attempts: row.get(2)?,
        next_at: Timestamp::from_millis(row.get(3)?),
        state: if state == "dead" {
            DeliveryState::Dead
        } else {
            DeliveryState::Waiting
        },
        last_error: row.get(5)?,
    })
}

fn standing(
    connection: &Connection,
    endpoint: &str,
) -> Result<Option<EndpointStanding>, rusqlite::Error> {
    let mut statement =
        connection.prepare_cached("SELECT cursor, disabled FROM endpoints WHERE name = ?1")?;
    let read = |row: &Row<'_>| {
        Ok(EndpointStanding {
            cursor: Position(row.get(0)?),
            disabled: row.get(1)?,
        })
    };
    statement.query_row([endpoint], read).optional()
}

fn advance(
    connection: &Connection,
    endpoint: &str,
    from: Option<Position>,
    to: Position,
    found: &[(Position, u32)],
    now: Timestamp,
) -> Result<bool, Stop<StoreError>> {
    if standing(connection, endpoint)?.map(|standing| standing.cursor) != from {
        return Ok(false);
    }
    let moved = "INSERT INTO endpoints (name, cursor) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET cursor = ?2";
    connection
        .prepare_cached(moved)?
        .execute(params![endpoint, to.0])?;
    let add = "INSERT INTO deliveries (endpoint, position, part, next_at) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT DO NOTHING";
    let mut add = connection.prepare_cached(add)?;
    for (position, index) in found {
        add.execute(params![endpoint, position.0, index, now.as_millis()])?;
    }
    Ok(true)
}

/// The oldest that is due.
fn due(
    connection: &Connection,
    endpoint: &str,
    now: Timestamp,
) -> Result<Option<Delivery>, rusqlite::Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM deliveries WHERE endpoint = ?1 AND state = 'waiting' AND next_at <= ?2
         AND {ENABLED} ORDER BY position, part LIMIT 1"
    );
    connection
        .prepare_cached(&sql)?
        .query_row(params![endpoint, now.as_millis()], delivery)
        .optional()
}

fn take(
    connection: &Connection,
    endpoint: &str,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<Delivery>, Stop<StoreError>> {
    let Some(mut due) = due(connection, endpoint, now)? else {
        return Ok(None);
    };
    let sql = "UPDATE deliveries SET attempts = attempts + 1, next_at = ?4
               WHERE endpoint = ?1 AND position = ?2 AND part = ?3";
    connection.prepare_cached(sql)?.execute(params![
        endpoint,
        due.position.0,
        due.index,
        until.as_millis()
    ])?;
    due.attempts += 1;
    due.next_at = until;
    Ok(Some(due))
}

fn settle(
    connection: &Connection,
    endpoint: &str,
    delivery: &Delivery,
    settled: &Settled,
) -> Result<(), Stop<StoreError>> {
    let position = delivery.position.0;
    let index = delivery.index;
    let row = "WHERE endpoint = ?1 AND position = ?2 AND part = ?3";
    match settled {
        Settled::Done => {
            let sql = format!("DELETE FROM deliveries {row}");
            connection
                .prepare_cached(&sql)?
                .execute(params![endpoint, position, index])?;
        }
        Settled::Again { at, error } => {
            let sql = format!("UPDATE deliveries SET next_at = ?4, last_error = ?5 {row}");
            let values = params![endpoint, position, index, at.as_millis(), error];
            connection.prepare_cached(&sql)?.execute(values)?;
        }
        Settled::Dead { error } => {
            let sql = format!("UPDATE deliveries SET state = 'dead', last_error = ?4 {row}");
            connection
                .prepare_cached(&sql)?
                .execute(params![endpoint, position, index, error])?;
            let forget =
                "DELETE FROM deliveries WHERE endpoint = ?1 AND state = 'dead' AND position <= (
                              SELECT position FROM deliveries WHERE endpoint = ?1 AND state = 'dead'
                              ORDER BY position DESC LIMIT 1 OFFSET ?2)";
            connection
                .prepare_cached(forget)?
                .execute(params![endpoint, MAX_DEAD])?;
        }
    }
    Ok(())
}

fn revive(
    connection: &Connection,
    endpoint: &str,
    now: Timestamp,
) -> Result<u64, Stop<StoreError>> {
    connection
        .prepare_cached("UPDATE endpoints SET disabled = NULL WHERE name = ?1")?
        .execute([endpoint])?;
    let sql =
        "UPDATE deliveries SET state = 'waiting', attempts = 0, next_at = ?2 WHERE endpoint = ?1";
    let due = connection
        .prepare_cached(sql)?
        .execute(params![endpoint, now.as_millis()])?;
    Ok(due as u64)
}

impl SqliteStore {
    /// A look that takes microseconds, less than moving it to another thread.
    fn glance<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        self.reader()
            .with(|connection| work(connection).map_err(|error| failed(&error)))
    }
}

impl Outbox for SqliteStore {
    fn standing<'a>(
        &'a self,
        endpoint: &'a str,
    ) -> BoxFuture<'a, Result<Option<EndpointStanding>, StoreError>> {
        Box::pin(async move { self.glance(|connection| standing(connection, endpoint)) })
    }

    fn advance<'a>(
        &'a self,
        endpoint: &'a str,
        from: Option<Position>,
        to: Position,
        found: Vec<(Position, u32)>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let endpoint = endpoint.to_owned();
        Box::pin(
            self.write(move |connection| advance(connection, &endpoint, from, to, &found, now)),
        )
    }

    fn take<'a>(
        &'a self,
        endpoint: &'a str,
        now: Timestamp,
        until: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Delivery>, StoreError>> {
        Box::pin(async move {
            // Most of the time nothing is due, and then nothing is written.
            if self
                .glance(|connection| due(connection, endpoint, now))?
                .is_none()
            {
                return Ok(None);
            }
            let endpoint = endpoint.to_owned();
            self.write(move |connection| take(connection, &endpoint, now, until))
                .await
        })
    }

    fn settle<'a>(
        &'a self,
        endpoint: &'a str,
        delivery: &'a Delivery,
        settled: Settled,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let endpoint = endpoint.to_owned();
        let delivery = delivery.clone();
        Box::pin(self.write(move |connection| settle(connection, &endpoint, &delivery, &settled)))
    }

    fn next_at<'a>(
        &'a self,
        endpoint: &'a str,
    ) -> BoxFuture<'a, Result<Option<Timestamp>, StoreError>> {
        let sql = format!(
            "SELECT min(next_at) FROM deliveries WHERE endpoint = ?1 AND state = 'waiting' AND {ENABLED}"
        );
        Box::pin(async move {
            let at: Option<i64> = self.glance(|connection| {
                connection
                    .prepare_cached(&sql)?
                    .query_row([endpoint], |row| row.get(0))
            })?;
            Ok(at.map(Timestamp::from_millis))
        })
    }

    fn list<'a>(
        &'a self,
        endpoint: &'a str,
        state: DeliveryState,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, StoreError>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM deliveries WHERE endpoint = ?1 AND state = ?2 ORDER BY position, part LIMIT ?3"
        );
        Box::pin(async move {
            self.glance(|connection| {
                let limit = i64::try_from(limit).unwrap_or(i64::MAX);
                let mut statement = connection.prepare_cached(&sql)?;
                statement
                    .query_map(params![endpoint, state.as_str(), limit], delivery)?
                    .collect()
            })
        })
    }

    fn count<'a>(
        &'a self,
        endpoint: &'a str,
        state: DeliveryState,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let sql = "SELECT count(*) FROM deliveries WHERE endpoint = ?1 AND state = ?2";
        Box::pin(async move {
            self.glance(|connection| {
                connection
                    .prepare_cached(sql)?
                    .query_row(params![endpoint, state.as_str()], |row| row.get(0))
            })
        })
    }

    fn disable<'a>(
        &'a self,
        endpoint: &'a str,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let endpoint = endpoint.to_owned();
        let reason = reason.to_owned();
        Box::pin(self.write(move |connection| {
            let sql = "UPDATE endpoints SET disabled = ?2 WHERE name = ?1";
            connection
                .prepare_cached(sql)?
                .execute(params![endpoint, reason])?;
            Ok(())
        }))
    }

    fn revive<'a>(
        &'a self,
        endpoint: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let endpoint = endpoint.to_owned();
        Box::pin(self.write(move |connection| revive(connection, &endpoint, now)))
    }
}
