//! Sign-ins to the servers of tools as rows.

use super::appending::millis;
use super::commit::Value;
use super::rows::NOW;
use super::store::{PostgresStore, Shared};
use crate::sealing::{open_sign_in, seal_sign_in};
use planwright_engine::port::{BoxFuture, SignInStore, StoreError};
use std::time::Duration;
use tokio_postgres::types::Type;

impl Shared {
    async fn load_sign_in(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT kept FROM planwright.sign_ins WHERE name = $1";
        let row = self.row(sql, &[(&name, Type::TEXT)]).await?;
        let opened = row.map(|row| open_sign_in(&self.cipher, name, row.get(0)));
        opened
            .transpose()
            .map_err(|error| StoreError::Failed(format!("a sign-in to a server: {error}")))
    }

    async fn save_sign_in(&self, name: &str, kept: &[u8]) -> Result<(), StoreError> {
        let sql = "INSERT INTO planwright.sign_ins (name, kept) VALUES ($1, $2) \
                   ON CONFLICT (name) DO UPDATE SET kept = $2, renewing_by = NULL, renewing_until = NULL";
        let kept = &*seal_sign_in(&self.cipher, name, kept)?;
        let values: [(Value<'_>, Type); 2] = [(&name, Type::TEXT), (&kept, Type::BYTEA)];
        self.change_quietly(sql, &values).await.map(drop)
    }

    async fn forget_sign_in(&self, name: &str) -> Result<bool, StoreError> {
        let sql = "DELETE FROM planwright.sign_ins WHERE name = $1 RETURNING 1";
        let forgotten = self.change_quietly(sql, &[(&name, Type::TEXT)]).await?;
        Ok(!forgotten.is_empty())
    }

    async fn take_renewal(&self, name: &str, by: &str, ttl: Duration) -> Result<bool, StoreError> {
        let sql = format!(
            "UPDATE planwright.sign_ins SET renewing_by = $2, renewing_until = {NOW} + $3 \
             WHERE name = $1 AND (renewing_by = $2 OR coalesce(renewing_until, 0) <= {NOW}) RETURNING 1"
        );
        let values: [(Value<'_>, Type); 3] = [
            (&name, Type::TEXT),
            (&by, Type::TEXT),
            (&millis(ttl), Type::INT8),
        ];
        Ok(!self.change_quietly(&sql, &values).await?.is_empty())
    }

    async fn end_renewal(
        &self,
        name: &str,
        by: &str,
        renewed: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE planwright.sign_ins SET kept = coalesce($3, kept), renewing_by = NULL, renewing_until = NULL \
                   WHERE name = $1 AND renewing_by = $2 RETURNING 1";
        let renewed = renewed
            .map(|renewed| seal_sign_in(&self.cipher, name, renewed))
            .transpose()?;
        let values: [(Value<'_>, Type); 3] = [
            (&name, Type::TEXT),
            (&by, Type::TEXT),
            (&renewed.as_deref(), Type::BYTEA),
        ];
        self.change_quietly(sql, &values).await.map(drop)
    }
}

impl SignInStore for PostgresStore {
    fn load_sign_in<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let name = name.to_owned();
        self.on(move |shared| async move { shared.load_sign_in(&name).await })
    }

    fn save_sign_in<'a>(
        &'a self,
        name: &'a str,
        kept: &'a [u8],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (name, kept) = (name.to_owned(), kept.to_owned());
        self.on(move |shared| async move { shared.save_sign_in(&name, &kept).await })
    }

    fn forget_sign_in<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        let name = name.to_owned();
        self.on(move |shared| async move { shared.forget_sign_in(&name).await })
    }

    fn take_renewal<'a>(
        &'a self,
        name: &'a str,
        by: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let (name, by) = (name.to_owned(), by.to_owned());
        self.on(move |shared| async move { shared.take_renewal(&name, &by, ttl).await })
    }

    fn end_renewal<'a>(
        &'a self,
        name: &'a str,
        by: &'a str,
        renewed: Option<&'a [u8]>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (name, by) = (name.to_owned(), by.to_owned());
        let renewed = renewed.map(<[u8]>::to_vec);
        self.on(
            move |shared| async move { shared.end_renewal(&name, &by, renewed.as_deref()).await },
        )
    }
}
