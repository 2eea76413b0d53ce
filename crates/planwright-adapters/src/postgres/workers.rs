//! The workers as rows, with what they do now.

use super::commit::Value;
use super::offers::{OFFER, read_offer};
use super::owners::Life;
use super::rows::{NOW, text};
use super::store::Shared;
use crate::sealing::{open_worker_column, seal_worker_column};
use planwright_core::id::RunId;
use planwright_core::time::Timestamp;
use planwright_engine::port::{ListedWorker, OfferKey, OwnerId, StoreError, WorkerRecord};
use std::collections::BTreeMap;
use tokio_postgres::types::Type;

impl Shared {
    pub(super) async fn register_worker(&self, record: &WorkerRecord) -> Result<(), StoreError> {
        self.owners.hold(self, &record.id).await?;
        let tools = serde_json::to_vec(&record.tools).map_err(|error| {
            StoreError::Failed(format!("the tools of a worker cannot be written: {error}"))
        })?;
        let sql = format!(
            "INSERT INTO planwright.workers (id, host, pid, version, capabilities, concurrency, tools, started_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, {NOW}) \
             ON CONFLICT (id) DO UPDATE SET capabilities = $5, concurrency = $6, tools = $7, seen_at = clock_timestamp()"
        );
        let sealed =
            |column, value| seal_worker_column(&self.cipher, (record.id.0.as_str(), column), value);
        let host = &*sealed("host", record.host.as_bytes())?;
        let tools = &*sealed("tools", &tools)?;
        let values: [(Value<'_>, Type); 7] = [
            (&record.id.0, Type::TEXT),
            (&host, Type::BYTEA),
            (&i64::from(record.pid), Type::INT8),
            (&record.version, Type::TEXT),
            (&record.capabilities, Type::TEXT_ARRAY),
            (&i64::from(record.concurrency), Type::INT8),
            (&tools, Type::BYTEA),
        ];
        self.change(&sql, &values).await.map(drop)
    }

    pub(super) async fn drain_worker(&self, id: &OwnerId) -> Result<(), StoreError> {
        let sql = "UPDATE planwright.workers SET draining = true WHERE id = $1";
        self.change(sql, &[(&id.0, Type::TEXT)]).await.map(drop)
    }

    pub(super) async fn remove_worker(&self, id: &OwnerId) -> Result<(), StoreError> {
        // What it had is remembered for a while: plans that name its tools can still be read.
        let sql = "UPDATE planwright.workers SET draining = true, seen_at = clock_timestamp() WHERE id = $1";
        self.change(sql, &[(&id.0, Type::TEXT)]).await.map(drop)
    }

    pub(super) async fn workers(&self) -> Result<Vec<ListedWorker>, StoreError> {
        // While it is there, its process writes its beats into `owners`.
        let sql = "SELECT w.id, w.host, w.pid, w.version, w.capabilities, w.concurrency, w.tools, w.draining, w.started_at, \
                   floor(extract(epoch FROM greatest(w.seen_at, o.seen_at)) * 1000)::bigint \
                   FROM planwright.workers AS w LEFT JOIN planwright.owners AS o ON o.owner = w.id \
                   ORDER BY w.started_at, w.id";
        let rows = self.rows(sql, &[]).await?;
        let mut claims = self.claims_by_worker().await?;
        let mut runs = self.runs_by_owner().await?;
        let mut workers = Vec::new();
        for row in rows {
            let id = OwnerId(row.get(0));
            let life = self.life(&id).await?;
            // What does not open is not known, as what another version of the program wrote.
            let opened = |column, kept| {
                open_worker_column(&self.cipher, (id.0.as_str(), column), kept).unwrap_or_default()
            };
            let record = WorkerRecord {
                host: text(Some(&opened("host", row.get(1)))),
                pid: u32::try_from(row.get::<_, i64>(2)).unwrap_or_default(),
                version: row.get(3),
                capabilities: row.get(4),
                concurrency: u32::try_from(row.get::<_, i64>(5)).unwrap_or_default(),
                tools: serde_json::from_slice(&opened("tools", row.get(6))).unwrap_or_default(),
                id: id.clone(),
            };
            workers.push(ListedWorker {
                record,
                is_alive: life != Life::Dead,
                is_draining: row.get(7),
                started_at: Timestamp::from_millis(row.get(8)),
                seen_at: Timestamp::from_millis(row.get(9)),
                claims: claims.remove(&id).unwrap_or_default(),
                runs: runs.remove(&id).unwrap_or_default(),
            });
        }
        Ok(workers)
    }

    pub(super) async fn workers_version(&self) -> Result<String, StoreError> {
        // The tools are not read: a row that is written again has another `xmin`.
        let sql = "SELECT coalesce(md5(string_agg(id || ' ' || xmin::text, ' ' ORDER BY id)), '') \
                   FROM planwright.workers";
        let row = self.row(sql, &[]).await?;
        Ok(row.map(|row| row.get(0)).unwrap_or_default())
    }

    async fn claims_by_worker(&self) -> Result<BTreeMap<OwnerId, Vec<OfferKey>>, StoreError> {
        let sql = format!(
            "SELECT {OFFER}, o.claimed_by FROM planwright.offers AS o \
             WHERE o.state = 'claimed' AND o.claimed_by IS NOT NULL ORDER BY o.id"
        );
        let mut claims: BTreeMap<OwnerId, Vec<OfferKey>> = BTreeMap::new();
        for row in self.rows(&sql, &[]).await? {
            let Ok(offer) = read_offer(&self.cipher, &row) else {
                continue;
            };
            let of_worker = claims.entry(OwnerId(row.get(9))).or_default();
            of_worker.push(offer.key);
        }
        Ok(claims)
    }

    async fn runs_by_owner(&self) -> Result<BTreeMap<OwnerId, Vec<RunId>>, StoreError> {
        let sql = "SELECT l.owner, l.run FROM planwright.leases AS l \
                   JOIN planwright.workers AS w ON w.id = l.owner ORDER BY l.run";
        let mut runs: BTreeMap<OwnerId, Vec<RunId>> = BTreeMap::new();
        for row in self.rows(sql, &[]).await? {
            if let Ok(run) = row.get::<_, &str>(1).parse() {
                runs.entry(OwnerId(row.get(0))).or_default().push(run);
            }
        }
        Ok(runs)
    }
}
