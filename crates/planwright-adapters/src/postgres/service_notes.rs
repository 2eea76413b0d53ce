//! Notes between services as rows, and the keys that services have in common.
//!
//! Each is one statement that may be made twice: where an answer is lost, a person does one click again.

use super::commit::Value;
use super::rows::count;
use super::store::{PostgresStore, Shared};
use crate::sealing::{open_note, open_shared_key, seal_note, seal_shared_key};
use crate::vault::OpenSealedError;
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    BoxFuture, NoteKind, ServiceNote, ServiceNotes, StoreError, random_key,
};
use tokio_postgres::types::Type;
use zeroize::Zeroizing;

impl Shared {
    async fn put_note(
        &self,
        note: &ServiceNote,
        most: usize,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let sql = "INSERT INTO planwright.service_notes (kind, key, value, expires_at) SELECT $1, $2, $3, $4 \
                   WHERE (SELECT count(*) FROM planwright.service_notes \
                          WHERE kind = $1 AND key <> $2 AND expires_at > $6) < $5 \
                   ON CONFLICT (kind, key) DO UPDATE SET value = $3, expires_at = $4 RETURNING 1";
        let place = (note.kind.as_str(), &note.key);
        let value = seal_note(&self.cipher, place, &note.value)?;
        let key = &note.key.as_bytes()[..];
        let values: [(Value<'_>, Type); 6] = [
            (&note.kind.as_str(), Type::TEXT),
            (&key, Type::BYTEA),
            (&value.as_ref(), Type::BYTEA),
            (&note.expires_at.as_millis(), Type::INT8),
            (&count(most), Type::INT8),
            (&now.as_millis(), Type::INT8),
        ];
        Ok(self.row(sql, &values).await?.is_some())
    }

    async fn read_note(
        &self,
        sql: &str,
        (kind, key): (NoteKind, &Digest),
        now: Timestamp,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = &key.as_bytes()[..];
        let values: [(Value<'_>, Type); 3] = [
            (&kind.as_str(), Type::TEXT),
            (&bytes, Type::BYTEA),
            (&now.as_millis(), Type::INT8),
        ];
        let row = self.row(sql, &values).await?;
        let value = row.and_then(|row| row.get::<_, bool>(0).then(|| row.get(1)));
        let opened = value.map(|value| open_note(&self.cipher, (kind.as_str(), key), value));
        opened.transpose().map_err(|error| unreadable(&error))
    }

    async fn shared_key(&self, name: &str) -> Result<Zeroizing<String>, StoreError> {
        let made = random_key()?;
        // Of several services that make it at once, one does, and all read what it made.
        let sql =
            "INSERT INTO planwright.shared_keys (name, key) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        let find = "SELECT key FROM planwright.shared_keys WHERE name = $1";
        let made = seal_shared_key(&self.cipher, name, &made)?;
        let values: [(Value<'_>, Type); 2] = [(&name, Type::TEXT), (&made.as_ref(), Type::TEXT)];
        let read = |kept: String| {
            let opened = open_shared_key(&self.cipher, name, kept);
            let opened = opened.map_err(|error| unreadable(&error));
            opened.map(Zeroizing::new)
        };
        if let Some(row) = self.row(find, &values[..1]).await? {
            return read(row.get(0));
        }
        self.change_quietly(sql, &values).await?;
        let row = self.row(find, &values[..1]).await?;
        let row = row.ok_or_else(|| {
            StoreError::Failed("a key of the services was removed from the database".to_owned())
        })?;
        read(row.get(0))
    }
}

fn unreadable(error: &OpenSealedError) -> StoreError {
    StoreError::Failed(format!("what services have in common: {error}"))
}

impl ServiceNotes for PostgresStore {
    fn are_shared(&self) -> bool {
        true
    }

    fn put_note<'a>(
        &'a self,
        note: &'a ServiceNote,
        most: usize,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let note = note.clone();
        self.on(move |shared| async move { shared.put_note(&note, most, now).await })
    }

    fn find_note<'a>(
        &'a self,
        kind: NoteKind,
        key: &'a Digest,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let key = *key;
        let sql = "SELECT expires_at > $3, value FROM planwright.service_notes WHERE kind = $1 AND key = $2";
        self.on(move |shared| async move { shared.read_note(sql, (kind, &key), now).await })
    }

    fn take_note<'a>(
        &'a self,
        kind: NoteKind,
        key: &'a Digest,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let key = *key;
        let sql = "DELETE FROM planwright.service_notes WHERE kind = $1 AND key = $2 RETURNING expires_at > $3, value";
        self.on(move |shared| async move { shared.read_note(sql, (kind, &key), now).await })
    }

    fn shared_key<'a>(
        &'a self,
        name: &'static str,
    ) -> BoxFuture<'a, Result<Zeroizing<String>, StoreError>> {
        self.on(move |shared| async move { shared.shared_key(name).await })
    }
}
