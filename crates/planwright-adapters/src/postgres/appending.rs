//! Group commit: appends that wait are one transaction, of two exchanges with the database. The first locks and reads
//! everything they are about, the second writes what was decided and commits.
//!
//! Several writers do this at once, each on its own connection. They take what is queued when they are free, so that a run
//! waits for others only when all of them are busy.

use super::commit::{ANSWER_TIMEOUT, COMMIT_TIMEOUT, MAX_CROSSED, PATIENCE, SILENT};
use super::commit::{Ended, Mark, Patience, Value, after_commit, new_mark, unconfirmed, undo};
use super::decision::Known;
use super::fault::store_error;
use super::kept_statements::KeepingClient;
use super::offers::{end_offers, make_offers};
use super::pool::{CommitError, Lent, Planned};
use super::rows::{NOW, digest, number, unsigned};
use super::sealed_group::SealedGroup;
use super::store::Shared;
use super::wakeups::News;
use crate::sealing::{LabelRow, kept_key, mask_head};
use crate::vault::Cipher;
use futures::future::{join_all, try_join_all};
use planwright_core::journal::Head;
use planwright_core::time::Timestamp;
use planwright_engine::crash;
use planwright_engine::port::{
    Append, AppendError, BoxFuture, OfferChange, OwnerId, StoreError, StreamStatus,
};
use std::borrow::Cow;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

/// Requests that share a commit.
const MAX_GROUP: usize = 128;
/// Bytes of bodies after which a group is large enough.
const MAX_GROUP_BYTES: usize = 4 << 20;

/// A request that waits for a writer.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) appends: Vec<Append>,
    pub(super) reply: oneshot::Sender<Result<(), AppendError>>,
}

/// Commits what is queued, until the queue is closed.
pub(super) async fn serve_queue(shared: Arc<Shared>, queue: Arc<Mutex<mpsc::Receiver<Queued>>>) {
    loop {
        let group = {
            let mut queue = queue.lock().await;
            let Some(first) = queue.recv().await else {
                return;
            };
            let mut bytes = size(&first);
            let mut group = vec![first];
            while group.len() < MAX_GROUP
                && bytes < MAX_GROUP_BYTES
                && let Ok(next) = queue.try_recv()
            {
                bytes += size(&next);
                group.push(next);
            }
            group
        };
        commit_group(&shared, group).await;
    }
}

fn size(queued: &Queued) -> usize {
    let records = queued.appends.iter().flat_map(|append| &append.records);
    records.map(|record| record.body.len()).sum()
}

/// Commits a group and answers it.
async fn commit_group(shared: &Shared, group: Vec<Queued>) {
    let requests: Vec<&[Append]> = group.iter().map(|queued| &*queued.appends).collect();
    let decided = commit(shared, &requests).await;
    crash::point("postgres: before the reply");
    match decided {
        Ok(decided) => {
            if decided.iter().any(Result::is_ok) {
                shared.wakeups.announce(News::Change);
            }
            announce_offers(shared, &group);
            for (queued, decision) in group.into_iter().zip(decided) {
                // The caller may have gone away; what was done stays done.
                drop(queued.reply.send(decision));
            }
        }
        Err(error) => {
            for queued in group {
                drop(queued.reply.send(Err(error.clone().into())));
            }
        }
    }
}

/// Tells workers of new offers, and those who carry out what is over.
fn announce_offers(shared: &Shared, group: &[Queued]) {
    let appends = group.iter().flat_map(|queued| &queued.appends);
    let changes: Vec<&OfferChange> = appends.flat_map(|append| &append.offers).collect();
    if changes
        .iter()
        .any(|change| matches!(change, OfferChange::Make(_)))
    {
        shared.wakeups.announce(News::Offer);
    }
    if changes
        .iter()
        .any(|change| matches!(change, OfferChange::End(_)))
    {
        shared.wakeups.announce(News::Answer);
    }
}

type Decisions = Vec<Result<(), AppendError>>;

/// Commits the requests that can be, and says what became of each.
async fn commit(shared: &Shared, requests: &[&[Append]]) -> Result<Decisions, StoreError> {
    let mut patience = Patience::new(PATIENCE);
    let mut crossed = 0;
    hold_owners(shared, requests).await?;
    loop {
        let connection = match shared.pool.lend(Planned::Once).await {
            Ok(connection) => connection,
            Err(StoreError::Unreachable(_)) if patience.wait().await => continue,
            Err(error) => return Err(error),
        };
        match attempt(shared, connection, requests).await? {
            Ended::Committed(decisions) => return Ok(decisions),
            Ended::Unknown(decisions, mark, doubt) => {
                let transactions = &shared.transactions;
                if transactions
                    .was_committed(&shared.pool, &mark, doubt)
                    .await?
                {
                    return Ok(decisions);
                }
            }
            Ended::Refused(error) => return Err(error),
            Ended::Failed(error) => return Err(store_error(&error, shared.pool.place())),
            Ended::Crossed(error) => {
                crossed += 1;
                if crossed > MAX_CROSSED {
                    return Err(store_error(&error, shared.pool.place()));
                }
            }
            Ended::Broken(reason) => {
                shared.pool.forget_idle();
                if !patience.wait().await {
                    return Err(shared.pool.unreachable(&reason));
                }
            }
        }
    }
}

/// Shows that those who open runs are alive, before their leases can be seen.
async fn hold_owners(shared: &Shared, requests: &[&[Append]]) -> Result<(), StoreError> {
    use planwright_engine::port::LeaseRule;
    for append in requests.iter().flat_map(|appends| appends.iter()) {
        if let LeaseRule::Open { owner, .. } = &append.lease {
            shared.owners.hold(shared, owner).await?;
        }
    }
    Ok(())
}

async fn attempt(
    shared: &Shared,
    connection: Lent,
    requests: &[&[Append]],
) -> Result<Ended<Decisions, StoreError>, StoreError> {
    let mark = new_mark()?;
    crash::point("postgres: before begin");
    let appends = requests.iter().flat_map(|appends| appends.iter());
    let mut known = Known::of(appends);
    let reading = begin_and_read(shared, connection.keeping(), &mark, requests, &mut known);
    match tokio::time::timeout(ANSWER_TIMEOUT, reading).await {
        Ok(Ok(())) => {}
        Ok(Err(ReadError::Database(error))) => return Ok(undo(connection, error).await),
        Ok(Err(ReadError::Row(error))) => {
            connection.discard();
            return Ok(Ended::Refused(error));
        }
        Err(_) => {
            connection.discard();
            return Ok(Ended::Broken(SILENT.to_owned()));
        }
    }
    let decisions: Decisions = requests
        .iter()
        .map(|appends| known.decide(appends))
        .collect();
    if decisions.iter().all(Result::is_err) {
        if connection.batch_execute("ROLLBACK").await.is_err() {
            connection.discard();
        }
        return Ok(Ended::Committed(decisions));
    }
    let sealed = match SealedGroup::of(&shared.cipher, &known) {
        Ok(sealed) => sealed,
        Err(error) => {
            if connection.batch_execute("ROLLBACK").await.is_err() {
                connection.discard();
            }
            return Ok(Ended::Refused(error.into()));
        }
    };
    // The commit is sent with the writes: if one of them fails, the database rolls everything back instead.
    crash::point("postgres: before commit");
    let ended = async {
        futures::join!(
            write(connection.keeping(), &shared.cipher, &known, &sealed),
            connection.commit()
        )
    };
    let ended = tokio::time::timeout(COMMIT_TIMEOUT, ended).await;
    crash::point("postgres: after commit");
    drop(sealed);
    drop(known);
    Ok(match ended {
        Ok((Ok(()), Ok(()))) => Ended::Committed(decisions),
        // The server has said that this statement failed, so that nothing was committed.
        Ok((Err(error), _)) if error.code().is_some() => undo(connection, error).await,
        Ok((Err(error), _)) => {
            after_commit(connection, CommitError::Database(error), decisions, mark).await
        }
        Ok((Ok(()), Err(error))) => after_commit(connection, error, decisions, mark).await,
        Err(_) => unconfirmed(connection, decisions, mark),
    })
}

enum ReadError {
    Database(Error),
    Row(StoreError),
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        Self::Row(error)
    }
}

/// Locks the rows that the group is about, always in the same order, and reads them. Heads and keys are read by a second
/// statement: what it sees is from after the lock was had.
async fn begin_and_read<'a>(
    shared: &Shared,
    client: KeepingClient<'_>,
    mark: &Mark,
    requests: &[&'a [Append]],
    known: &mut Known<'a>,
) -> Result<(), ReadError> {
    let names: Vec<&str> = known.streams.keys().map(String::as_str).collect();
    let runs: Vec<&str> = known.leases.keys().map(String::as_str).collect();
    let messages: Vec<i64> = known.messages.keys().copied().collect();
    let claims: Vec<&[u8]> = known
        .requests
        .keys()
        .map(|key| &key.as_bytes()[..])
        .collect();
    let wanted = WantedKeys::of(&shared.cipher, requests);
    let lock_streams: [(Value<'_>, Type); 1] = [(&names, Type::TEXT_ARRAY)];
    let of_runs: [(Value<'_>, Type); 1] = [(&runs, Type::TEXT_ARRAY)];
    let of_messages: [(Value<'_>, Type); 1] = [(&messages, Type::INT8_ARRAY)];
    let of_claims: [(Value<'_>, Type); 1] = [(&claims, Type::BYTEA_ARRAY)];
    let of_keys: [(Value<'_>, Type); 2] = [
        (&wanted.streams, Type::TEXT_ARRAY),
        (&wanted.kept, Type::BYTEA_ARRAY),
    ];
    let ask = |needed: bool, sql: &'static str, values| {
        let asked: BoxFuture<'_, Result<Vec<Row>, Error>> = match needed {
            true => Box::pin(client.query(sql, values)),
            false => Box::pin(async { Ok(Vec::new()) }),
        };
        asked
    };
    client.prepare_due().await;
    // The futures are polled in this order, and that is the order in which the statements are sent.
    let asked: Vec<BoxFuture<'_, Result<Vec<Row>, Error>>> = vec![
        ask(true, LOCK_STREAMS, &lock_streams),
        ask(!runs.is_empty(), LOCK_LEASES, &of_runs),
        ask(!messages.is_empty(), LOCK_MESSAGES, &of_messages),
        ask(!claims.is_empty(), LOCK_REQUESTS, &of_claims),
        ask(true, READ_STREAMS, &lock_streams),
        ask(!wanted.kept.is_empty(), READ_KEYS, &of_keys),
    ];
    let (begun, answered) =
        futures::join!(shared.transactions.begin(client, mark), join_all(asked));
    begun?;
    let answered: Vec<Vec<Row>> = answered.into_iter().collect::<Result<_, _>>()?;
    let [_, leases, messages, claims, streams, keys] = &answered[..] else {
        return Err(StoreError::Failed("an answer is missing".to_owned()).into());
    };
    for row in leases {
        let run: String = row.get(0);
        let owner: Option<String> = row.get(2);
        known.leases.entry(run).or_default().row = Some((unsigned(row.get(1)), owner.map(OwnerId)));
    }
    for row in messages {
        let state = known.messages.entry(row.get(0)).or_default();
        state.exists = true;
        state.is_answered = row.get(1);
    }
    for row in claims {
        let state = known.requests.entry(digest(row.get(0))?).or_default();
        let is_answered: bool = row.get(2);
        state.owner = (!is_answered).then(|| OwnerId(row.get(1)));
        state.changed = row.get(3);
    }
    for row in streams {
        let name: String = row.get(0);
        let mut state = known.streams.remove(&name).unwrap_or_default();
        state.exists = true;
        state.is_sealed = row.get(1);
        match read_status(&shared.cipher, row, (&name, 2)) {
            Ok(status) => state.status = status,
            Err(error) => state.unreadable = Some(error),
        }
        state.times = Some((
            Timestamp::from_millis(row.get(5)),
            Timestamp::from_millis(row.get(6)),
        ));
        let seq: Option<i64> = row.get(7);
        state.head = match seq {
            Some(seq) => {
                let kept = Head {
                    seq: unsigned(seq),
                    hash: digest(row.get(8))?,
                };
                Some(mask_head(&shared.cipher, &name, kept))
            }
            None => None,
        };
        known.streams.insert(name, state);
    }
    for row in keys {
        let number = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(usize::MAX);
        if let Some((name, key)) = wanted.streams.get(number).zip(wanted.keys.get(number)) {
            let state = known.streams.entry(name.clone()).or_default();
            state.keys.insert(key.to_vec());
        }
    }
    Ok(())
}

const LOCK_STREAMS: &str =
    "SELECT 1 FROM planwright.streams WHERE name = ANY($1) ORDER BY name FOR UPDATE";
const LOCK_LEASES: &str =
    "SELECT run, epoch, owner FROM planwright.leases WHERE run = ANY($1) ORDER BY run FOR UPDATE";
const LOCK_MESSAGES: &str =
    "SELECT id, answered FROM planwright.messages WHERE id = ANY($1) ORDER BY id FOR UPDATE";
const LOCK_REQUESTS: &str = "SELECT key, owner, answer IS NOT NULL, changed FROM planwright.answers \
     WHERE key = ANY($1) ORDER BY key FOR UPDATE";
const READ_STREAMS: &str = "SELECT s.name, s.sealed_at IS NOT NULL, s.plan, s.status, s.label, s.created_at, s.updated_at, \
     e.seq, e.hash \
     FROM planwright.streams AS s \
     LEFT JOIN LATERAL (SELECT seq, hash FROM planwright.entries WHERE stream = s.id ORDER BY seq DESC LIMIT 1) AS e ON true \
     WHERE s.name = ANY($1)";
/// Each key is looked up by itself. A plain join is planned for journals of average length: where most are short, it reads
/// a long one to its end with every append.
const READ_KEYS: &str = "SELECT k.number FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS k (name, key, number) \
     CROSS JOIN LATERAL (SELECT s.id FROM planwright.streams AS s WHERE s.name = k.name LIMIT 1) AS s \
     CROSS JOIN LATERAL (SELECT 1 FROM planwright.entries AS e WHERE e.stream = s.id AND e.key = k.key LIMIT 1) AS e";

/// The unique keys that a group wants.
struct WantedKeys<'a> {
    streams: Vec<String>,
    keys: Vec<&'a [u8]>,
    /// The same keys as the table has them.
    kept: Vec<Cow<'a, [u8]>>,
}

impl<'a> WantedKeys<'a> {
    fn of(cipher: &Cipher, requests: &[&'a [Append]]) -> Self {
        let mut wanted = Self {
            streams: Vec::new(),
            keys: Vec::new(),
            kept: Vec::new(),
        };
        for append in requests.iter().flat_map(|appends| appends.iter()) {
            let keys = append
                .records
                .iter()
                .filter_map(|record| record.key.as_ref());
            for key in keys {
                let stream = append.stream.to_string();
                wanted.kept.push(match kept_key(cipher, &stream, key) {
                    Some(name) => Cow::Owned(name.into_bytes()),
                    None => Cow::Borrowed(key.as_bytes()),
                });
                wanted.streams.push(stream);
                wanted.keys.push(key.as_bytes());
            }
        }
        wanted
    }
}

/// Reads the columns `plan, status, label, created_at, updated_at` of a stream, of which the first is at `first`.
pub(super) fn read_status(
    cipher: &Cipher,
    row: &Row,
    (stream, first): (&str, usize),
) -> Result<Option<StreamStatus>, StoreError> {
    let plan: Option<&str> = row.get(first);
    let Some(plan) = plan else { return Ok(None) };
    let status: &str = row.get::<_, Option<&str>>(first + 1).unwrap_or_default();
    let bound = LabelRow {
        stream,
        plan,
        status,
        created_at: row.get(first + 3),
        updated_at: row.get(first + 4),
    };
    let kept: Option<Vec<u8>> = row.get(first + 2);
    let label = bound.open_bytes(cipher, kept.unwrap_or_default());
    let label = label
        .map_err(|error| StoreError::Failed(format!("the label or status of {stream}: {error}")))?;
    Ok(Some(StreamStatus {
        plan: plan
            .parse()
            .map_err(|_| StoreError::Failed(format!("{plan:?} cannot be a plan")))?,
        status: status.into(),
        label: super::rows::text(Some(&label)),
    }))
}

/// Writes what was decided. Every statement is sent at once.
async fn write(
    client: KeepingClient<'_>,
    cipher: &Cipher,
    known: &Known<'_>,
    sealed: &SealedGroup<'_>,
) -> Result<(), Error> {
    // Boxed in the order in which they are sent: streams come before the entries that name them.
    try_join_all([
        Box::pin(insert_streams(client, known, sealed)) as BoxFuture<'_, Result<(), Error>>,
        Box::pin(update_streams(client, known, sealed)),
        Box::pin(insert_entries(client, known, sealed)),
        Box::pin(insert_ranges(client, known)),
        Box::pin(open_leases(client, known)),
        Box::pin(release_leases(client, known)),
        Box::pin(answer_messages(client, known, sealed)),
        Box::pin(note_requests(client, known)),
        Box::pin(count_brought(client, known)),
        Box::pin(count_brought_in_all(client, known)),
        Box::pin(end_offers(client, cipher, known)),
        Box::pin(make_offers(client, known, &sealed.offers)),
    ])
    .await
    .map(drop)
}

async fn insert_streams(
    client: KeepingClient<'_>,
    known: &Known<'_>,
    sealed: &SealedGroup<'_>,
) -> Result<(), Error> {
    let begun: Vec<_> = known.begun().collect();
    if begun.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = begun.iter().map(|(name, ..)| *name).collect();
    let kinds: Vec<&str> = begun.iter().map(|(_, begun, _)| begun.kind).collect();
    let plans: Vec<Option<&str>> = begun
        .iter()
        .map(|(.., status)| status.map(|status| status.plan.as_str()))
        .collect();
    let words: Vec<Option<&str>> = begun
        .iter()
        .map(|(.., status)| status.map(|status| status.status.as_str()))
        .collect();
    let labels: Vec<Option<&[u8]>> = sealed
        .begun_labels
        .iter()
        .map(|label| label.as_deref())
        .collect();
    let created: Vec<i64> = begun
        .iter()
        .map(|(_, begun, _)| begun.created_at.as_millis())
        .collect();
    let updated: Vec<i64> = begun
        .iter()
        .map(|(_, begun, _)| begun.updated_at.as_millis())
        .collect();
    let sql = "INSERT INTO planwright.streams (name, kind, plan, status, label, created_at, updated_at) \
               SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bigint[], $7::bigint[])";
    let values: [(Value<'_>, Type); 7] = [
        (&names, Type::TEXT_ARRAY),
        (&kinds, Type::TEXT_ARRAY),
        (&plans, Type::TEXT_ARRAY),
        (&words, Type::TEXT_ARRAY),
        (&labels, Type::BYTEA_ARRAY),
        (&created, Type::INT8_ARRAY),
        (&updated, Type::INT8_ARRAY),
    ];
    client.execute(sql, &values).await.map(drop)
}

async fn update_streams(
    client: KeepingClient<'_>,
    known: &Known<'_>,
    sealed: &SealedGroup<'_>,
) -> Result<(), Error> {
    let changed: Vec<_> = known.changed().collect();
    if changed.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = changed.iter().map(|changed| changed.name).collect();
    let plans: Vec<&str> = changed
        .iter()
        .map(|changed| changed.status.plan.as_str())
        .collect();
    let words: Vec<&str> = changed
        .iter()
        .map(|changed| changed.status.status.as_str())
        .collect();
    let labels: Vec<&[u8]> = sealed.changed_labels.iter().map(|label| &**label).collect();
    let updated: Vec<i64> = changed
        .iter()
        .map(|changed| changed.updated_at.as_millis())
        .collect();
    let sql = "UPDATE planwright.streams AS s SET plan = n.plan, status = n.status, label = n.label, \
               updated_at = n.updated_at \
               FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bigint[]) \
               AS n (name, plan, status, label, updated_at) WHERE s.name = n.name";
    let values: [(Value<'_>, Type); 5] = [
        (&names, Type::TEXT_ARRAY),
        (&plans, Type::TEXT_ARRAY),
        (&words, Type::TEXT_ARRAY),
        (&labels, Type::BYTEA_ARRAY),
        (&updated, Type::INT8_ARRAY),
    ];
    client.execute(sql, &values).await.map(drop)
}

async fn insert_entries(
    client: KeepingClient<'_>,
    known: &Known<'_>,
    sealed: &SealedGroup<'_>,
) -> Result<(), Error> {
    let entries = &known.entries;
    if entries.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
    let records = || entries.iter().map(|(_, record)| record);
    let seqs: Vec<i64> = records().map(|record| number(record.seq)).collect();
    let times: Vec<i64> = records().map(|record| record.at.as_millis()).collect();
    let epochs: Vec<i64> = records().map(|record| number(record.epoch)).collect();
    let kept = || sealed.entries.iter();
    let hashes: Vec<&[u8]> = kept().map(|entry| &entry.hash.as_bytes()[..]).collect();
    let keys: Vec<Option<&[u8]>> = kept()
        .map(|entry| entry.key.as_deref().map(str::as_bytes))
        .collect();
    let bodies: Vec<&[u8]> = kept().map(|entry| &*entry.body).collect();
    let sql = "INSERT INTO planwright.entries (stream, seq, at, epoch, hash, key, body) \
               SELECT s.id, n.seq, n.at, n.epoch, n.hash, n.key, n.body \
               FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[]) \
               AS n (name, seq, at, epoch, hash, key, body) JOIN planwright.streams AS s ON s.name = n.name";
    let values: [(Value<'_>, Type); 7] = [
        (&names, Type::TEXT_ARRAY),
        (&seqs, Type::INT8_ARRAY),
        (&times, Type::INT8_ARRAY),
        (&epochs, Type::INT8_ARRAY),
        (&hashes, Type::BYTEA_ARRAY),
        (&keys, Type::BYTEA_ARRAY),
        (&bodies, Type::BYTEA_ARRAY),
    ];
    client.execute(sql, &values).await.map(drop)
}

/// Notes that entries have no place in the feed yet, in the order in which they were decided.
async fn insert_ranges(client: KeepingClient<'_>, known: &Known<'_>) -> Result<(), Error> {
    let ranges = &known.ranges;
    if ranges.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = ranges.iter().map(|(name, ..)| name.as_str()).collect();
    let first: Vec<i64> = ranges.iter().map(|(_, first, _)| number(*first)).collect();
    let last: Vec<i64> = ranges.iter().map(|(.., last)| number(*last)).collect();
    let sql = "INSERT INTO planwright.unplaced (stream, first_seq, last_seq) \
               SELECT s.id, n.first_seq, n.last_seq \
               FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS n (name, first_seq, last_seq, place) \
               JOIN planwright.streams AS s ON s.name = n.name ORDER BY n.place";
    let values: [(Value<'_>, Type); 3] = [
        (&names, Type::TEXT_ARRAY),
        (&first, Type::INT8_ARRAY),
        (&last, Type::INT8_ARRAY),
    ];
    client.execute(sql, &values).await.map(drop)
}

async fn open_leases(client: KeepingClient<'_>, known: &Known<'_>) -> Result<(), Error> {
    let opened = known.leases.iter().filter_map(|(run, lease)| {
        let (epoch, owner) = lease.row.as_ref()?;
        Some((run, *epoch, owner.as_ref(), lease.opened?))
    });
    let opened: Vec<_> = opened.collect();
    if opened.is_empty() {
        return Ok(());
    }
    let runs: Vec<&str> = opened.iter().map(|(run, ..)| run.as_str()).collect();
    let epochs: Vec<i64> = opened.iter().map(|(_, epoch, ..)| number(*epoch)).collect();
    let owners: Vec<Option<&str>> = opened
        .iter()
        .map(|(_, _, owner, _)| owner.map(|owner| owner.0.as_str()))
        .collect();
    let lives: Vec<i64> = opened.iter().map(|(.., ttl)| millis(*ttl)).collect();
    let sql = format!(
        "INSERT INTO planwright.leases (run, epoch, owner, expires_at) \
         SELECT n.run, n.epoch, n.owner, {NOW} + n.life \
         FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) AS n (run, epoch, owner, life)"
    );
    let values: [(Value<'_>, Type); 4] = [
        (&runs, Type::TEXT_ARRAY),
        (&epochs, Type::INT8_ARRAY),
        (&owners, Type::TEXT_ARRAY),
        (&lives, Type::INT8_ARRAY),
    ];
    client.execute(&sql, &values).await.map(drop)
}

/// A time to live in milliseconds; a century is for ever.
pub(super) fn millis(time: std::time::Duration) -> i64 {
    const CENTURY: i64 = 100 * 365 * 24 * 3_600_000;
    i64::try_from(time.as_millis())
        .unwrap_or(CENTURY)
        .min(CENTURY)
}

async fn release_leases(client: KeepingClient<'_>, known: &Known<'_>) -> Result<(), Error> {
    let released = known
        .leases
        .iter()
        .filter(|(_, lease)| lease.is_released && lease.opened.is_none());
    let runs: Vec<&str> = released.map(|(run, _)| run.as_str()).collect();
    if runs.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE planwright.leases SET owner = NULL WHERE run = ANY($1)";
    let values: [(Value<'_>, Type); 1] = [(&runs, Type::TEXT_ARRAY)];
    client.execute(sql, &values).await.map(drop)
}

async fn answer_messages(
    client: KeepingClient<'_>,
    known: &Known<'_>,
    sealed: &SealedGroup<'_>,
) -> Result<(), Error> {
    let messages: Vec<i64> = known.answered().map(|(message, _)| message).collect();
    if messages.is_empty() {
        return Ok(());
    }
    let refusals: Vec<Option<&[u8]>> = sealed
        .refusals
        .iter()
        .map(|refusal| refusal.as_deref())
        .collect();
    let sql = "UPDATE planwright.messages AS m SET answered = true, refusal = n.refusal \
               FROM unnest($1::bigint[], $2::bytea[]) AS n (id, refusal) WHERE m.id = n.id";
    let values: [(Value<'_>, Type); 2] = [
        (&messages, Type::INT8_ARRAY),
        (&refusals, Type::BYTEA_ARRAY),
    ];
    client.execute(sql, &values).await.map(drop)
}

async fn note_requests(client: KeepingClient<'_>, known: &Known<'_>) -> Result<(), Error> {
    let noted = known.requests.iter().filter(|(_, state)| state.is_noted);
    let noted: Vec<_> = noted.collect();
    if noted.is_empty() {
        return Ok(());
    }
    let keys: Vec<&[u8]> = noted.iter().map(|(key, _)| &key.as_bytes()[..]).collect();
    let changed: Vec<Option<&str>> = noted
        .iter()
        .map(|(_, state)| state.changed.as_deref())
        .collect();
    let sql = "UPDATE planwright.answers AS a SET changed = n.changed \
               FROM unnest($1::bytea[], $2::text[]) AS n (key, changed) WHERE a.key = n.key";
    let values: [(Value<'_>, Type); 2] = [(&keys, Type::BYTEA_ARRAY), (&changed, Type::TEXT_ARRAY)];
    client.execute(sql, &values).await.map(drop)
}

async fn count_brought(client: KeepingClient<'_>, known: &Known<'_>) -> Result<(), Error> {
    let brought = &known.brought;
    if brought.is_empty() {
        return Ok(());
    }
    let principals: Vec<&str> = brought.keys().map(|(by, _)| by.as_str()).collect();
    let plans: Vec<&str> = brought.keys().map(|(_, plan)| plan.as_str()).collect();
    let bytes: Vec<i64> = brought.values().map(|bytes| number(*bytes)).collect();
    let sql = "INSERT INTO planwright.brought AS b (principal, plan, bytes) \
               SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) \
               ON CONFLICT (principal, plan) DO UPDATE SET bytes = b.bytes + excluded.bytes";
    let values: [(Value<'_>, Type); 3] = [
        (&principals, Type::TEXT_ARRAY),
        (&plans, Type::TEXT_ARRAY),
        (&bytes, Type::INT8_ARRAY),
    ];
    client.execute(sql, &values).await.map(drop)
}

async fn count_brought_in_all(client: KeepingClient<'_>, known: &Known<'_>) -> Result<(), Error> {
    let brought = &known.brought;
    if brought.is_empty() {
        return Ok(());
    }
    let principals: Vec<&str> = brought.keys().map(|(by, _)| by.as_str()).collect();
    let bytes: Vec<i64> = brought.values().map(|bytes| number(*bytes)).collect();
    let sql = "INSERT INTO planwright.brought_in_all AS b (principal, bytes) \
               SELECT n.principal, sum(n.bytes)::bigint FROM unnest($1::text[], $2::bigint[]) AS n (principal, bytes) \
               GROUP BY n.principal ORDER BY n.principal \
               ON CONFLICT (principal) DO UPDATE SET bytes = b.bytes + excluded.bytes";
    let values: [(Value<'_>, Type); 2] =
        [(&principals, Type::TEXT_ARRAY), (&bytes, Type::INT8_ARRAY)];
    client.execute(sql, &values).await.map(drop)
}
