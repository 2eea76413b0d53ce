//! Transactions: begun, repeated where another one was in the way, and looked up where the connection broke
//! before the answer to a commit came.

use super::fault::{Stop, describe, is_broken, is_crossed, store_error};
use super::kept_statements::KeepingClient;
use super::pool::{CommitError, Lent, Planned, Pool};
use crate::vault::Cipher;
use planwright_engine::crash;
use planwright_engine::port::{BoxFuture, StoreError};
use std::time::{Duration, Instant};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

/// The time an answer is waited for while the database cannot be reached. The engine asks again after that.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The time the outcome of a commit is looked for.
pub(super) const LOOKUP_PATIENCE: Duration = Duration::from_secs(120);
/// The time a statement is waited for: longer than the server works on one. A server that is silent is not waited for.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(75);
/// The time a commit is waited for. A server that has lost its standby takes it and does not confirm it.
pub(super) const COMMIT_TIMEOUT: Duration = Duration::from_secs(20);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The number of times a transaction is begun anew because of others.
pub(super) const MAX_CROSSED: u32 = 50;

/// Settings of every transaction. They are local to it, so that nothing stays on a connection that a pooler lends to
/// others. A process that is stopped in the middle must not keep its locks.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
     SET LOCAL lock_timeout = '10s'; \
     SET LOCAL statement_timeout = '60s'; \
     SET LOCAL idle_in_transaction_session_timeout = '20s'";

/// As [`BEGIN`], where the connection has the settings that may stay.
const BEGIN_KEPT: &str = "BEGIN; SET LOCAL statement_timeout = '60s'";

/// For a server that would answer before a commit is durable.
const DURABLY: &str = "; SET LOCAL synchronous_commit = on";

/// A server that is there, and says nothing.
pub(super) const SILENT: &str = "the server does not answer";

/// The mark of a transaction, and the proof that its process has the key of the store: without it there is no mark to insert,
/// and the transaction fails.
const MARK: &str = "INSERT INTO planwright.commit_marks (id) VALUES (\
     CASE WHEN (SELECT key_id FROM planwright.vault) IS NOT DISTINCT FROM $2 THEN $1 END)";

/// A value for a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// Names one transaction.
#[derive(Debug)]
pub(super) struct Mark(pub(super) Vec<u8>);

/// What came of a statement that is a transaction by itself.
pub(super) enum Alone {
    /// It is durable, and this is what it returned.
    Done(Vec<Row>),
    /// It has changed something durably, and what it returned was lost with the connection.
    Unheard,
}

/// Makes transactions.
#[derive(Debug)]
pub(super) struct Transactions {
    begin: String,
    /// For connections that keep statements.
    begin_kept: String,
    /// True if the server answers only when a commit is durable, without being asked for it.
    is_durable: bool,
    /// The key that everything is sealed with.
    key_id: Option<String>,
}

/// How a transaction ended.
pub(super) enum Ended<T, E> {
    Committed(T),
    /// Nothing was written.
    Refused(E),
    /// Nothing was written, and it can be begun anew.
    Crossed(Error),
    /// Nothing was written: the connection broke before the commit.
    Broken(String),
    /// Nothing was written, and trying again does not help.
    Failed(Error),
    /// The connection broke during the commit, or the server did not confirm it.
    Unknown(T, Mark, Doubt),
}

/// The reason the outcome of a commit is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    Broken,
    /// The server is there and does not confirm: another one may have taken its place.
    Unconfirmed,
}

/// Pauses that grow, until the time is up.
pub(super) struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    pub(super) fn new(time: Duration) -> Self {
        Self {
            until: Instant::now() + time,
            pause: FIRST_PAUSE,
        }
    }

    /// Waits a little longer than the last time. Returns whether there is time for another attempt.
    pub(super) async fn wait(&mut self) -> bool {
        if Instant::now() >= self.until {
            return false;
        }
        // Processes that lost the same server must not come back in step.
        let spread = u64::from(random_byte()) + 128;
        let pause = self.pause.mul_f64(spread as f64 / 256.0);
        tokio::time::sleep(pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}

fn random_byte() -> u8 {
    let mut byte = [0];
    match getrandom::fill(&mut byte) {
        Ok(()) => byte[0],
        Err(_) => 128,
    }
}

pub(super) fn new_mark() -> Result<Mark, StoreError> {
    let mut mark = vec![0; 16];
    getrandom::fill(&mut mark)
        .map_err(|error| StoreError::Failed(format!("there is no randomness: {error}")))?;
    Ok(Mark(mark))
}

impl Transactions {
    /// `durable` says whether the server answers only when a commit is durable.
    pub(super) fn new(durable: bool, cipher: &Cipher) -> Self {
        let begin = format!("{BEGIN}{}", if durable { "" } else { DURABLY });
        Self {
            key_id: cipher.key_id().map(str::to_owned),
            begin,
            begin_kept: format!("{BEGIN_KEPT}{}", if durable { "" } else { DURABLY }),
            is_durable: durable,
        }
    }

    pub(super) fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// Does `work` in one transaction. It is done again if the transaction has to be begun anew, so that it must
    /// not remember anything.
    pub(super) async fn run<D, T, E, F>(
        &self,
        (pool, planned): (&Pool, Planned),
        data: &D,
        work: F,
    ) -> Result<T, E>
    where
        D: Sync,
        E: From<StoreError>,
        F: for<'c> Fn(KeepingClient<'c>, &'c D) -> BoxFuture<'c, Result<T, Stop<E>>>,
    {
        let mut patience = Patience::new(PATIENCE);
        let mut crossed = 0;
        loop {
            let connection = match pool.lend(planned).await {
                Ok(connection) => connection,
                Err(StoreError::Unreachable(_)) if patience.wait().await => continue,
                Err(error) => return Err(error.into()),
            };
            match self.attempt(connection, data, &work).await? {
                Ended::Committed(value) => return Ok(value),
                Ended::Refused(error) => return Err(error),
                Ended::Unknown(value, mark, doubt) => {
                    if self.was_committed(pool, &mark, doubt).await? {
                        return Ok(value);
                    }
                }
                Ended::Crossed(error) => {
                    crossed += 1;
                    if crossed > MAX_CROSSED {
                        return Err(store_error(&error, pool.place()).into());
                    }
                    tokio::time::sleep(FIRST_PAUSE.mul_f64(f64::from(random_byte()) / 512.0)).await;
                }
                Ended::Failed(error) => return Err(store_error(&error, pool.place()).into()),
                Ended::Broken(reason) => {
                    pool.forget_idle();
                    if !patience.wait().await {
                        return Err(pool.unreachable(&reason).into());
                    }
                }
            }
        }
    }

    /// Makes one attempt on a connection.
    async fn attempt<D, T, E, F>(
        &self,
        connection: Lent,
        data: &D,
        work: &F,
    ) -> Result<Ended<T, E>, E>
    where
        D: Sync,
        E: From<StoreError>,
        F: for<'c> Fn(KeepingClient<'c>, &'c D) -> BoxFuture<'c, Result<T, Stop<E>>>,
    {
        let mark = new_mark()?;
        let client = connection.keeping();
        crash::point("postgres: before begin");
        let worked = async {
            client.prepare_due().await;
            self.begin(client, &mark).await?;
            work(client, data).await
        };
        let value = match tokio::time::timeout(ANSWER_TIMEOUT, worked).await {
            Ok(Ok(value)) => value,
            Ok(Err(Stop::Database(error))) => return Ok(undo(connection, error).await),
            Ok(Err(Stop::Refused(error))) => {
                roll_back(connection).await;
                return Ok(Ended::Refused(error));
            }
            Err(_) => {
                connection.discard();
                return Ok(Ended::Broken(SILENT.to_owned()));
            }
        };
        crash::point("postgres: before commit");
        let committed = tokio::time::timeout(COMMIT_TIMEOUT, connection.commit()).await;
        crash::point("postgres: after commit");
        Ok(match committed {
            Ok(Ok(())) => Ended::Committed(value),
            Ok(Err(error)) => after_commit(connection, error, value, mark).await,
            Err(_) => unconfirmed(connection, value, mark),
        })
    }

    /// Carries out a statement that changes rows and returns something of each, as a transaction of its own with its mark, in
    /// one exchange with the server. A statement that changes no row commits nothing.
    ///
    /// Behind a pooler, and where the server would answer before a commit is durable, it is one of three.
    pub(super) async fn run_alone(
        &self,
        pool: &Pool,
        sql: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<Alone, StoreError> {
        let number = values.len() + 1;
        let marked = format!(
            "WITH changed AS ({sql}), marked AS (INSERT INTO planwright.commit_marks (id) \
             SELECT CASE WHEN (SELECT key_id FROM planwright.vault) IS NOT DISTINCT FROM ${} THEN ${number} END \
             FROM (SELECT 1 FROM changed LIMIT 1) AS any_row) SELECT * FROM changed",
            number + 1
        );
        let mut patience = Patience::new(PATIENCE);
        let mut crossed = 0;
        loop {
            let connection = match pool.lend(Planned::Once).await {
                Ok(connection) => connection,
                Err(StoreError::Unreachable(_)) if patience.wait().await => continue,
                Err(error) => return Err(error),
            };
            if !self.is_durable || !connection.keeping().keeps() {
                drop(connection);
                return self.run_one(pool, sql, values).await.map(Alone::Done);
            }
            let mark = new_mark()?;
            let mut values = values.to_vec();
            values.push((&mark.0, Type::BYTEA));
            values.push((&self.key_id, Type::TEXT));
            crash::point("postgres: before commit");
            let asked = connection.query_alone(&marked, &values);
            let asked = tokio::time::timeout(COMMIT_TIMEOUT, asked).await;
            crash::point("postgres: after commit");
            let (found, doubt) = match asked {
                Ok(Ok((rows, is_confirmed))) if is_confirmed || rows.is_empty() => {
                    connection.keeping().prepare_due().await;
                    return Ok(Alone::Done(rows));
                }
                Ok(Ok((rows, _))) => (Alone::Done(rows), Doubt::Unconfirmed),
                Ok(Err(error)) if is_broken(&error) => (Alone::Unheard, Doubt::Broken),
                Ok(Err(error)) if is_crossed(&error) && crossed < MAX_CROSSED => {
                    crossed += 1;
                    continue;
                }
                Ok(Err(error)) => return Err(store_error(&error, pool.place())),
                Err(_) => (Alone::Unheard, Doubt::Unconfirmed),
            };
            connection.discard();
            if self.was_committed(pool, &mark, doubt).await? {
                return Ok(found);
            }
        }
    }

    /// Carries out one statement in a transaction.
    pub(super) async fn run_one(
        &self,
        pool: &Pool,
        sql: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<Vec<Row>, StoreError> {
        let data = (sql, values);
        let pool = (pool, Planned::ForValues);
        self.run(pool, &data, |client, (sql, values)| {
            Box::pin(async move { Ok::<_, Stop<StoreError>>(client.query(sql, values).await?) })
        })
        .await
    }

    /// Begins a transaction and marks it, in one exchange. Nothing may be written before this is known to have
    /// worked: without a transaction every statement would be committed by itself.
    pub(super) async fn begin(&self, client: KeepingClient<'_>, mark: &Mark) -> Result<(), Error> {
        let begin = match client.keeps() {
            true => &self.begin_kept,
            false => &self.begin,
        };
        let values: [(Value<'_>, Type); 2] = [(&mark.0, Type::BYTEA), (&self.key_id, Type::TEXT)];
        let (begun, marked) =
            futures::join!(client.execute_all(begin), client.execute(MARK, &values),);
        begun?;
        marked.map(drop)
    }
}

/// What a failed commit means: the server said that it did not, or it said nothing that counts.
pub(super) async fn after_commit<T, E>(
    connection: Lent,
    error: CommitError,
    value: T,
    mark: Mark,
) -> Ended<T, E> {
    match error {
        CommitError::Database(error) if error.code().is_some() && !is_broken(&error) => {
            undo(connection, error).await
        }
        CommitError::Database(_) => {
            connection.discard();
            Ended::Unknown(value, mark, Doubt::Broken)
        }
        CommitError::Unconfirmed => unconfirmed(connection, value, mark),
    }
}

/// A commit that the server did not confirm, or not in time.
pub(super) fn unconfirmed<T, E>(connection: Lent, value: T, mark: Mark) -> Ended<T, E> {
    connection.discard();
    Ended::Unknown(value, mark, Doubt::Unconfirmed)
}

/// Ends a transaction that failed before its commit.
pub(super) async fn undo<T, E>(connection: Lent, error: Error) -> Ended<T, E> {
    if is_broken(&error) {
        connection.discard();
        return Ended::Broken(describe(&error));
    }
    roll_back(connection).await;
    if is_crossed(&error) {
        Ended::Crossed(error)
    } else {
        Ended::Failed(error)
    }
}

async fn roll_back(connection: Lent) {
    if connection.batch_execute("ROLLBACK").await.is_err() {
        connection.discard();
    }
}

impl Transactions {
    /// Finds out whether a transaction was committed, by inserting its mark. The database makes this wait for as long as
    /// that transaction may still be committed, and once it has worked it cannot be any more.
    pub(super) async fn was_committed(
        &self,
        pool: &Pool,
        mark: &Mark,
        doubt: Doubt,
    ) -> Result<bool, StoreError> {
        let mut patience = Patience::new(LOOKUP_PATIENCE);
        let mut doubt = Some(doubt);
        loop {
            match doubt {
                Some(Doubt::Unconfirmed) => pool.suspect_server(),
                Some(Doubt::Broken) | None => pool.forget_idle(),
            }
            let reason = match pool.get().await {
                Ok(connection) => match self.look_up(connection, mark).await {
                    Ok(committed) => {
                        tracing::info!(
                            committed,
                            "a commit was interrupted; its outcome was looked up"
                        );
                        return Ok(committed);
                    }
                    Err((reason, found)) => {
                        doubt = found;
                        reason
                    }
                },
                Err(error) => {
                    doubt = None;
                    error.to_string()
                }
            };
            if !patience.wait().await {
                return Err(StoreError::Lost(format!(
                    "it is not known whether a commit was made: {reason}"
                )));
            }
        }
    }

    /// Looks once. That is a commit of its own, also where the mark is found: a server that was cut off from its standby
    /// shows what no other server will ever have.
    async fn look_up(
        &self,
        connection: Lent,
        mark: &Mark,
    ) -> Result<bool, (String, Option<Doubt>)> {
        let looked = async {
            let found = look_for(&self.begin, &connection, mark).await;
            let found = found.map_err(CommitError::Database)?;
            connection.commit().await.map(|()| found)
        };
        let looked = tokio::time::timeout(COMMIT_TIMEOUT, looked).await;
        match looked {
            Ok(Ok(committed)) => Ok(committed),
            Ok(Err(CommitError::Database(error))) => {
                connection.discard();
                Err((describe(&error), Some(Doubt::Broken)))
            }
            Ok(Err(CommitError::Unconfirmed)) | Err(_) => {
                connection.discard();
                Err((SILENT.to_owned(), Some(Doubt::Unconfirmed)))
            }
        }
    }
}

/// Inserts the mark of a transaction that was not committed, with a second one that says so: if the answer to this gets
/// lost too, the mark that is found later is not taken for that of the transaction.
async fn look_for(begin: &str, client: &Client, mark: &Mark) -> Result<bool, Error> {
    let void = [&mark.0[..], b"void"].concat();
    let mark: (Value<'_>, Type) = (&mark.0, Type::BYTEA);
    let void: (Value<'_>, Type) = (&void, Type::BYTEA);
    client.batch_execute(begin).await?;
    let sql = "INSERT INTO planwright.commit_marks (id) VALUES ($1) ON CONFLICT DO NOTHING";
    if client
        .execute_typed(sql, std::slice::from_ref(&mark))
        .await?
        == 1
    {
        let sql = "INSERT INTO planwright.commit_marks (id) VALUES ($1)";
        client.execute_typed(sql, &[void]).await?;
        return Ok(false);
    }
    // Something has to be written, for the commit to be one.
    let sql = "UPDATE planwright.commit_marks SET at = now() WHERE id = $1 \
               RETURNING NOT EXISTS (SELECT 1 FROM planwright.commit_marks WHERE id = $2)";
    let row = client.query_typed_one(sql, &[mark, void]).await?;
    Ok(row.get(0))
}
