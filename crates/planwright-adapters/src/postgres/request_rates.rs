//! The buckets of requests as rows, by the clock of the database, and the services that share them.

use super::commit::Value;
use super::rows::unsigned;
use super::store::{PostgresStore, Shared};
use planwright_engine::port::{BoxFuture, OwnerId, RequestRates, StoreError, WantedRequests};
use tokio_postgres::types::Type;

/// What has come into a bucket since it was looked at.
const FILLED: &str =
    "least($2, b.free + greatest(0, extract(epoch FROM statement_timestamp() - b.at)) * $3)";

impl Shared {
    async fn take_requests(&self, wanted: &WantedRequests) -> Result<u32, StoreError> {
        // One statement, which waits for no disk. If it is made twice, some requests are lost.
        let sql = format!(
            "INSERT INTO planwright.request_rates AS b (principal, free, granted, at) \
             VALUES ($1, $2 - least($2, $4), floor(least($2, $4)), statement_timestamp()) \
             ON CONFLICT (principal) DO UPDATE SET \
             granted = floor(greatest(0, least($4, {FILLED}))), \
             free = {FILLED} - floor(greatest(0, least($4, {FILLED}))), \
             at = greatest(b.at, statement_timestamp()) RETURNING b.granted"
        );
        let principal = &wanted.principal.as_bytes()[..];
        let values: [(Value<'_>, Type); 4] = [
            (&principal, Type::BYTEA),
            (&f64::from(wanted.capacity), Type::FLOAT8),
            (&wanted.per_second, Type::FLOAT8),
            (&f64::from(wanted.wanted), Type::FLOAT8),
        ];
        let row = self.row(&sql, &values).await?;
        let granted = row.map_or(0, |row| unsigned(row.get(0)));
        Ok(u32::try_from(granted).unwrap_or(u32::MAX))
    }

    async fn note_service(&self, service: &OwnerId) -> Result<u32, StoreError> {
        let sql = "INSERT INTO planwright.services (id, seen_at) VALUES ($1, clock_timestamp()) \
                   ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()";
        self.rows(sql, &[(&service.0, Type::TEXT)]).await?;
        // One that died without a word is counted for three of its turns.
        let sql = "SELECT count(*) FROM planwright.services WHERE seen_at > clock_timestamp() - interval '15 seconds'";
        let row = self.row(sql, &[]).await?;
        let services = row.map_or(1, |row| unsigned(row.get(0)));
        Ok(u32::try_from(services).unwrap_or(u32::MAX).max(1))
    }

    async fn remove_service(&self, service: &OwnerId) -> Result<(), StoreError> {
        let sql = "DELETE FROM planwright.services WHERE id = $1";
        self.rows(sql, &[(&service.0, Type::TEXT)]).await.map(drop)
    }
}

impl RequestRates for PostgresStore {
    fn take_requests(&self, wanted: WantedRequests) -> BoxFuture<'_, Result<u32, StoreError>> {
        self.on(move |shared| async move { shared.take_requests(&wanted).await })
    }

    fn note_service<'a>(&'a self, service: &'a OwnerId) -> BoxFuture<'a, Result<u32, StoreError>> {
        let service = service.clone();
        self.on(move |shared| async move { shared.note_service(&service).await })
    }

    fn remove_service<'a>(&'a self, service: &'a OwnerId) -> BoxFuture<'a, Result<(), StoreError>> {
        let service = service.clone();
        self.on(move |shared| async move { shared.remove_service(&service).await })
    }
}
