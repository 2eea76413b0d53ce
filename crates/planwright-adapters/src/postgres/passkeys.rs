//! Passkeys as rows. Every look goes to the database, so that one that another process removed confirms nothing any more.

use super::commit::Value;
use super::fault::Stop;
use super::rows::{count, principal_kind, text};
use super::store::{PostgresStore, Shared};
use super::wakeups::News;
use crate::sealing::{check_passkey_mark, passkey_mark};
use crate::vault::Cipher;
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::port::{BoxFuture, Passkey, Passkeys, StoreError};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

const COLUMNS: &str = "id, bearer, name, label, key, counter, created_at, used_at, mark";

/// Of the lock by which those who add passkeys count them one after the other.
const COUNTING: i64 = 0x7061_7373_6b65_7973;

/// The passkey, unless its row says something that was never written: then it confirms nothing.
pub(super) fn passkey(cipher: &Cipher, row: &Row) -> Result<Passkey, StoreError> {
    let name: String = row.get(2);
    let changed = || StoreError::Failed(format!("a passkey of {name} was changed in the database"));
    let passkey = Passkey {
        id: row.get(0),
        owner: Principal {
            kind: principal_kind(row.get(1)).ok_or_else(changed)?,
            name: name.clone(),
        },
        label: text(row.get(3)),
        key: row.get(4),
        counter: u32::try_from(row.get::<_, i64>(5)).map_err(|_| changed())?,
        created_at: Timestamp::from_millis(row.get(6)),
        used_at: row.get::<_, Option<i64>>(7).map(Timestamp::from_millis),
    };
    check_passkey_mark(cipher, &passkey, row.get(8)).map_err(|_| changed())?;
    Ok(passkey)
}

/// A passkey that is kept if its owner has not too many.
struct Added<'a> {
    cipher: &'a Cipher,
    passkey: Passkey,
    most: usize,
}

async fn add(client: &Client, added: &Added<'_>) -> Result<bool, Stop<StoreError>> {
    let Added {
        cipher,
        passkey,
        most,
    } = added;
    let values: [(Value<'_>, Type); 1] = [(&COUNTING, Type::INT8)];
    client
        .query_typed("SELECT pg_advisory_xact_lock($1)", &values)
        .await?;
    let kind = passkey.owner.kind.as_str();
    let name = &passkey.owner.name;
    let sql = "SELECT count(*) FROM planwright.passkeys WHERE name = $1 AND bearer = $2";
    let values: [(Value<'_>, Type); 2] = [(name, Type::TEXT), (&kind, Type::TEXT)];
    let kept: i64 = client.query_typed_one(sql, &values).await?.get(0);
    if kept >= count(*most) {
        return Ok(false);
    }
    let sql = format!(
        "INSERT INTO planwright.passkeys ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT DO NOTHING"
    );
    let mark = passkey_mark(cipher, passkey).map_err(|error| Stop::Refused(error.into()))?;
    let values: [(Value<'_>, Type); 9] = [
        (&passkey.id, Type::BYTEA),
        (&kind, Type::TEXT),
        (name, Type::TEXT),
        (&passkey.label.as_bytes(), Type::BYTEA),
        (&passkey.key, Type::BYTEA),
        (&i64::from(passkey.counter), Type::INT8),
        (&passkey.created_at.as_millis(), Type::INT8),
        (&passkey.used_at.map(Timestamp::as_millis), Type::INT8),
        (&mark, Type::BYTEA),
    ];
    match client.execute_typed(&sql, &values).await? {
        0 => Err(Stop::failed("the passkey exists already, or it is none")),
        _ => Ok(true),
    }
}

/// A use of a passkey, which counts.
struct Use<'a> {
    cipher: &'a Cipher,
    id: &'a [u8],
    before: u32,
    counter: u32,
    at: Timestamp,
}

/// Notes a use, unless another one was noted since the counter was read. The mark of the row covers it.
async fn note_use(client: &Client, using: &Use<'_>) -> Result<bool, Stop<StoreError>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM planwright.passkeys WHERE id = $1 AND counter = $2 FOR UPDATE"
    );
    let values: [(Value<'_>, Type); 2] = [
        (&using.id, Type::BYTEA),
        (&i64::from(using.before), Type::INT8),
    ];
    let Some(row) = client.query_typed_opt(&sql, &values).await? else {
        return Ok(false);
    };
    let used = Passkey {
        counter: using.counter,
        used_at: Some(using.at),
        ..passkey(using.cipher, &row).map_err(Stop::Refused)?
    };
    let mark = passkey_mark(using.cipher, &used).map_err(|error| Stop::Refused(error.into()))?;
    let sql = "UPDATE planwright.passkeys SET counter = $2, used_at = $3, mark = $4 WHERE id = $1";
    let values: [(Value<'_>, Type); 4] = [
        (&using.id, Type::BYTEA),
        (&i64::from(using.counter), Type::INT8),
        (&using.at.as_millis(), Type::INT8),
        (&mark, Type::BYTEA),
    ];
    client.execute_typed(sql, &values).await?;
    Ok(true)
}

impl Shared {
    async fn list_passkeys(&self, owner: &Principal) -> Result<Vec<Passkey>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM planwright.passkeys WHERE name = $1 AND bearer = $2 ORDER BY number"
        );
        let values: [(Value<'_>, Type); 2] = [
            (&owner.name, Type::TEXT),
            (&owner.kind.as_str(), Type::TEXT),
        ];
        self.rows(&sql, &values)
            .await?
            .iter()
            .map(|row| passkey(&self.cipher, row))
            .collect()
    }

    async fn note_passkey_use(
        &self,
        id: &[u8],
        (before, counter): (u32, u32),
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let using = Use {
            cipher: &self.cipher,
            id,
            before,
            counter,
            at,
        };
        let noted = self
            .transact(&using, |client, using| Box::pin(note_use(client, using)))
            .await?;
        self.wakeups.announce(News::Change);
        Ok(noted)
    }

    async fn remove_passkey(&self, owner: &Principal, id: &[u8]) -> Result<bool, StoreError> {
        let sql = "DELETE FROM planwright.passkeys WHERE id = $1 AND name = $2 AND bearer = $3 RETURNING 1";
        let values: [(Value<'_>, Type); 3] = [
            (&id, Type::BYTEA),
            (&owner.name, Type::TEXT),
            (&owner.kind.as_str(), Type::TEXT),
        ];
        Ok(!self.change(sql, &values).await?.is_empty())
    }
}

impl Passkeys for PostgresStore {
    fn add<'a>(
        &'a self,
        passkey: &'a Passkey,
        most: usize,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let passkey = passkey.clone();
        self.on(move |shared| async move {
            let added = Added {
                cipher: &shared.cipher,
                passkey,
                most,
            };
            shared
                .transact(&added, |client, added| Box::pin(add(client, added)))
                .await
        })
    }

    fn list<'a>(&'a self, owner: &'a Principal) -> BoxFuture<'a, Result<Vec<Passkey>, StoreError>> {
        let owner = owner.clone();
        self.on(move |shared| async move { shared.list_passkeys(&owner).await })
    }

    fn note_use<'a>(
        &'a self,
        id: &'a [u8],
        counters: (u32, u32),
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let id = id.to_vec();
        self.on(move |shared| async move { shared.note_passkey_use(&id, counters, at).await })
    }

    fn remove<'a>(
        &'a self,
        owner: &'a Principal,
        id: &'a [u8],
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let owner = owner.clone();
        let id = id.to_vec();
        self.on(move |shared| async move { shared.remove_passkey(&owner, &id).await })
    }
}
