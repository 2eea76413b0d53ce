//! Passes as rows. Every look goes to the database, so that a session that another process ended is over with the next
//! request.

use super::commit::Value;
use super::fault::Stop;
use super::rows::{count, digest, optional_digest, principal_kind};
use super::store::{PostgresStore, Shared};
use super::wakeups::News;
use crate::sealing::{assurance_word, check_pass_mark, pass_mark};
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::policy::Role;
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::port::{BoxFuture, Pass, PassKind, Passes, StoreError};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

const COLUMNS: &str =
    "kind, hash, proof, token, bearer, name, role, assurance, created_at, expires_at, mark";

/// Of the lock by which those who add passes count them one after the other.
const COUNTING: i64 = 0x7061_7373_6573;

/// The pass, unless its row says something that was never written: then it opens nothing.
pub(super) fn pass(cipher: &Cipher, row: &Row) -> Result<Pass, StoreError> {
    let name: String = row.get(5);
    let changed = || StoreError::Failed(format!("a pass of {name} was changed in the database"));
    let assurance: String = row.get(7);
    let pass = Pass {
        kind: match row.get::<_, &str>(0) {
            "session" => PassKind::Session,
            "invitation" => PassKind::Invitation,
            _ => return Err(changed()),
        },
        hash: digest(row.get(1))?,
        proof: optional_digest(row.get(2))?,
        token: optional_digest(row.get(3))?,
        principal: Principal {
            kind: principal_kind(row.get(4)).ok_or_else(changed)?,
            name: name.clone(),
        },
        role: row
            .get::<_, &str>(6)
            .parse::<Role>()
            .map_err(|_| changed())?,
        assurance: serde_json::from_value(serde_json::Value::String(assurance))
            .map_err(|_| changed())?,
        created_at: Timestamp::from_millis(row.get(8)),
        expires_at: Timestamp::from_millis(row.get(9)),
    };
    check_pass_mark(cipher, &pass, row.get(10)).map_err(|_| changed())?;
    Ok(pass)
}

/// A pass that is kept if there are not too many.
struct Added<'a> {
    cipher: &'a Cipher,
    pass: Pass,
    most: usize,
    now: Timestamp,
}

async fn add(client: &Client, added: &Added<'_>) -> Result<bool, Stop<StoreError>> {
    let Added {
        cipher,
        pass,
        most,
        now,
    } = added;
    let values: [(Value<'_>, Type); 1] = [(&COUNTING, Type::INT8)];
    client
        .query_typed("SELECT pg_advisory_xact_lock($1)", &values)
        .await?;
    let sql = "DELETE FROM planwright.passes WHERE expires_at <= $1";
    client
        .execute_typed(sql, &[(&now.as_millis(), Type::INT8)])
        .await?;
    let sql = "SELECT count(*) FROM planwright.passes WHERE kind = $1";
    let kind = pass.kind.as_str();
    let kept: i64 = client
        .query_typed_one(sql, &[(&kind, Type::TEXT)])
        .await?
        .get(0);
    if kept >= count(*most) {
        return Ok(false);
    }
    let sql = format!(
        "INSERT INTO planwright.passes ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
         ON CONFLICT DO NOTHING"
    );
    let hash = &pass.hash.as_bytes()[..];
    let proof = pass.proof.as_ref().map(|proof| &proof.as_bytes()[..]);
    let token = pass.token.as_ref().map(|token| &token.as_bytes()[..]);
    let mark = pass_mark(cipher, pass).map_err(|error| Stop::Refused(error.into()))?;
    let values: [(Value<'_>, Type); 11] = [
        (&kind, Type::TEXT),
        (&hash, Type::BYTEA),
        (&proof, Type::BYTEA),
        (&token, Type::BYTEA),
        (&pass.principal.kind.as_str(), Type::TEXT),
        (&pass.principal.name, Type::TEXT),
        (&pass.role.as_str(), Type::TEXT),
        (&assurance_word(pass.assurance), Type::TEXT),
        (&pass.created_at.as_millis(), Type::INT8),
        (&pass.expires_at.as_millis(), Type::INT8),
        (&mark, Type::BYTEA),
    ];
    match client.execute_typed(&sql, &values).await? {
        0 => Err(Stop::failed("the pass exists already, or it is none")),
        _ => Ok(true),
    }
}

impl Shared {
    async fn find_pass(&self, kind: PassKind, hash: &Digest) -> Result<Option<Pass>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM planwright.passes WHERE hash = $1 AND kind = $2");
        let hash = &hash.as_bytes()[..];
        let values: [(Value<'_>, Type); 2] = [(&hash, Type::BYTEA), (&kind.as_str(), Type::TEXT)];
        let row = self.row(&sql, &values).await?;
        row.as_ref().map(|row| pass(&self.cipher, row)).transpose()
    }

    async fn take_pass(&self, kind: PassKind, hash: &Digest) -> Result<Option<Pass>, StoreError> {
        let sql = format!(
            "DELETE FROM planwright.passes WHERE hash = $1 AND kind = $2 RETURNING {COLUMNS}"
        );
        let hash = &hash.as_bytes()[..];
        let values: [(Value<'_>, Type); 2] = [(&hash, Type::BYTEA), (&kind.as_str(), Type::TEXT)];
        self.change(&sql, &values)
            .await?
            .first()
            .map(|row| pass(&self.cipher, row))
            .transpose()
    }

    async fn extend_pass(&self, hash: &Digest, until: Timestamp) -> Result<bool, StoreError> {
        let extending = (&*self.cipher, *hash, until);
        let extended = self
            .transact(&extending, |client, extending| {
                Box::pin(extend(client, extending))
            })
            .await?;
        self.wakeups.announce(News::Change);
        Ok(extended)
    }

    async fn list_passes(&self, kind: PassKind) -> Result<Vec<Pass>, StoreError> {
        let sql =
            format!("SELECT {COLUMNS} FROM planwright.passes WHERE kind = $1 ORDER BY number");
        let kind = kind.as_str();
        let rows = self.rows(&sql, &[(&kind, Type::TEXT)]).await?;
        rows.iter().map(|row| pass(&self.cipher, row)).collect()
    }
}

/// Lets a session last longer. The mark of its row covers how long.
async fn extend(
    client: &Client,
    (cipher, hash, until): &(&Cipher, Digest, Timestamp),
) -> Result<bool, Stop<StoreError>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM planwright.passes WHERE hash = $1 AND kind = 'session' FOR UPDATE"
    );
    let hash = &hash.as_bytes()[..];
    let row = client
        .query_typed_opt(&sql, &[(&hash, Type::BYTEA)])
        .await?;
    let Some(row) = row else { return Ok(false) };
    let extended = Pass {
        expires_at: *until,
        ..pass(cipher, &row).map_err(Stop::Refused)?
    };
    let mark = pass_mark(cipher, &extended).map_err(|error| Stop::Refused(error.into()))?;
    let sql = "UPDATE planwright.passes SET expires_at = $2, mark = $3 WHERE hash = $1";
    let values: [(Value<'_>, Type); 3] = [
        (&hash, Type::BYTEA),
        (&until.as_millis(), Type::INT8),
        (&mark, Type::BYTEA),
    ];
    client.execute_typed(sql, &values).await?;
    Ok(true)
}

impl Passes for PostgresStore {
    fn add<'a>(
        &'a self,
        pass: &'a Pass,
        most: usize,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let pass = pass.clone();
        self.on(move |shared| async move {
            let added = Added {
                cipher: &shared.cipher,
                pass,
                most,
                now,
            };
            shared
                .transact(&added, |client, added| Box::pin(add(client, added)))
                .await
        })
    }

    fn find<'a>(
        &'a self,
        kind: PassKind,
        hash: &'a Digest,
    ) -> BoxFuture<'a, Result<Option<Pass>, StoreError>> {
        let hash = *hash;
        self.on(move |shared| async move { shared.find_pass(kind, &hash).await })
    }

    fn take<'a>(
        &'a self,
        kind: PassKind,
        hash: &'a Digest,
    ) -> BoxFuture<'a, Result<Option<Pass>, StoreError>> {
        let hash = *hash;
        self.on(move |shared| async move { shared.take_pass(kind, &hash).await })
    }

    fn extend<'a>(
        &'a self,
        hash: &'a Digest,
        until: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let hash = *hash;
        self.on(move |shared| async move { shared.extend_pass(&hash, until).await })
    }

    fn list(&self, kind: PassKind) -> BoxFuture<'_, Result<Vec<Pass>, StoreError>> {
        self.on(move |shared| async move { shared.list_passes(kind).await })
    }
}
