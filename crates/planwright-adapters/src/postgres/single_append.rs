//! The usual append of a run, in one statement that is its own commit.
//!
//! A run that goes on by itself appends to its own journal, holds its lease and knows where the journal ends. The statement
//! writes if the database finds all of that to be so, and writes nothing otherwise. Nothing is decided here: an append that
//! was not written goes to the writers, whose transaction finds the reason.
//!
//! The connection belongs to the runtime of the caller and is worked by the caller while it waits, so that no other thread
//! has to be woken twice per commit. It is used while no other append is under way: those that come at the same time share
//! the transactions of the writers. A pooler could not keep the prepared statement, so that there is no such connection
//! behind one.

use super::commit::{COMMIT_TIMEOUT, Doubt, Value};
use super::fault::{describe, is_broken};
use super::hosts::Wire;
use super::kept_statements::set_plans_by_indexes;
use super::pool::{Pool, share_open_lock};
use super::rows::number;
use super::single_statements::{FIRST, FIRST_TYPES, KnownJournals, MAX_NEXT, next, next_types};
use super::store::Shared;
use crate::sealing::{KeptEntry, mask_head, seal_entry};
use crate::vault::Cipher;
use planwright_core::id::RunId;
use planwright_core::journal::{Head, StreamName};
use planwright_engine::crash;
use planwright_engine::port::{Append, LeaseRule};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use tokio::time::Instant;
use tokio_postgres::error::Severity;
use tokio_postgres::{AsyncMessage, Client, Error, Statement};

/// Appends after which a connection for more of them is worth its while.
const WARM_UP: u32 = 4;
/// The most records of an append that is made here. A longer one is not made shorter by an exchange less.
const MAX_RECORDS: usize = 64;
const MAX_BYTES: usize = 256 << 10;
/// The time until a connection is tried again after it could not be had.
const OPEN_PAUSE: Duration = Duration::from_secs(5);

/// The time after which a connection of another runtime is not waited for.
const LEFT: Duration = Duration::from_secs(1);

/// The settings that the transactions of the writers make for themselves.
const SETTINGS: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE; \
     SET lock_timeout = '10s'; \
     SET statement_timeout = '15s'";

/// As [`SETTINGS`], where the server would answer before a commit is durable.
const DURABLE: &str = "SET synchronous_commit = on";

/// How an append ended here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SingleAppend {
    Committed,
    /// Nothing was written, and nothing will be: the writers find out why.
    NotWritten,
    /// It may be committed, or may be yet.
    Unknown(Doubt),
}

/// The connection for such appends, of which one process has one.
#[derive(Debug)]
pub(super) struct SingleAppends {
    state: Mutex<ConnectionState>,
}

#[derive(Debug)]
enum ConnectionState {
    /// There is none. So many appends could have used it.
    Wanted(u32),
    /// It could not be had.
    Resting(Instant),
    /// It is being made, or an append is using it.
    Taken,
    Free(Box<OpenConnection>),
    Closed,
}

#[derive(Debug)]
struct OpenConnection {
    /// Its socket is served by this runtime, so that no other may wait for it.
    runtime: Id,
    /// The connections of the pool that were forgotten before it was made.
    age: u64,
    used_at: Instant,
    /// Appends to a journal that this connection does not know.
    first: Statement,
    /// Append to one that it knows, by the number of records less one.
    next: Vec<Statement>,
    known: KnownJournals,
    session: Session,
}

/// A connection that is worked by those who wait for it.
struct Session {
    client: Client,
    wire: Wire,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// An append that can be one statement.
pub(super) struct PlainAppend<'a> {
    pub(super) append: &'a Append,
    pub(super) run: &'a RunId,
    pub(super) epoch: u64,
}

impl<'a> PlainAppend<'a> {
    /// Returns the append of a request that only adds entries to the journal of a run that the caller owns.
    pub(super) fn of(appends: &'a [Append]) -> Option<Self> {
        let [append] = appends else { return None };
        let Append {
            stream: StreamName::Run(run),
            expected,
            records,
            lease: LeaseRule::Held { epoch },
            status: None,
            answers,
            requests,
            brought,
            offers,
        } = append
        else {
            return None;
        };
        let has_more =
            !(answers.is_empty() && requests.is_empty() && brought.is_empty() && offers.is_empty());
        let follows = (expected.seq + 1..)
            .zip(records)
            .all(|(seq, record)| record.seq == seq);
        let bytes: usize = records.iter().map(|record| record.body.len()).sum();
        let fits = (1..=MAX_RECORDS).contains(&records.len()) && bytes <= MAX_BYTES;
        (!has_more && follows && fits && expected.seq > 0).then_some(Self {
            append,
            run,
            epoch: *epoch,
        })
    }

    /// The head that the journal has once the append is in it.
    pub(super) fn last_head(&self) -> Head {
        let last = self.append.records.last();
        last.map_or(self.append.expected, |record| record.head())
    }

    pub(super) fn stream(&self) -> &'a StreamName {
        &self.append.stream
    }
}

impl SingleAppends {
    /// `is_direct` says whether connections lead to the server itself.
    pub(super) fn new(is_direct: bool) -> Self {
        let state = match is_direct {
            true => ConnectionState::Wanted(0),
            false => ConnectionState::Closed,
        };
        Self {
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the connection, if it is free and of the caller's runtime. Where there is none, and it is wanted often enough,
    /// it is made in the background.
    fn take(&self, shared: &Arc<Shared>) -> Option<Box<OpenConnection>> {
        let runtime = Handle::try_current().ok()?;
        let mut state = self.state();
        match &mut *state {
            ConnectionState::Wanted(count) if *count < WARM_UP => *count += 1,
            ConnectionState::Wanted(_) => Self::open_later(&mut state, &runtime, shared),
            ConnectionState::Resting(until) if *until <= Instant::now() => {
                Self::open_later(&mut state, &runtime, shared);
            }
            ConnectionState::Free(open) if open.is_stale(&shared.pool, runtime.id()) => {
                *state = ConnectionState::Wanted(WARM_UP);
            }
            ConnectionState::Free(open) if open.runtime == runtime.id() => {
                let ConnectionState::Free(open) =
                    std::mem::replace(&mut *state, ConnectionState::Taken)
                else {
                    return None;
                };
                return Some(open);
            }
            ConnectionState::Free(_)
            | ConnectionState::Resting(_)
            | ConnectionState::Taken
            | ConnectionState::Closed => {}
        }
        None
    }

    fn open_later(state: &mut ConnectionState, runtime: &Handle, shared: &Arc<Shared>) {
        *state = ConnectionState::Taken;
        let taken = TakenConnection::new(shared);
        let id = runtime.id();
        runtime.spawn(async move {
            let opening = OpenConnection::open(&taken.shared, id);
            let opened = tokio::time::timeout(COMMIT_TIMEOUT, opening).await;
            taken.put(match opened {
                Ok(Ok(open)) => ConnectionState::Free(Box::new(open)),
                Ok(Err(reason)) => {
                    tracing::debug!(reason, "no connection for single appends");
                    ConnectionState::Resting(Instant::now() + OPEN_PAUSE)
                }
                Err(_) => ConnectionState::Resting(Instant::now() + OPEN_PAUSE),
            });
        });
    }

    /// Ends the connection. There is no other after it.
    pub(super) fn close(&self) {
        *self.state() = ConnectionState::Closed;
    }
}

/// The connection while it is in use. Unless it is given back there is none any more: an append whose caller went away in
/// the middle leaves a connection of which nothing is known.
struct TakenConnection {
    shared: Arc<Shared>,
    next: ConnectionState,
}

impl TakenConnection {
    fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            next: ConnectionState::Wanted(WARM_UP),
        }
    }

    fn put(mut self, state: ConnectionState) {
        self.next = state;
    }
}

impl Drop for TakenConnection {
    fn drop(&mut self) {
        let mut state = self.shared.single_appends.state();
        if matches!(*state, ConnectionState::Taken) {
            std::mem::swap(&mut *state, &mut self.next);
        }
    }
}

/// Makes an append on the connection for it; `None` if there is none now.
pub(super) async fn append(shared: &Arc<Shared>, plain: &PlainAppend<'_>) -> Option<SingleAppend> {
    let mut open = shared.single_appends.take(shared)?;
    open.used_at = Instant::now();
    let taken = TakenConnection::new(shared);
    let made = open.append(&shared.cipher, plain).await;
    if made.is_usable {
        taken.put(ConnectionState::Free(open));
    }
    Some(made.end)
}

/// How an append ended, and whether the connection can be used again.
struct Made {
    end: SingleAppend,
    is_usable: bool,
}

impl OpenConnection {
    async fn open(shared: &Shared, runtime: Id) -> Result<Self, String> {
        let age = shared.pool.age();
        let connected = shared.pool.connect().await;
        let (client, mut wire) = connected.map_err(|error| error.describe())?;
        let preparing = async {
            let settings = format!("{SETTINGS}{}", set_plans_by_indexes());
            client.batch_execute(&settings).await?;
            if !shared.transactions.is_durable() {
                client.batch_execute(DURABLE).await?;
            }
            // The end of the pool's other connections must not let a process in that rewrites the store.
            let is_shown = share_open_lock(&client).await?;
            let first = client.prepare_typed(FIRST, &FIRST_TYPES).await?;
            let mut more = Vec::new();
            for records in 1..=MAX_NEXT {
                let types = next_types(records);
                more.push(client.prepare_typed(&next(records), &types).await?);
            }
            Ok((is_shown, first, more))
        };
        let prepared = work_until(preparing, &mut wire, &mut false).await;
        let session = Session { client, wire };
        match prepared.map_err(|error: Error| describe(&error))? {
            (true, first, next) => Ok(Self {
                runtime,
                age,
                used_at: Instant::now(),
                first,
                next,
                known: KnownJournals::default(),
                session,
            }),
            (false, ..) => Err("another process is rewriting the store".to_owned()),
        }
    }

    /// Returns whether there has to be another one: the server is not the one that is used now, or the runtime has not
    /// used it for a while and may be gone, and another one wants it.
    fn is_stale(&self, pool: &Pool, wanted_by: Id) -> bool {
        let is_left = self.runtime != wanted_by && self.used_at.elapsed() > LEFT;
        is_left || self.age != pool.age()
    }

    async fn append(&mut self, cipher: &Cipher, plain: &PlainAppend<'_>) -> Made {
        let not_written = Made {
            end: SingleAppend::NotWritten,
            is_usable: true,
        };
        let name = plain.append.stream.to_string();
        let records = &plain.append.records;
        let kept = records
            .iter()
            .map(|record| seal_entry(cipher, &name, record));
        let Ok(kept) = kept.collect::<Result<Vec<KeptEntry<'_>>, _>>() else {
            return not_written;
        };
        let known = self.known.take(plain);
        let mut is_warned = false;
        crash::point("postgres: before commit");
        let writing = async {
            match known.zip(self.next.get(records.len() - 1)) {
                Some((stream, statement)) => {
                    let session = &mut self.session;
                    write_next(session, statement, (plain, &kept), stream, &mut is_warned).await
                }
                None => {
                    let session = &mut self.session;
                    write_first(session, &self.first, cipher, (plain, &kept), &mut is_warned).await
                }
            }
        };
        let made = tokio::time::timeout(COMMIT_TIMEOUT, writing).await;
        crash::point("postgres: after commit");
        let unknown = |doubt| Made {
            end: SingleAppend::Unknown(doubt),
            is_usable: false,
        };
        match made {
            Ok(Ok(None)) => not_written,
            Ok(Ok(Some(stream))) if !is_warned => {
                self.known.note(plain, stream);
                Made {
                    end: SingleAppend::Committed,
                    is_usable: true,
                }
            }
            // The server committed, and warned: a standby may not have it.
            Ok(Ok(Some(_))) | Err(_) => unknown(Doubt::Unconfirmed),
            Ok(Err(error)) if was_refused(&error) => not_written,
            Ok(Err(_)) => unknown(Doubt::Broken),
        }
    }
}

/// An append, and its records as the table has them.
type KeptAppend<'a> = (&'a PlainAppend<'a>, &'a [KeptEntry<'a>]);

/// Appends to a journal of which nothing is known. Returns its number; `None` if nothing was written.
async fn write_first(
    session: &mut Session,
    statement: &Statement,
    cipher: &Cipher,
    (plain, kept): KeptAppend<'_>,
    is_warned: &mut bool,
) -> Result<Option<i64>, Error> {
    let append = plain.append;
    let name = append.stream.to_string();
    let expected = mask_head(cipher, &name, append.expected);
    let records = &append.records;
    let times: Vec<i64> = records.iter().map(|record| record.at.as_millis()).collect();
    let epochs: Vec<i64> = records.iter().map(|record| number(record.epoch)).collect();
    let hashes: Vec<&[u8]> = kept
        .iter()
        .map(|entry| &entry.hash.as_bytes()[..])
        .collect();
    let keys: Vec<Option<&[u8]>> = kept
        .iter()
        .map(|entry| entry.key.as_deref().map(str::as_bytes))
        .collect();
    let bodies: Vec<&[u8]> = kept.iter().map(|entry| &*entry.body).collect();
    let values: [Value<'_>; 11] = [
        &name,
        &plain.run.as_str(),
        &number(plain.epoch),
        &cipher.key_id(),
        &number(expected.seq),
        &&expected.hash.as_bytes()[..],
        &times,
        &epochs,
        &hashes,
        &keys,
        &bodies,
    ];
    let Session { client, wire } = session;
    let written = work_until(client.query(statement, &values), wire, is_warned).await?;
    Ok(written.first().map(|row| row.get(0)))
}

/// Appends to the journal with this number, which ends where the append expects it.
async fn write_next(
    session: &mut Session,
    statement: &Statement,
    (plain, kept): KeptAppend<'_>,
    stream: i64,
    is_warned: &mut bool,
) -> Result<Option<i64>, Error> {
    struct Row<'a> {
        at: i64,
        epoch: i64,
        hash: &'a [u8],
        key: Option<&'a [u8]>,
        body: &'a [u8],
    }
    let rows = plain.append.records.iter().zip(kept);
    let rows = rows.map(|(record, entry)| Row {
        at: record.at.as_millis(),
        epoch: number(record.epoch),
        hash: &entry.hash.as_bytes()[..],
        key: entry.key.as_deref().map(str::as_bytes),
        body: &entry.body,
    });
    let rows: Vec<Row<'_>> = rows.collect();
    let run = plain.run.as_str();
    let epoch = number(plain.epoch);
    let expected = number(plain.append.expected.seq);
    let mut values: Vec<Value<'_>> = vec![&run, &epoch, &stream, &expected];
    for row in &rows {
        values.extend([
            &row.at as Value<'_>,
            &row.epoch,
            &row.hash,
            &row.key,
            &row.body,
        ]);
    }
    let Session { client, wire } = session;
    let written = work_until(client.execute(statement, &values), wire, is_warned).await?;
    Ok((written > 0).then_some(stream))
}

/// Returns whether the server says that the statement failed, and goes on: then it was not committed.
fn was_refused(error: &Error) -> bool {
    let refusal = error
        .as_db_error()
        .and_then(|error| error.parsed_severity());
    refusal == Some(Severity::Error) && !is_broken(error)
}

/// Waits for `work`, and works the connection meanwhile. Notes warnings of the server.
async fn work_until<T>(
    work: impl Future<Output = Result<T, Error>>,
    wire: &mut Wire,
    is_warned: &mut bool,
) -> Result<T, Error> {
    let mut work = pin!(work);
    poll_fn(move |context| {
        // The first look sends the request, and the second finds what the connection has read.
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        let broken = poll_wire(wire, is_warned, context);
        match (work.as_mut().poll(context), broken) {
            (Poll::Ready(done), _) => Poll::Ready(done),
            (Poll::Pending, Some(error)) => Poll::Ready(Err(error)),
            (Poll::Pending, None) => Poll::Pending,
        }
    })
    .await
}

/// Works a connection for as long as there is something to do. Returns the error that it ends with.
fn poll_wire(wire: &mut Wire, is_warned: &mut bool, context: &mut Context<'_>) -> Option<Error> {
    loop {
        match wire.poll_message(context) {
            // It ends without an error only when its client is gone.
            Poll::Pending | Poll::Ready(None) => return None,
            Poll::Ready(Some(Err(error))) => return Some(error),
            Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => {
                *is_warned |= notice.parsed_severity() == Some(Severity::Warning);
            }
            Poll::Ready(Some(Ok(_))) => {}
        }
    }
}
