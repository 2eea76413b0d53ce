//! Tokens as rows. Every look goes to the database, so that what another process revokes counts with the next request.

use super::commit::Value;
use super::fault::Stop;
use super::rows::{digest, principal_kind};
use super::store::{PostgresStore, Shared};
use super::wakeups::News;
use crate::sealing::{check_token_mark, token_mark};
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::policy::Role;
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::port::{BoxFuture, StoreError, Token, TokenId, Tokens};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

const COLUMNS: &str = "id, hash, kind, name, role, created_at, expires_at, revoked_at, mark";

/// The token, unless its row says something that was never written: then it opens nothing.
pub(super) fn token(cipher: &Cipher, row: &Row) -> Result<Token, StoreError> {
    let id: String = row.get(0);
    let changed = || StoreError::Failed(format!("the token {id} was changed in the database"));
    let token = Token {
        hash: digest(row.get(1))?,
        principal: Principal {
            kind: principal_kind(row.get(2)).ok_or_else(changed)?,
            name: row.get(3),
        },
        role: row
            .get::<_, &str>(4)
            .parse::<Role>()
            .map_err(|_| changed())?,
        created_at: Timestamp::from_millis(row.get(5)),
        expires_at: row.get::<_, Option<i64>>(6).map(Timestamp::from_millis),
        revoked_at: row.get::<_, Option<i64>>(7).map(Timestamp::from_millis),
        id: TokenId(id.clone()),
    };
    check_token_mark(cipher, &token, row.get(8)).map_err(|_| changed())?;
    Ok(token)
}

impl Shared {
    async fn add_token(&self, token: &Token) -> Result<(), StoreError> {
        let sql = format!(
            "INSERT INTO planwright.tokens ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
             ON CONFLICT DO NOTHING RETURNING 1"
        );
        let hash = &token.hash.as_bytes()[..];
        let mark = token_mark(&self.cipher, token)?;
        let values: [(Value<'_>, Type); 9] = [
            (&token.id.0, Type::TEXT),
            (&hash, Type::BYTEA),
            (&token.principal.kind.as_str(), Type::TEXT),
            (&token.principal.name, Type::TEXT),
            (&token.role.as_str(), Type::TEXT),
            (&token.created_at.as_millis(), Type::INT8),
            (&token.expires_at.map(Timestamp::as_millis), Type::INT8),
            (&token.revoked_at.map(Timestamp::as_millis), Type::INT8),
            (&mark, Type::BYTEA),
        ];
        if self.change(&sql, &values).await?.is_empty() {
            let id = &token.id.0;
            return Err(StoreError::Failed(format!(
                "the token {id} exists already, or it is none"
            )));
        }
        Ok(())
    }

    async fn find_token(&self, hash: &Digest) -> Result<Option<Token>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM planwright.tokens WHERE hash = $1");
        let hash = &hash.as_bytes()[..];
        let row = self.row(&sql, &[(&hash, Type::BYTEA)]).await?;
        row.as_ref().map(|row| token(&self.cipher, row)).transpose()
    }

    async fn list_tokens(&self) -> Result<Vec<Token>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM planwright.tokens ORDER BY number");
        let rows = self.rows(&sql, &[]).await?;
        rows.iter().map(|row| token(&self.cipher, row)).collect()
    }

    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<bool, StoreError> {
        let revoking = (&*self.cipher, id, at);
        let revoked = self
            .transact(&revoking, |client, revoking| {
                Box::pin(revoke(client, revoking))
            })
            .await?;
        self.wakeups.announce(News::Change);
        Ok(revoked)
    }
}

/// Revokes a token. The mark of its row covers when.
async fn revoke(
    client: &Client,
    (cipher, id, at): &(&Cipher, &TokenId, Timestamp),
) -> Result<bool, Stop<StoreError>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM planwright.tokens WHERE id = $1 AND revoked_at IS NULL \
         AND (expires_at IS NULL OR expires_at > $2) FOR UPDATE"
    );
    let values: [(Value<'_>, Type); 2] = [(&id.0, Type::TEXT), (&at.as_millis(), Type::INT8)];
    let Some(row) = client.query_typed_opt(&sql, &values).await? else {
        return Ok(false);
    };
    let revoked = Token {
        revoked_at: Some(*at),
        ..token(cipher, &row).map_err(Stop::Refused)?
    };
    let mark = token_mark(cipher, &revoked).map_err(|error| Stop::Refused(error.into()))?;
    let sql = "UPDATE planwright.tokens SET revoked_at = $2, mark = $3 WHERE id = $1";
    let values: [(Value<'_>, Type); 3] = [
        (&id.0, Type::TEXT),
        (&at.as_millis(), Type::INT8),
        (&mark, Type::BYTEA),
    ];
    client.execute_typed(sql, &values).await?;
    Ok(true)
}

impl Tokens for PostgresStore {
    fn add<'a>(&'a self, token: &'a Token) -> BoxFuture<'a, Result<(), StoreError>> {
        let token = token.clone();
        self.on(move |shared| async move { shared.add_token(&token).await })
    }

    fn find<'a>(&'a self, hash: &'a Digest) -> BoxFuture<'a, Result<Option<Token>, StoreError>> {
        let hash = *hash;
        self.on(move |shared| async move { shared.find_token(&hash).await })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Token>, StoreError>> {
        self.on(|shared| async move { shared.list_tokens().await })
    }

    fn revoke<'a>(
        &'a self,
        id: &'a TokenId,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let id = id.clone();
        self.on(move |shared| async move { shared.revoke_token(&id, at).await })
    }
}
