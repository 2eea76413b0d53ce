//! Journals that are closed, and journals that are removed for good.
//!
//! A sealed journal stays in the database: it takes no more entries, and only a sealed journal is removed. There are no
//! sealed files, because no machine is the one that they would belong to.

use super::artifacts::{RECENT, artifact_name};
use super::commit::{Value, new_mark};
use super::fault::Stop;
use super::rows::{count, digest, now, record, stream_name, unsigned};
use super::store::{PostgresStore, Shared};
use crate::sealing::mask_head;
use crate::sqlite::collect_digests;
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, StreamName};
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    BoxFuture, Position, Removed, RetainError, RetentionStore, RetentionTurn, SealCursor,
    SealedJournal, StoreError, StreamInfo,
};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

/// Where a sealed journal is, as messages say it.
const PLACE: &str = "the database";
/// Entries that are looked through at a time.
const SCANNED_AT_ONCE: i64 = 500;

/// A turn, which ends when it is dropped.
struct Turn {
    shared: Arc<Shared>,
    token: Vec<u8>,
    runtime: tokio::runtime::Handle,
    taken: Arc<AtomicBool>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let shared = Arc::clone(&self.shared);
        let token = std::mem::take(&mut self.token);
        self.taken.store(false, Ordering::Release);
        self.runtime.spawn(async move {
            // A row that stays is taken over when its time is up.
            let sql = "DELETE FROM planwright.turns WHERE token = $1";
            drop(shared.rows(sql, &[(&token, Type::BYTEA)]).await);
        });
    }
}

/// A stream that is locked, with its head.
struct Locked {
    id: i64,
    is_sealed: bool,
    head: Head,
}

/// Locks a stream, and then reads where it ends. The lease of a run is locked too: an owner may append with that alone.
async fn lock<E: From<StoreError>>(
    client: &Client,
    cipher: &Cipher,
    stream: &StreamName,
) -> Result<Option<Locked>, Stop<E>> {
    let name = stream.to_string();
    let values: [(Value<'_>, Type); 1] = [(&name, Type::TEXT)];
    let sql = "SELECT id, sealed_at IS NOT NULL FROM planwright.streams WHERE name = $1 FOR UPDATE";
    let Some(row) = client.query_typed_opt(sql, &values).await? else {
        return Ok(None);
    };
    let id: i64 = row.get(0);
    if let StreamName::Run(run) = stream {
        let sql = "SELECT 1 FROM planwright.leases WHERE run = $1 FOR UPDATE";
        let run: [(Value<'_>, Type); 1] = [(&run.as_str(), Type::TEXT)];
        client.query_typed(sql, &run).await?;
    }
    let sql =
        "SELECT seq, hash FROM planwright.entries WHERE stream = $1 ORDER BY seq DESC LIMIT 1";
    let head = client.query_typed_opt(sql, &[(&id, Type::INT8)]).await?;
    let head = match head {
        Some(head) => {
            let kept = Head {
                seq: unsigned(head.get(0)),
                hash: digest(head.get(1)).map_err(|error| Stop::Refused(error.into()))?,
            };
            mask_head(cipher, &name, kept)
        }
        None => Head::EMPTY,
    };
    Ok(Some(Locked {
        id,
        is_sealed: row.get(1),
        head,
    }))
}

struct Sealing<'a> {
    cipher: &'a Cipher,
    stream: StreamName,
    expected: Head,
    now: Timestamp,
}

async fn seal(client: &Client, sealing: &Sealing<'_>) -> Result<u64, Stop<RetainError>> {
    let stream = &sealing.stream;
    let changed = || Stop::Refused(RetainError::Changed(stream.clone()));
    let found = lock(client, sealing.cipher, stream)
        .await?
        .ok_or_else(changed)?;
    if found.is_sealed || found.head != sealing.expected {
        return Err(changed());
    }
    if let StreamName::Run(run) = stream {
        let sql = "SELECT 1 FROM planwright.messages WHERE run = $1 AND NOT answered LIMIT 1";
        let run = run.as_str();
        let waits = client.query_typed_opt(sql, &[(&run, Type::TEXT)]).await?;
        if waits.is_some() {
            return Err(changed());
        }
        // An append of an owner that waits for its lease right now looks at the lease once more, and not at the stream.
        let sql = "UPDATE planwright.leases SET owner = NULL WHERE run = $1 AND owner IS NOT NULL";
        client.execute_typed(sql, &[(&run, Type::TEXT)]).await?;
    }
    let sql = "UPDATE planwright.streams SET sealed_at = $2 WHERE id = $1";
    let values: [(Value<'_>, Type); 2] = [
        (&found.id, Type::INT8),
        (&sealing.now.as_millis(), Type::INT8),
    ];
    client.execute_typed(sql, &values).await?;
    Ok(bytes_of(client, found.id).await?)
}

async fn bytes_of(client: &Client, id: i64) -> Result<u64, Error> {
    let sql = "SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM planwright.entries WHERE stream = $1";
    let row = client.query_typed_one(sql, &[(&id, Type::INT8)]).await?;
    Ok(unsigned(row.get(0)))
}

async fn restore(
    client: &Client,
    (cipher, stream): &(&Cipher, StreamName),
) -> Result<(), Stop<RetainError>> {
    let not_sealed = || Stop::Refused(RetainError::NotSealed(stream.clone()));
    let found = lock(client, cipher, stream).await?.ok_or_else(not_sealed)?;
    if !found.is_sealed {
        return Err(not_sealed());
    }
    let sql = "UPDATE planwright.streams SET sealed_at = NULL WHERE id = $1";
    client
        .execute_typed(sql, &[(&found.id, Type::INT8)])
        .await?;
    Ok(())
}

async fn remove(
    client: &Client,
    (cipher, streams): &(&Cipher, Vec<StreamName>),
) -> Result<Removed, Stop<RetainError>> {
    let mut removed = Removed::default();
    for stream in streams {
        let not_sealed = || Stop::Refused(RetainError::NotSealed(stream.clone()));
        let found = lock(client, cipher, stream).await?.ok_or_else(not_sealed)?;
        if !found.is_sealed {
            return Err(not_sealed());
        }
        removed.files += 1;
        removed.bytes += bytes_of(client, found.id).await?;
        touch_artifacts(client, cipher, (found.id, stream)).await?;
        let id: [(Value<'_>, Type); 1] = [(&found.id, Type::INT8)];
        for sql in [
            "DELETE FROM planwright.entries WHERE stream = $1",
            "DELETE FROM planwright.places WHERE stream = $1",
            "DELETE FROM planwright.unplaced WHERE stream = $1",
            "DELETE FROM planwright.streams WHERE id = $1",
        ] {
            client.execute_typed(sql, &id).await?;
        }
        forget_beside(client, stream).await?;
    }
    Ok(removed)
}

/// A run that was forked from one of them may be about to name the same large values: they get their time of grace anew.
async fn touch_artifacts(
    client: &Client,
    cipher: &Cipher,
    (id, stream): (i64, &StreamName),
) -> Result<(), Stop<RetainError>> {
    let mut named = HashSet::new();
    let mut after: i64 = 0;
    loop {
        let sql = "SELECT seq, at, epoch, key, body, hash FROM planwright.entries \
                   WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        let values: [(Value<'_>, Type); 3] = [
            (&id, Type::INT8),
            (&after, Type::INT8),
            (&SCANNED_AT_ONCE, Type::INT8),
        ];
        let rows = client.query_typed(sql, &values).await?;
        for row in &rows {
            let record =
                record(cipher, row, 0, stream).map_err(|error| Stop::Refused(error.into()))?;
            collect_digests(&record.body, &mut named);
        }
        match rows.last() {
            Some(last) => after = last.get(0),
            None => break,
        }
    }
    let names: Vec<Digest> = named
        .iter()
        .map(|digest| artifact_name(cipher, digest))
        .collect();
    let names: Vec<&[u8]> = names.iter().map(|name| &name.as_bytes()[..]).collect();
    let sql =
        "UPDATE planwright.artifacts SET asked_at = greatest(asked_at, $2) WHERE digest = ANY($1)";
    let now = now().as_millis();
    let values: [(Value<'_>, Type); 2] = [(&names, Type::BYTEA_ARRAY), (&now, Type::INT8)];
    client.execute_typed(sql, &values).await?;
    Ok(())
}

/// Removes what other tables have about a stream.
async fn forget_beside(client: &Client, stream: &StreamName) -> Result<(), Error> {
    let (name, statements) = match stream {
        StreamName::Run(run) => (
            run.as_str(),
            [
                "DELETE FROM planwright.leases WHERE run = $1",
                "DELETE FROM planwright.messages WHERE run = $1",
            ],
        ),
        // What was brought to a plan is given back with it.
        StreamName::Plan(plan) => (
            plan.as_str(),
            [
                "UPDATE planwright.brought_in_all AS a SET bytes = greatest(0, a.bytes - b.bytes) \
                 FROM planwright.brought AS b WHERE b.plan = $1 AND b.principal = a.principal",
                "DELETE FROM planwright.brought WHERE plan = $1",
            ],
        ),
    };
    for sql in statements {
        client.execute_typed(sql, &[(&name, Type::TEXT)]).await?;
    }
    Ok(())
}

const SEALED: &str = "SELECT s.name, s.sealed_at, e.seq, e.hash, \
     (SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM planwright.entries WHERE stream = s.id) \
     FROM planwright.streams AS s \
     LEFT JOIN LATERAL (SELECT seq, hash FROM planwright.entries WHERE stream = s.id ORDER BY seq DESC LIMIT 1) AS e ON true";

fn sealed_journal(cipher: &Cipher, row: &Row) -> Result<SealedJournal, StoreError> {
    let seq: Option<i64> = row.get(2);
    Ok(SealedJournal {
        stream: stream_name(row.get(0))?,
        head: match seq {
            Some(seq) => {
                let kept = Head {
                    seq: unsigned(seq),
                    hash: digest(row.get(3))?,
                };
                mask_head(cipher, row.get(0), kept)
            }
            None => Head::EMPTY,
        },
        file: PLACE.to_owned(),
        bytes: unsigned(row.get(4)),
        sealed_at: Timestamp::from_millis(row.get(1)),
    })
}

impl Shared {
    async fn take_turn(&self, token: &[u8]) -> Result<bool, StoreError> {
        let sql = "INSERT INTO planwright.turns AS t (name, token, until) \
                   VALUES ('retention', $1, now() + interval '10 minutes') \
                   ON CONFLICT (name) DO UPDATE SET token = $1, until = excluded.until \
                   WHERE t.until < now() OR substring(t.token for 16) = substring($1 for 16) RETURNING 1";
        let values: [(Value<'_>, Type); 1] = [(&token, Type::BYTEA)];
        Ok(!self.rows(sql, &values).await?.is_empty())
    }

    async fn sealed_plans(
        &self,
        until: Timestamp,
        after: Option<SealCursor>,
        limit: usize,
    ) -> Result<Vec<SealedJournal>, StoreError> {
        let (time, name) = after.map_or_else(
            || (i64::MIN, String::new()),
            |(time, stream)| (time.as_millis(), stream.to_string()),
        );
        let sql = format!(
            "{SEALED} WHERE s.kind = 'plan' AND s.sealed_at <= $1 AND (s.sealed_at, s.name) > ($2, $3) \
             ORDER BY s.sealed_at, s.name LIMIT $4"
        );
        let values: [(Value<'_>, Type); 4] = [
            (&until.as_millis(), Type::INT8),
            (&time, Type::INT8),
            (&name, Type::TEXT),
            (&count(limit), Type::INT8),
        ];
        let rows = self.rows(&sql, &values).await?;
        rows.iter()
            .map(|row| sealed_journal(&self.cipher, row))
            .collect()
    }

    async fn last_position(&self, stream: &StreamName) -> Result<Option<Position>, StoreError> {
        super::feed::place(self).await?;
        let sql = "SELECT max(p.last) FROM planwright.places AS p \
                   JOIN planwright.streams AS s ON s.id = p.stream WHERE s.name = $1";
        let name = stream.to_string();
        let row = self.row(sql, &[(&name, Type::TEXT)]).await?;
        let last: Option<i64> = row.and_then(|row| row.get(0));
        Ok(last.map(|last| Position(unsigned(last))))
    }

    async fn remove_unused(&self, before: Timestamp, dry_run: bool) -> Result<Removed, StoreError> {
        let before = before.minus(RECENT).as_millis();
        let sql = "SELECT digest FROM planwright.artifacts WHERE asked_at < $1";
        let old = self.rows(sql, &[(&before, Type::INT8)]).await?;
        // Without an old value there is nothing to look for.
        if old.is_empty() {
            return Ok(Removed::default());
        }
        let used = self.named_digests().await?;
        // Values are looked for by the names that they have in the table.
        let used: HashSet<Digest> = used
            .iter()
            .map(|digest| self.artifact_name(digest))
            .collect();
        let old: Result<Vec<Digest>, StoreError> =
            old.iter().map(|row| digest(row.get(0))).collect();
        let old = old?;
        let unused = old.iter().filter(|digest| !used.contains(*digest));
        let unused: Vec<&[u8]> = unused.map(|digest| &digest.as_bytes()[..]).collect();
        // One that was asked for meanwhile stays: the database looks at the row again when it has waited for it.
        let sql = if dry_run {
            "SELECT octet_length(bytes)::bigint FROM planwright.artifacts WHERE digest = ANY($1) AND asked_at < $2"
        } else {
            "DELETE FROM planwright.artifacts WHERE digest = ANY($1) AND asked_at < $2 RETURNING octet_length(bytes)::bigint"
        };
        let values: [(Value<'_>, Type); 2] = [(&unused, Type::BYTEA_ARRAY), (&before, Type::INT8)];
        self.recent_artifacts.clear();
        let mut removed = Removed::default();
        for row in self.rows(sql, &values).await? {
            removed.files += 1;
            removed.bytes += unsigned(row.get(0));
        }
        Ok(removed)
    }

    /// Every digest that any journal, or a command that waits, names.
    async fn named_digests(&self) -> Result<HashSet<Digest>, StoreError> {
        let mut found = HashSet::new();
        let mut place: (i64, i64) = (0, 0);
        loop {
            let sql = "SELECT e.stream, s.name, e.seq, e.at, e.epoch, e.key, e.body, e.hash FROM (\
                         SELECT * FROM planwright.entries \
                         WHERE (stream, seq) > ($1, $2) ORDER BY stream, seq LIMIT $3) AS e \
                       JOIN planwright.streams AS s ON s.id = e.stream ORDER BY e.stream, e.seq";
            let values: [(Value<'_>, Type); 3] = [
                (&place.0, Type::INT8),
                (&place.1, Type::INT8),
                (&SCANNED_AT_ONCE, Type::INT8),
            ];
            let rows = self.rows(sql, &values).await?;
            for row in &rows {
                let stream = stream_name(row.get(1))?;
                let record = record(&self.cipher, row, 2, &stream)?;
                collect_digests(&record.body, &mut found);
            }
            match rows.last() {
                Some(last) => place = (last.get(0), last.get(2)),
                None => break,
            }
        }
        for message in self.messages(None).await? {
            collect_digests(&message.body, &mut found);
        }
        Ok(found)
    }
}

impl RetentionStore for PostgresStore {
    fn take_turn(&self) -> Result<Option<RetentionTurn>, StoreError> {
        let taken = Arc::clone(&self.shared().turn);
        if taken.swap(true, Ordering::AcqRel) {
            return Ok(None);
        }
        // A turn of this process that was just given up may still have its row.
        let mut token = self.shared().instance.clone();
        token.extend(new_mark()?.0);
        let shared = Arc::clone(self.shared());
        let asked = token.clone();
        let has_turn = self.block_on(async move { shared.take_turn(&asked).await });
        if !has_turn.as_ref().is_ok_and(|has| *has) {
            taken.store(false, Ordering::Release);
        }
        Ok(has_turn?.then(|| {
            let turn = Turn {
                shared: Arc::clone(self.shared()),
                token,
                runtime: self.runtime().clone(),
                taken,
            };
            Box::new(turn) as RetentionTurn
        }))
    }

    fn unsealed<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
        until: Timestamp,
        after: Option<SealCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        let words: Vec<String> = statuses.iter().map(ToString::to_string).collect();
        let (time, name) = after.map_or_else(
            || (i64::MIN, String::new()),
            |(time, stream)| (time.as_millis(), stream.to_string()),
        );
        let limit = count(limit);
        self.on(move |shared| async move {
            let rest = "WHERE sealed_at IS NULL AND plan IS NOT NULL AND status = ANY($1) AND updated_at <= $2 \
                        AND (updated_at, name) > ($3, $4) ORDER BY updated_at, name LIMIT $5";
            let values: [(Value<'_>, Type); 5] = [
                (&words, Type::TEXT_ARRAY),
                (&until.as_millis(), Type::INT8),
                (&time, Type::INT8),
                (&name, Type::TEXT),
                (&limit, Type::INT8),
            ];
            shared.infos(rest, &values).await
        })
    }

    fn last_position<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<Position>, StoreError>> {
        let stream = stream.clone();
        self.on(move |shared| async move { shared.last_position(&stream).await })
    }

    fn seal<'a>(
        &'a self,
        stream: &'a StreamName,
        expected: Head,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<SealedJournal, RetainError>> {
        let stream = stream.clone();
        self.on(move |shared| async move {
            let sealing = Sealing {
                cipher: &shared.cipher,
                stream,
                expected,
                now,
            };
            let bytes = shared
                .transact(&sealing, |client, sealing| Box::pin(seal(client, sealing)))
                .await?;
            Ok(SealedJournal {
                stream: sealing.stream,
                head: expected,
                file: PLACE.to_owned(),
                bytes,
                sealed_at: now,
            })
        })
    }

    fn sealed<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<SealedJournal>, StoreError>> {
        let name = stream.to_string();
        self.on(move |shared| async move {
            let sql = format!("{SEALED} WHERE s.name = $1 AND s.sealed_at IS NOT NULL");
            let row = shared.row(&sql, &[(&name, Type::TEXT)]).await?;
            row.as_ref()
                .map(|row| sealed_journal(&shared.cipher, row))
                .transpose()
        })
    }

    fn sealed_plans<'a>(
        &'a self,
        until: Timestamp,
        after: Option<SealCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SealedJournal>, StoreError>> {
        self.on(move |shared| async move { shared.sealed_plans(until, after, limit).await })
    }

    fn restore<'a>(&'a self, stream: &'a StreamName) -> BoxFuture<'a, Result<(), RetainError>> {
        let stream = stream.clone();
        self.on(move |shared| async move {
            let restoring = (&*shared.cipher, stream);
            shared
                .transact(&restoring, |client, restoring| {
                    Box::pin(restore(client, restoring))
                })
                .await
        })
    }

    fn remove<'a>(
        &'a self,
        streams: &'a [StreamName],
        _now: Timestamp,
    ) -> BoxFuture<'a, Result<Removed, RetainError>> {
        // In one order for every process.
        let mut streams = streams.to_vec();
        streams.sort_unstable();
        self.on(move |shared| async move {
            let removing = (&*shared.cipher, streams);
            shared
                .transact(&removing, |client, removing| {
                    Box::pin(remove(client, removing))
                })
                .await
        })
    }

    fn remove_unused_artifacts(
        &self,
        before: Timestamp,
        dry_run: bool,
    ) -> BoxFuture<'_, Result<Removed, StoreError>> {
        self.on(move |shared| async move { shared.remove_unused(before, dry_run).await })
    }
}
