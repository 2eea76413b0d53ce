//! The journal: appended to by the writers, read in pages of a bounded size.

use super::appending::Queued;
use super::commit::Value;
use super::feed;
use super::rows::{count, digest, number, record, stream_name, unsigned};
use super::single_append::{self, PlainAppend, SingleAppend};
use super::store::{PostgresStore, Shared};
use super::wakeups::News;
use crate::sealing::mask_head;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_engine::crash;
use planwright_engine::port::{
    Append, AppendError, BoxFuture, FeedOf, Journal, MAX_PAGE_BYTES, Placed, Position, StoreError,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::oneshot;
use tokio_postgres::types::Type;

/// Entries that are asked for at once.
pub(super) const MAX_ROWS: usize = 500;
/// The most that one request may bring: what cannot be sent must not be begun.
const MAX_REQUEST_BYTES: usize = 256 << 20;

impl Shared {
    async fn read(
        &self,
        stream: &StreamName,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        // Of the entries that could be the next ones, those that the page has room for.
        let sql = "SELECT seq, at, epoch, key, body, hash FROM (\
                     SELECT *, sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body) AS before FROM (\
                       SELECT * FROM planwright.entries \
                       WHERE stream = (SELECT id FROM planwright.streams WHERE name = $1) AND seq > $2 \
                       ORDER BY seq LIMIT $3) AS next) AS sized \
                   WHERE before < $4 ORDER BY seq";
        let name = stream.to_string();
        let mut records: Vec<Record> = Vec::new();
        let mut bytes = 0;
        while records.len() < limit && bytes < MAX_PAGE_BYTES {
            let after = number(records.last().map_or(after, |record| record.seq));
            let wanted = (limit - records.len()).min(MAX_ROWS);
            let room = count(MAX_PAGE_BYTES - bytes);
            let values: [(Value<'_>, Type); 4] = [
                (&name, Type::TEXT),
                (&after, Type::INT8),
                (&count(wanted), Type::INT8),
                (&room, Type::INT8),
            ];
            let rows = self.kept_rows(sql, &values).await?;
            let mut fetched = 0;
            for row in &rows {
                let record = record(&self.cipher, row, 0, stream)?;
                fetched += row.get::<_, &[u8]>(4).len();
                bytes += record.body.len();
                records.push(record);
            }
            // Sealed bodies are longer: a page that is full of them may have room for more.
            if rows.len() < wanted && count(fetched) < room {
                break;
            }
        }
        Ok(records)
    }

    pub(super) async fn head(&self, stream: &StreamName) -> Result<Head, StoreError> {
        // Not a join, which would sort the whole stream.
        let sql = "SELECT seq, hash FROM planwright.entries \
                   WHERE stream = (SELECT id FROM planwright.streams WHERE name = $1) \
                   ORDER BY seq DESC LIMIT 1";
        let name = stream.to_string();
        let row = self.kept_row(sql, &[(&name, Type::TEXT)]).await?;
        row.map_or(Ok(Head::EMPTY), |row| {
            let kept = Head {
                seq: unsigned(row.get(0)),
                hash: digest(row.get(1))?,
            };
            Ok(mask_head(&self.cipher, &name, kept))
        })
    }
}

impl PostgresStore {
    /// The names of all streams, in order.
    pub async fn streams(&self) -> Result<Vec<StreamName>, StoreError> {
        self.on(|shared| async move {
            let sql = "SELECT name FROM planwright.streams ORDER BY name";
            let rows = shared.rows(sql, &[]).await?;
            rows.iter().map(|row| stream_name(row.get(0))).collect()
        })
        .await
    }

    /// Appends in one statement, if that is possible and no other append is under way.
    async fn append_alone(&self, appends: &[Append]) -> Option<SingleAppend> {
        let shared = self.shared();
        if shared.queued.load(Ordering::Acquire) > 0 {
            return None;
        }
        let plain = PlainAppend::of(appends)?;
        let end = single_append::append(shared, &plain).await?;
        if end == SingleAppend::Committed {
            crash::point("postgres: before the reply");
            shared.wakeups.announce(News::Change);
        }
        Some(end)
    }

    /// Appends in a transaction of the writers.
    pub(super) async fn append_with_others(&self, appends: Vec<Append>) -> Result<(), AppendError> {
        let (reply, answer) = oneshot::channel();
        let _waiting = Waiting::new(&self.shared().queued);
        self.enqueue(Queued { appends, reply }).await?;
        let stopped = || StoreError::Lost("its writer has stopped".to_owned());
        answer.await.map_err(|_| stopped())?
    }
}

/// Counts a request for as long as it waits.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Journal for PostgresStore {
    fn append(&self, appends: Vec<Append>) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(async move {
            let records = appends.iter().flat_map(|append| &append.records);
            let bytes: usize = records.map(|record| record.body.len()).sum();
            if bytes > MAX_REQUEST_BYTES {
                let reason = format!("{bytes} bytes are too much for one commit");
                return Err(StoreError::Failed(reason).into());
            }
            if let Some(end) = self.append_alone(&appends).await {
                match end {
                    SingleAppend::Committed => return Ok(()),
                    SingleAppend::NotWritten => {}
                    SingleAppend::Unknown(doubt) => {
                        return self.settle_append(appends, doubt).await;
                    }
                }
            }
            self.append_with_others(appends).await
        })
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamName,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        let stream = stream.clone();
        self.on(move |shared| async move { shared.read(&stream, after, limit).await })
    }

    fn feed<'a>(
        &'a self,
        of: &'a FeedOf,
        after: Position,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Placed>, StoreError>> {
        let of = of.clone();
        self.on(
            move |shared: Arc<Shared>| async move { feed::read(&shared, &of, after, limit).await },
        )
    }

    fn head<'a>(&'a self, stream: &'a StreamName) -> BoxFuture<'a, Result<Head, StoreError>> {
        let stream = stream.clone();
        self.on(move |shared| async move { shared.head(&stream).await })
    }
}
