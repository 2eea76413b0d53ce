//! Statements that connections keep prepared, so that the server does not parse and plan them each time: that took it longer
//! than carrying them out.
//!
//! What a transaction sends in one exchange has to be sent in its order, and a statement that is just being prepared would
//! come too late. So a statement is prepared between two transactions, once the connection has used it a few times: a
//! short command never does.

use super::commit::Value;
use futures::future::join_all;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Statement};

/// A statement that was used so often is prepared.
const OFTEN: u32 = 4;
/// The time that preparing may take those who have what they asked for.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings of connections that keep statements. Their plans are made once, perhaps while the tables are empty: they must
/// be those for full tables, which are by the indexes. Compiling them costs more than it saves.
const BY_INDEXES: [&str; 6] = [
    "plan_cache_mode = force_generic_plan",
    "enable_seqscan = off",
    "enable_bitmapscan = off",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
    "jit = off",
];

/// Continues a list of statements with those that make these settings.
pub(super) fn set_plans_by_indexes() -> String {
    let each = BY_INDEXES.iter().map(|setting| format!("; SET {setting}"));
    each.collect()
}

/// What one connection keeps.
#[derive(Debug, Default)]
pub(super) struct KeptStatements(Mutex<HashMap<Box<str>, Kept>>);

#[derive(Debug)]
enum Kept {
    /// It was used so often, with values of these types.
    Used(u32, Vec<Type>),
    Prepared(Statement),
    /// The server does not prepare it.
    Refused,
}

impl KeptStatements {
    /// The statement if it is prepared. Otherwise its use is counted.
    fn find(&self, sql: &str, values: &[(Value<'_>, Type)]) -> Option<Statement> {
        let mut kept = self.kept();
        match kept.get_mut(sql) {
            Some(Kept::Prepared(statement)) => return Some(statement.clone()),
            Some(Kept::Used(times, _)) => *times += 1,
            Some(Kept::Refused) => {}
            None => {
                let types = values.iter().map(|(_, kind)| kind.clone()).collect();
                kept.insert(sql.into(), Kept::Used(1, types));
            }
        }
        None
    }

    fn due(&self) -> Vec<(Box<str>, Vec<Type>)> {
        let kept = self.kept();
        let due = kept.iter().filter_map(|(sql, kept)| match kept {
            Kept::Used(times, types) if *times >= OFTEN => Some((sql.clone(), types.clone())),
            Kept::Used(..) | Kept::Prepared(_) | Kept::Refused => None,
        });
        due.collect()
    }

    /// Prepares what was used often, in one exchange. To be called between transactions: a statement that the
    /// server refuses would end one.
    pub(super) async fn prepare_due(&self, client: &Client) {
        let due = self.due();
        if due.is_empty() {
            return;
        }
        let preparing = due
            .iter()
            .map(|(sql, types)| client.prepare_typed(sql, types));
        // A server that is silent is found so by the next statement.
        let preparing = tokio::time::timeout(PREPARE_TIMEOUT, join_all(preparing));
        let Ok(prepared) = preparing.await else {
            return;
        };
        for ((sql, _), prepared) in due.into_iter().zip(prepared) {
            let now = match prepared {
                Ok(statement) => Kept::Prepared(statement),
                Err(error) => {
                    tracing::debug!(%error, "a statement is not prepared");
                    Kept::Refused
                }
            };
            self.kept().insert(sql, now);
        }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Box<str>, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection with the statements that it keeps. It may keep none: those that a pooler lends to others in between do not.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeepingClient<'a> {
    client: &'a Client,
    kept: Option<&'a KeptStatements>,
}

impl<'a> KeepingClient<'a> {
    pub(super) fn new(client: &'a Client, kept: Option<&'a KeptStatements>) -> Self {
        Self { client, kept }
    }

    /// The connection for statements that are not kept.
    pub(super) fn plain(self) -> &'a Client {
        self.client
    }

    /// Returns whether statements are kept.
    pub(super) fn keeps(self) -> bool {
        self.kept.is_some()
    }

    /// Prepares what was used often.
    pub(super) async fn prepare_due(self) {
        if let Some(kept) = self.kept {
            kept.prepare_due(self.client).await;
        }
    }

    fn find(self, sql: &str, values: &[(Value<'_>, Type)]) -> Option<Statement> {
        self.kept?.find(sql, values)
    }

    /// The rows of a statement. It is sent when this is polled first.
    pub(super) async fn query(
        self,
        sql: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<Vec<Row>, Error> {
        match self.find(sql, values) {
            Some(statement) => self.client.query(&statement, &without_types(values)).await,
            None => self.client.query_typed(sql, values).await,
        }
    }

    /// Carries a statement out. It is sent when this is polled first.
    pub(super) async fn execute(
        self,
        sql: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<u64, Error> {
        match self.find(sql, values) {
            Some(statement) => {
                let values = without_types(values);
                self.client.execute(&statement, &values).await
            }
            None => self.client.execute_typed(sql, values).await,
        }
    }

    /// Carries out statements without values.
    pub(super) async fn execute_all(self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
    }
}

fn without_types<'v>(values: &[(Value<'v>, Type)]) -> Vec<&'v (dyn ToSql + Sync)> {
    values.iter().map(|(value, _)| *value).collect()
}
