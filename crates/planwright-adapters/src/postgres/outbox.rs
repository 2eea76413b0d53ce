//! What webhooks are still to be told, as rows.

use super::commit::Value;
use super::fault::Stop;
use super::rows::{count, number, text, unsigned};
use super::store::{PostgresStore, Shared};
use crate::sealing::{open_delivery_error, open_reason, seal_delivery_error, seal_reason};
use crate::vault::Cipher;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    BoxFuture, Delivery, DeliveryState, EndpointStanding, Outbox, Position, Settled, StoreError,
};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

/// Of those that were given up, the oldest are forgotten beyond this many.
const MAX_DEAD: i64 = 1000;

const COLUMNS: &str = "position, part, attempts, next_at, state, last_error";

/// Nothing is due at a disabled endpoint.
const ENABLED: &str =
    "EXISTS (SELECT 1 FROM planwright.endpoints WHERE name = $1 AND disabled IS NULL)";

fn delivery(cipher: &Cipher, endpoint: &str, row: &Row) -> Result<Delivery, StoreError> {
    let part = |column: usize| u32::try_from(row.get::<_, i64>(column)).unwrap_or(u32::MAX);
    let place = (endpoint, row.get(0), row.get(1));
    let last_error = row
        .get::<_, Option<Vec<u8>>>(5)
        .map(|kept| open_delivery_error(cipher, place, kept))
        .transpose()
        .map_err(|error| StoreError::Failed(format!("a delivery to {endpoint}: {error}")))?;
    Ok(Delivery {
        position: Position(unsigned(row.get(0))),
        index: part(1),
        attempts: part(2),
        next_at: Timestamp::from_millis(row.get(3)),
        state: match row.get::<_, &str>(4) {
            "dead" => DeliveryState::Dead,
            _ => DeliveryState::Waiting,
        },
        last_error: last_error.map(|error| text(Some(&error))),
    })
}

/// A step of a cursor, with what was found on the way.
struct Advance {
    endpoint: String,
    from: Option<Position>,
    to: Position,
    found: Vec<(Position, u32)>,
    now: Timestamp,
}

async fn advance(client: &Client, step: &Advance) -> Result<bool, Stop<StoreError>> {
    let to = number(step.to.0);
    let moved = match step.from {
        Some(from) => {
            let sql = "UPDATE planwright.endpoints SET cursor = $3 WHERE name = $1 AND cursor = $2";
            let values: [(Value<'_>, Type); 3] = [
                (&step.endpoint, Type::TEXT),
                (&number(from.0), Type::INT8),
                (&to, Type::INT8),
            ];
            client.execute_typed(sql, &values).await?
        }
        None => {
            let sql = "INSERT INTO planwright.endpoints (name, cursor) VALUES ($1, $2) ON CONFLICT DO NOTHING";
            let values: [(Value<'_>, Type); 2] = [(&step.endpoint, Type::TEXT), (&to, Type::INT8)];
            client.execute_typed(sql, &values).await?
        }
    };
    if moved == 0 {
        return Ok(false);
    }
    let positions: Vec<i64> = step
        .found
        .iter()
        .map(|(position, _)| number(position.0))
        .collect();
    let parts: Vec<i64> = step
        .found
        .iter()
        .map(|(_, part)| i64::from(*part))
        .collect();
    let sql = "INSERT INTO planwright.deliveries (endpoint, position, part, next_at) \
               SELECT $1, n.position, n.part, $4 FROM unnest($2::bigint[], $3::bigint[]) AS n (position, part)";
    let values: [(Value<'_>, Type); 4] = [
        (&step.endpoint, Type::TEXT),
        (&positions, Type::INT8_ARRAY),
        (&parts, Type::INT8_ARRAY),
        (&step.now.as_millis(), Type::INT8),
    ];
    client.execute_typed(sql, &values).await?;
    Ok(true)
}

impl Shared {
    async fn standing(&self, endpoint: &str) -> Result<Option<EndpointStanding>, StoreError> {
        let sql = "SELECT cursor, disabled FROM planwright.endpoints WHERE name = $1";
        let row = self.row(sql, &[(&endpoint, Type::TEXT)]).await?;
        let Some(row) = row else { return Ok(None) };
        let disabled = row
            .get::<_, Option<Vec<u8>>>(1)
            .map(|kept| open_reason(&self.cipher, endpoint, kept))
            .transpose()
            .map_err(|error| StoreError::Failed(format!("the endpoint {endpoint}: {error}")))?;
        Ok(Some(EndpointStanding {
            cursor: Position(unsigned(row.get(0))),
            disabled: disabled.map(|reason| text(Some(&reason))),
        }))
    }

    async fn take_delivery(
        &self,
        endpoint: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Delivery>, StoreError> {
        // One that another process takes at this moment is not waited for.
        let sql = format!(
            "UPDATE planwright.deliveries AS d SET attempts = d.attempts + 1, next_at = $3 \
             FROM (SELECT endpoint, position, part FROM planwright.deliveries \
                   WHERE endpoint = $1 AND state = 'waiting' AND next_at <= $2 AND {ENABLED} \
                   ORDER BY position, part LIMIT 1 FOR UPDATE SKIP LOCKED) AS due \
             WHERE d.endpoint = due.endpoint AND d.position = due.position AND d.part = due.part \
             RETURNING d.position, d.part, d.attempts, d.next_at, d.state, d.last_error"
        );
        let values: [(Value<'_>, Type); 3] = [
            (&endpoint, Type::TEXT),
            (&now.as_millis(), Type::INT8),
            (&until.as_millis(), Type::INT8),
        ];
        // Most of the time nothing is due, and then nothing is written.
        let due = format!(
            "SELECT 1 FROM planwright.deliveries WHERE endpoint = $1 AND state = 'waiting' AND next_at <= $2 AND {ENABLED} LIMIT 1"
        );
        if self.row(&due, &values[..2]).await?.is_none() {
            return Ok(None);
        }
        let data = (sql.as_str(), &values[..]);
        let rows = self
            .transact(&data, |client, (sql, values)| {
                Box::pin(async move {
                    Ok::<_, Stop<StoreError>>(client.query_typed(sql, values).await?)
                })
            })
            .await?;
        let taken = rows.first();
        taken
            .map(|row| delivery(&self.cipher, endpoint, row))
            .transpose()
    }

    async fn settle(
        &self,
        endpoint: &str,
        delivery: &Delivery,
        settled: &Settled,
    ) -> Result<(), StoreError> {
        let position = number(delivery.position.0);
        let part = i64::from(delivery.index);
        let row = "WHERE endpoint = $1 AND position = $2 AND part = $3";
        let place: [(Value<'_>, Type); 3] = [
            (&endpoint, Type::TEXT),
            (&position, Type::INT8),
            (&part, Type::INT8),
        ];
        match settled {
            Settled::Done => {
                let sql = format!("DELETE FROM planwright.deliveries {row}");
                self.rows(&sql, &place).await.map(drop)
            }
            Settled::Again { at, error } => {
                let sql =
                    format!("UPDATE planwright.deliveries SET next_at = $4, last_error = $5 {row}");
                let at = at.as_millis();
                let error =
                    seal_delivery_error(&self.cipher, (endpoint, position, part), error.as_bytes());
                let error = &*error?;
                let mut values = place.to_vec();
                values.extend([(&at as Value<'_>, Type::INT8), (&error, Type::BYTEA)]);
                self.change_quietly(&sql, &values).await.map(drop)
            }
            Settled::Dead { error } => {
                let sql = format!(
                    "UPDATE planwright.deliveries SET state = 'dead', last_error = $4 {row}"
                );
                let error =
                    seal_delivery_error(&self.cipher, (endpoint, position, part), error.as_bytes());
                let error = &*error?;
                let mut values = place.to_vec();
                values.push((&error as Value<'_>, Type::BYTEA));
                self.change_quietly(&sql, &values).await?;
                let forget = "DELETE FROM planwright.deliveries WHERE endpoint = $1 AND state = 'dead' AND position <= (\
                                SELECT position FROM planwright.deliveries WHERE endpoint = $1 AND state = 'dead' \
                                ORDER BY position DESC LIMIT 1 OFFSET $2)";
                let values: [(Value<'_>, Type); 2] =
                    [(&endpoint, Type::TEXT), (&MAX_DEAD, Type::INT8)];
                self.rows(forget, &values).await.map(drop)
            }
        }
    }

    async fn revive(&self, endpoint: &str, now: Timestamp) -> Result<u64, StoreError> {
        let sql = "UPDATE planwright.endpoints SET disabled = NULL WHERE name = $1";
        self.rows(sql, &[(&endpoint, Type::TEXT)]).await?;
        let sql = "WITH due AS (UPDATE planwright.deliveries SET state = 'waiting', attempts = 0, next_at = $2 \
                   WHERE endpoint = $1 RETURNING 1) SELECT count(*) FROM due";
        let values: [(Value<'_>, Type); 2] =
            [(&endpoint, Type::TEXT), (&now.as_millis(), Type::INT8)];
        let row = self.row(sql, &values).await?;
        Ok(row.map_or(0, |row| unsigned(row.get(0))))
    }
}

impl Outbox for PostgresStore {
    fn standing<'a>(
        &'a self,
        endpoint: &'a str,
    ) -> BoxFuture<'a, Result<Option<EndpointStanding>, StoreError>> {
        let endpoint = endpoint.to_owned();
        self.on(move |shared| async move { shared.standing(&endpoint).await })
    }

    fn advance<'a>(
        &'a self,
        endpoint: &'a str,
        from: Option<Position>,
        to: Position,
        found: Vec<(Position, u32)>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let step = Advance {
            endpoint: endpoint.to_owned(),
            from,
            to,
            found,
            now,
        };
        self.on(move |shared| async move {
            shared
                .transact(&step, |client, step| Box::pin(advance(client, step)))
                .await
        })
    }

    fn take<'a>(
        &'a self,
        endpoint: &'a str,
        now: Timestamp,
        until: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Delivery>, StoreError>> {
        let endpoint = endpoint.to_owned();
        self.on(move |shared| async move { shared.take_delivery(&endpoint, now, until).await })
    }

    fn settle<'a>(
        &'a self,
        endpoint: &'a str,
        delivery: &'a Delivery,
        settled: Settled,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let endpoint = endpoint.to_owned();
        let delivery = delivery.clone();
        self.on(move |shared| async move { shared.settle(&endpoint, &delivery, &settled).await })
    }

    fn next_at<'a>(
        &'a self,
        endpoint: &'a str,
    ) -> BoxFuture<'a, Result<Option<Timestamp>, StoreError>> {
        let endpoint = endpoint.to_owned();
        self.on(move |shared| async move {
            let sql = format!(
                "SELECT min(next_at) FROM planwright.deliveries WHERE endpoint = $1 AND state = 'waiting' AND {ENABLED}"
            );
            let row = shared.row(&sql, &[(&endpoint, Type::TEXT)]).await?;
            let at: Option<i64> = row.and_then(|row| row.get(0));
            Ok(at.map(Timestamp::from_millis))
        })
    }

    fn list<'a>(
        &'a self,
        endpoint: &'a str,
        state: DeliveryState,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, StoreError>> {
        let endpoint = endpoint.to_owned();
        self.on(move |shared| async move {
            let sql = format!(
                "SELECT {COLUMNS} FROM planwright.deliveries WHERE endpoint = $1 AND state = $2 \
                 ORDER BY position, part LIMIT $3"
            );
            let limit = count(limit);
            let values: [(Value<'_>, Type); 3] = [
                (&endpoint, Type::TEXT),
                (&state.as_str(), Type::TEXT),
                (&limit, Type::INT8),
            ];
            let rows = shared.rows(&sql, &values).await?;
            rows.iter()
                .map(|row| delivery(&shared.cipher, &endpoint, row))
                .collect()
        })
    }

    fn count<'a>(
        &'a self,
        endpoint: &'a str,
        state: DeliveryState,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let endpoint = endpoint.to_owned();
        self.on(move |shared| async move {
            let sql =
                "SELECT count(*) FROM planwright.deliveries WHERE endpoint = $1 AND state = $2";
            let values: [(Value<'_>, Type); 2] =
                [(&endpoint, Type::TEXT), (&state.as_str(), Type::TEXT)];
            let row = shared.row(sql, &values).await?;
            Ok(row.map_or(0, |row| unsigned(row.get(0))))
        })
    }

    fn disable<'a>(
        &'a self,
        endpoint: &'a str,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let endpoint = endpoint.to_owned();
        let reason = reason.as_bytes().to_vec();
        self.on(move |shared| async move {
            let sql = "UPDATE planwright.endpoints SET disabled = $2 WHERE name = $1";
            let reason = &*seal_reason(&shared.cipher, &endpoint, &reason)?;
            let values: [(Value<'_>, Type); 2] = [(&endpoint, Type::TEXT), (&reason, Type::BYTEA)];
            shared.change_quietly(sql, &values).await.map(drop)
        })
    }

    fn revive<'a>(
        &'a self,
        endpoint: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        let endpoint = endpoint.to_owned();
        self.on(move |shared| async move { shared.revive(&endpoint, now).await })
    }
}
