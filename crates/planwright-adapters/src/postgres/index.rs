//! The index of streams.

use super::appending::read_status;
use super::commit::Value;
use super::fault::Stop;
use super::rows::{NOW, count, stream_name, unsigned};
use super::sealed_group::seal_label;
use super::store::{PostgresStore, Shared};
use super::wakeups::News;
use crate::vault::Cipher;
use planwright_core::id::PlanId;
use planwright_core::journal::StreamName;
use planwright_core::principal::Principal;
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    BoxFuture, Changes, StoreError, StoreHealth, StreamCounts, StreamIndex, StreamInfo,
    StreamStatus,
};
use tokio::sync::watch;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

pub(super) const INFO_COLUMNS: &str = "name, plan, status, label, created_at, updated_at";

/// Reads [`INFO_COLUMNS`].
pub(super) fn info(cipher: &Cipher, row: &Row) -> Result<StreamInfo, StoreError> {
    let stream = stream_name(row.get(0))?;
    let status = read_status(cipher, row, (row.get(0), 1))?;
    Ok(StreamInfo {
        status: status.ok_or_else(|| StoreError::Failed(format!("{stream} has no status")))?,
        stream,
        created_at: Timestamp::from_millis(row.get(4)),
        updated_at: Timestamp::from_millis(row.get(5)),
    })
}

impl Shared {
    /// Rows that have nothing to do with each other: one that cannot be understood does not hide the others.
    pub(super) async fn infos(
        &self,
        rest: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<Vec<StreamInfo>, StoreError> {
        let sql = format!("SELECT {INFO_COLUMNS} FROM planwright.streams {rest}");
        let rows = self.rows(&sql, values).await?;
        let read = |row: &Row| match info(&self.cipher, row) {
            Ok(info) => Some(info),
            Err(error) => {
                tracing::error!(%error, "a stream is left out: its row cannot be understood");
                None
            }
        };
        Ok(rows.iter().filter_map(read).collect())
    }

    async fn counts(&self) -> Result<StreamCounts, StoreError> {
        let sql = "SELECT kind, status, count(*) FROM planwright.streams \
                   WHERE plan IS NOT NULL AND status IS NOT NULL GROUP BY kind, status";
        let mut counts = StreamCounts::default();
        for row in self.rows(sql, &[]).await? {
            let words = match row.get::<_, &str>(0) {
                "plan" => &mut counts.plans,
                _ => &mut counts.runs,
            };
            words.insert(row.get::<_, String>(1).into(), unsigned(row.get(2)));
        }
        Ok(counts)
    }

    async fn correct_status(
        &self,
        stream: &StreamName,
        status: &StreamStatus,
    ) -> Result<(), StoreError> {
        let correction = (&*self.cipher, stream.to_string(), status);
        self.transact(&correction, |client, correction| {
            Box::pin(write_status(client, correction))
        })
        .await?;
        self.wakeups.announce(News::Change);
        Ok(())
    }
}

/// Writes a status into the row of its stream. The label is bound to what the row says.
async fn write_status(
    client: &Client,
    (cipher, stream, status): &(&Cipher, String, &StreamStatus),
) -> Result<(), Stop<StoreError>> {
    let sql = "SELECT created_at, updated_at FROM planwright.streams WHERE name = $1 FOR UPDATE";
    let row = client.query_typed_opt(sql, &[(stream, Type::TEXT)]).await?;
    let Some(row) = row else { return Ok(()) };
    let times = (
        Timestamp::from_millis(row.get(0)),
        Timestamp::from_millis(row.get(1)),
    );
    let label =
        seal_label(cipher, (stream, times), status).map_err(|error| Stop::Refused(error.into()))?;
    let label = &*label;
    let sql = "UPDATE planwright.streams SET plan = $2, status = $3, label = $4 WHERE name = $1";
    let values: [(Value<'_>, Type); 4] = [
        (stream, Type::TEXT),
        (&status.plan.as_str(), Type::TEXT),
        (&status.status.as_str(), Type::TEXT),
        (&label, Type::BYTEA),
    ];
    client.execute_typed(sql, &values).await?;
    Ok(())
}

fn words(statuses: &[CachedStatus]) -> Vec<String> {
    statuses.iter().map(ToString::to_string).collect()
}

impl StreamIndex for PostgresStore {
    fn plans(&self) -> BoxFuture<'_, Result<Vec<StreamInfo>, StoreError>> {
        let rest = "WHERE kind = 'plan' AND plan IS NOT NULL ORDER BY updated_at DESC, id DESC";
        self.on(move |shared| async move { shared.infos(rest, &[]).await })
    }

    fn plans_by_age<'a>(
        &'a self,
        after: Option<(Timestamp, &'a PlanId)>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        // Nothing is made after the end of time, and every id comes after the empty one.
        let (at, id) = after.map_or_else(
            || (i64::MAX, String::new()),
            |(at, id)| (at.as_millis(), id.as_str().to_owned()),
        );
        let limit = count(limit);
        // As the index for it says it: see the migration.
        let rest = "WHERE kind <> 'run' AND plan IS NOT NULL AND created_at <= $1 \
                    AND (created_at < $1 OR plan > $2) ORDER BY created_at DESC, plan LIMIT $3";
        self.on(move |shared| async move {
            let values: [(Value<'_>, Type); 3] =
                [(&at, Type::INT8), (&id, Type::TEXT), (&limit, Type::INT8)];
            shared.infos(rest, &values).await
        })
    }

    fn runs<'a>(&'a self, plan: &'a PlanId) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        let plan = plan.as_str().to_owned();
        self.on(move |shared| async move {
            let rest = "WHERE kind = 'run' AND plan = $1 ORDER BY id";
            shared.infos(rest, &[(&plan, Type::TEXT)]).await
        })
    }

    fn plans_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
        until: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        let words = words(statuses);
        let until = until.map_or(i64::MAX, Timestamp::as_millis);
        self.on(move |shared| async move {
            let rest = "WHERE kind = 'plan' AND plan IS NOT NULL AND status = ANY($1) AND updated_at <= $2 \
                        ORDER BY updated_at DESC, id DESC";
            let values: [(Value<'_>, Type); 2] = [(&words, Type::TEXT_ARRAY), (&until, Type::INT8)];
            shared.infos(rest, &values).await
        })
    }

    fn plans_with_runs(
        &self,
        status: CachedStatus,
    ) -> BoxFuture<'_, Result<Vec<StreamInfo>, StoreError>> {
        let word = status.to_string();
        self.on(move |shared| async move {
            let rest = "WHERE kind = 'plan' AND plan IS NOT NULL AND status = $1 AND EXISTS (\
                          SELECT 1 FROM planwright.streams AS r WHERE r.kind = 'run' AND r.plan = streams.plan) \
                        ORDER BY updated_at DESC, id DESC";
            shared.infos(rest, &[(&word, Type::TEXT)]).await
        })
    }

    fn runs_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        let words = words(statuses);
        self.on(move |shared| async move {
            let rest = "WHERE kind = 'run' AND plan IS NOT NULL AND status = ANY($1) ORDER BY id";
            shared.infos(rest, &[(&words, Type::TEXT_ARRAY)]).await
        })
    }

    fn counts(&self) -> BoxFuture<'_, Result<StreamCounts, StoreError>> {
        self.on(|shared| async move { shared.counts().await })
    }

    fn correct_status<'a>(
        &'a self,
        stream: &'a StreamName,
        status: StreamStatus,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let stream = stream.clone();
        self.on(move |shared| async move { shared.correct_status(&stream, &status).await })
    }

    fn brought_bytes<'a>(&'a self, by: &'a Principal) -> BoxFuture<'a, Result<u64, StoreError>> {
        let by = by.to_string();
        self.on(move |shared| async move {
            let sql = "SELECT bytes FROM planwright.brought_in_all WHERE principal = $1";
            let row = shared.row(sql, &[(&by, Type::TEXT)]).await?;
            Ok(row.map_or(0, |row| unsigned(row.get(0))))
        })
    }

    fn info<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<StreamInfo>, StoreError>> {
        let name = stream.to_string();
        self.on(move |shared| async move {
            let sql = format!(
                "SELECT {INFO_COLUMNS} FROM planwright.streams WHERE name = $1 AND plan IS NOT NULL"
            );
            let row = shared.row(&sql, &[(&name, Type::TEXT)]).await?;
            row.as_ref()
                .map(|row| info(&shared.cipher, row))
                .transpose()
        })
    }
}

impl StoreHealth for PostgresStore {
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.on(|shared| async move {
            // The mark of the transaction is the write.
            let sql = format!("SELECT {NOW}");
            shared
                .transact(&sql, |client, sql| {
                    Box::pin(async move {
                        client.query_typed(sql, &[]).await?;
                        Ok::<_, Stop<StoreError>>(())
                    })
                })
                .await
        })
    }

    fn failure(&self) -> watch::Receiver<Option<String>> {
        self.failure_watch()
    }
}

impl Changes for PostgresStore {
    fn changes(&self) -> watch::Receiver<u64> {
        self.start_listening();
        self.shared().wakeups.changes()
    }

    fn mail_changes(&self) -> watch::Receiver<u64> {
        self.start_listening();
        self.shared().wakeups.mail()
    }
}
