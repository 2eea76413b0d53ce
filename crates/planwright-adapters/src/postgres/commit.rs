//! Transactions: begun, repeated where another one was in the way, and looked up where the connection broke
//! before the answer to a commit came.

use super::fault::{Stop, is_crossed, store_error};
use super::pool::{Lent, Pool};
use crate::vault::Cipher;
use planwright_engine::crash;
use planwright_engine::port::{BoxFuture, StoreError};
use std::time::{Duration, Instant};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};

/// The time an answer is waited for while the database cannot be reached. The engine asks again after that.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The time the outcome of a commit is looked for.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(120);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often a transaction is begun anew because of others.
pub(super) const MAX_CROSSED: u32 = 50;

/// Settings of every transaction. They are local to it, so that nothing stays on a connection that a pooler lends to
/// others. A process that is stopped in the middle must not keep its locks.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
     SET LOCAL lock_timeout = '10s'; \
     SET LOCAL statement_timeout = '60s'; \
     SET LOCAL idle_in_transaction_session_timeout = '20s'";

/// As [`BEGIN`], where the server would answer before a commit is durable.
const BEGIN_DURABLE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
     SET LOCAL synchronous_commit = on; \
     SET LOCAL lock_timeout = '10s'; \
     SET LOCAL statement_timeout = '60s'; \
     SET LOCAL idle_in_transaction_session_timeout = '20s'";

/// The mark of a transaction, and the proof that its process has the key of the store: without it there is no mark to insert,
/// and the transaction fails.
const MARK: &str = "INSERT INTO planwright.commit_marks (id) VALUES (\
     CASE WHEN (SELECT key_id FROM planwright.vault) IS NOT DISTINCT FROM $2 THEN $1 END)";

/// A value for a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// Names one transaction.
#[derive(Debug)]
pub(super) struct Mark(pub(super) Vec<u8>);

/// Makes transactions.
#[derive(Debug)]
pub(super) struct Transactions {
    begin: &'static str,
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
    Broken(Error),
    /// Nothing was written, and trying again does not help.
    Failed(Error),
    /// The connection broke during the commit.
    Unknown(T, Mark),
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
        Self {
            key_id: cipher.key_id().map(str::to_owned),
            begin: if durable { BEGIN } else { BEGIN_DURABLE },
        }
    }

    /// Does `work` in one transaction. It is done again if the transaction has to be begun anew, so that it must
    /// not remember anything.
    pub(super) async fn run<D, T, E, F>(&self, pool: &Pool, data: &D, work: F) -> Result<T, E>
    where
        D: Sync,
        E: From<StoreError>,
        F: for<'c> Fn(&'c Client, &'c D) -> BoxFuture<'c, Result<T, Stop<E>>>,
    {
        let mut patience = Patience::new(PATIENCE);
        let mut crossed = 0;
        loop {
            let connection = match pool.get().await {
                Ok(connection) => connection,
                Err(StoreError::Unreachable(_)) if patience.wait().await => continue,
                Err(error) => return Err(error.into()),
            };
            match self.attempt(connection, data, &work).await? {
                Ended::Committed(value) => return Ok(value),
                Ended::Refused(error) => return Err(error),
                Ended::Unknown(value, mark) => {
                    pool.forget_idle();
                    if was_committed(pool, &mark).await? {
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
                Ended::Broken(error) => {
                    pool.forget_idle();
                    if !patience.wait().await {
                        return Err(store_error(&error, pool.place()).into());
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
        F: for<'c> Fn(&'c Client, &'c D) -> BoxFuture<'c, Result<T, Stop<E>>>,
    {
        let mark = new_mark()?;
        let client: &Client = &connection;
        crash::point("postgres: before begin");
        if let Err(error) = self.begin(client, &mark).await {
            return Ok(undo(connection, error).await);
        }
        let value = match work(client, data).await {
            Ok(value) => value,
            Err(Stop::Database(error)) => return Ok(undo(connection, error).await),
            Err(Stop::Refused(error)) => {
                roll_back(connection).await;
                return Ok(Ended::Refused(error));
            }
        };
        crash::point("postgres: before commit");
        let committed = connection.batch_execute("COMMIT").await;
        crash::point("postgres: after commit");
        Ok(match committed {
            Ok(()) => Ended::Committed(value),
            Err(error) => after_commit(connection, error, value, mark).await,
        })
    }

    /// Begins a transaction and marks it, in one exchange. Nothing may be written before this is known to have
    /// worked: without a transaction every statement would be committed by itself.
    pub(super) async fn begin(&self, client: &Client, mark: &Mark) -> Result<(), Error> {
        let values: [(Value<'_>, Type); 2] = [(&mark.0, Type::BYTEA), (&self.key_id, Type::TEXT)];
        let (begun, marked) = futures::join!(
            client.batch_execute(self.begin),
            client.execute_typed(MARK, &values),
        );
        begun?;
        marked.map(drop)
    }
}

/// What a failed commit means: the server said that it did not, or it said nothing.
pub(super) async fn after_commit<T, E>(
    connection: Lent,
    error: Error,
    value: T,
    mark: Mark,
) -> Ended<T, E> {
    if error
        .code()
        .is_some_and(|_| !super::fault::is_broken(&error))
    {
        return undo(connection, error).await;
    }
    connection.discard();
    Ended::Unknown(value, mark)
}

/// Ends a transaction that failed before its commit.
pub(super) async fn undo<T, E>(connection: Lent, error: Error) -> Ended<T, E> {
    if super::fault::is_broken(&error) {
        connection.discard();
        return Ended::Broken(error);
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

/// Finds out whether a transaction was committed, by inserting its mark. The database makes this wait for as long as
/// that transaction may still be committed, and once it has worked it cannot be any more.
pub(super) async fn was_committed(pool: &Pool, mark: &Mark) -> Result<bool, StoreError> {
    let mut patience = Patience::new(LOOKUP_PATIENCE);
    let sql = "INSERT INTO planwright.commit_marks (id) VALUES ($1) ON CONFLICT DO NOTHING";
    loop {
        let found = match pool.get().await {
            Ok(connection) => {
                let inserted = connection
                    .execute_typed(sql, &[(&mark.0, Type::BYTEA)])
                    .await;
                match inserted {
                    Ok(rows) => Ok(rows == 0),
                    Err(error) => {
                        let reason = store_error(&error, pool.place());
                        connection.discard_broken(&error);
                        Err(reason)
                    }
                }
            }
            Err(error) => Err(error),
        };
        match found {
            Ok(committed) => {
                tracing::info!(
                    committed,
                    "a commit was interrupted; its outcome was looked up"
                );
                return Ok(committed);
            }
            Err(error) if !patience.wait().await => {
                return Err(StoreError::Lost(format!(
                    "it is not known whether a commit was made: {error}"
                )));
            }
            Err(_) => pool.forget_idle(),
        }
    }
}
