//! Leases as rows, by the clock of the database.

use super::appending::millis;
use super::commit::{Alone, Value};
use super::owners::Life;
use super::rows::{NOW, number, unsigned};
use super::store::{PostgresStore, Shared};
use super::wakeups::News;
use planwright_core::id::RunId;
use planwright_core::journal::StreamName;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    AcquireError, AppendError, BoxFuture, Lease, Leases, OwnerId, StoreError,
};
use std::time::{Duration, Instant};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// The time in which it is decided whether a process that is missing is dead: after a start of the server that takes
/// longest. The caller is told then that the run is held.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(8);
const VERDICT_PAUSE: Duration = Duration::from_millis(200);

/// A lease as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LeaseRow {
    epoch: u64,
    /// `None` once it was given back.
    owner: Option<OwnerId>,
    expires_at: i64,
}

impl LeaseRow {
    fn read(row: &Row) -> Self {
        Self {
            epoch: unsigned(row.get(0)),
            owner: row.get::<_, Option<String>>(1).map(OwnerId),
            expires_at: row.get(2),
        }
    }

    fn lease(self, run: &RunId) -> Option<Lease> {
        Some(Lease {
            run: run.clone(),
            owner: self.owner?,
            epoch: self.epoch,
            expires_at: Timestamp::from_millis(self.expires_at),
        })
    }
}

/// A lease that is wanted.
struct Wanted<'a> {
    run: &'a RunId,
    owner: &'a OwnerId,
    ttl: Duration,
    /// The row that the decision was made on.
    seen: Option<LeaseRow>,
}

impl Wanted<'_> {
    /// The epoch that the lease will have.
    fn epoch(&self) -> u64 {
        self.seen.as_ref().map_or(0, |row| row.epoch) + 1
    }

    fn taken(&self, expires_at: i64) -> Lease {
        Lease {
            run: self.run.clone(),
            owner: self.owner.clone(),
            epoch: self.epoch(),
            expires_at: Timestamp::from_millis(expires_at),
        }
    }
}

impl Shared {
    /// The row of a lease, and the time of the database.
    async fn lease_row(&self, run: &RunId) -> Result<(Option<LeaseRow>, i64), StoreError> {
        let sql =
            format!("SELECT epoch, owner, expires_at, {NOW} FROM planwright.leases WHERE run = $1");
        let row = self.kept_row(&sql, &[(&run.as_str(), Type::TEXT)]).await?;
        Ok(row.map_or((None, 0), |row| (Some(LeaseRow::read(&row)), row.get(3))))
    }

    async fn acquire(
        &self,
        run: &RunId,
        owner: &OwnerId,
        ttl: Duration,
    ) -> Result<Lease, AcquireError> {
        let started = Instant::now();
        loop {
            let (seen, now) = self.lease_row(run).await?;
            if seen.is_none() && !self.has_run(run).await? {
                return Err(AcquireError::NoSuchRun(run.clone()));
            }
            if let Some(row) = &seen
                && let Some(before) = &row.owner
                && row.expires_at > now
            {
                let held = || AcquireError::Held {
                    run: run.clone(),
                    owner: before.clone(),
                    expires_at: Timestamp::from_millis(row.expires_at),
                };
                match self.life(before).await? {
                    Life::Alive => return Err(held()),
                    Life::Missing if started.elapsed() >= VERDICT_TIMEOUT => return Err(held()),
                    Life::Missing => {
                        tokio::time::sleep(VERDICT_PAUSE).await;
                        continue;
                    }
                    Life::Dead => {}
                }
            }
            self.owners.hold(self, owner).await?;
            let wanted = Wanted {
                run,
                owner,
                ttl,
                seen,
            };
            if let Some(lease) = self.take(&wanted).await? {
                self.wakeups.announce(News::Change);
                return Ok(lease);
            }
        }
    }

    /// Takes a lease, if its row is still the one that was seen. Two that begin without a row meet at the primary key.
    async fn take(&self, wanted: &Wanted<'_>) -> Result<Option<Lease>, StoreError> {
        let run = wanted.run.as_str();
        let epoch = number(wanted.epoch());
        let ttl = millis(wanted.ttl);
        let mut values: Vec<(Value<'_>, Type)> = vec![
            (&run, Type::TEXT),
            (&epoch, Type::INT8),
            (&wanted.owner.0, Type::TEXT),
            (&ttl, Type::INT8),
        ];
        let before = wanted.seen.as_ref().map(|row| row.owner.as_ref());
        let before = before.map(|owner| owner.map(|owner| owner.0.as_str()));
        let sql = match (&wanted.seen, &before) {
            (Some(row), Some(owner)) => {
                values.push((owner, Type::TEXT));
                values.push((&row.expires_at, Type::INT8));
                format!(
                    "UPDATE planwright.leases SET epoch = $2, owner = $3, expires_at = {NOW} + $4 \
                     WHERE run = $1 AND epoch = $2 - 1 AND owner IS NOT DISTINCT FROM $5 AND expires_at = $6 \
                     RETURNING expires_at"
                )
            }
            _ => format!(
                "INSERT INTO planwright.leases (run, epoch, owner, expires_at) \
                 VALUES ($1, $2, $3, {NOW} + $4) ON CONFLICT DO NOTHING RETURNING expires_at"
            ),
        };
        match self
            .transactions
            .run_alone(&self.pool, &sql, &values)
            .await?
        {
            Alone::Done(rows) => Ok(rows.first().map(|row| wanted.taken(row.get(0)))),
            // It was taken, and another process may have taken it over since.
            Alone::Unheard => {
                let (row, _) = self.lease_row(wanted.run).await?;
                let lease = row.and_then(|row| row.lease(wanted.run));
                Ok(lease
                    .filter(|lease| lease.epoch == wanted.epoch() && lease.owner == *wanted.owner))
            }
        }
    }

    async fn has_run(&self, run: &RunId) -> Result<bool, StoreError> {
        let name = StreamName::Run(run.clone()).to_string();
        let sql = "SELECT 1 FROM planwright.streams WHERE name = $1";
        Ok(self.row(sql, &[(&name, Type::TEXT)]).await?.is_some())
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Lease, AppendError> {
        let sql = format!(
            "UPDATE planwright.leases SET expires_at = {NOW} + $4 \
             WHERE run = $1 AND epoch = $2 AND owner = $3 RETURNING expires_at"
        );
        let values: [(Value<'_>, Type); 4] = [
            (&lease.run.as_str(), Type::TEXT),
            (&number(lease.epoch), Type::INT8),
            (&lease.owner.0, Type::TEXT),
            (&millis(ttl), Type::INT8),
        ];
        // It may be made twice: the later end counts.
        match self.kept_row(&sql, &values).await? {
            Some(row) => Ok(Lease {
                expires_at: Timestamp::from_millis(row.get(0)),
                ..lease.clone()
            }),
            None => {
                let (row, _) = self.lease_row(&lease.run).await?;
                Err(AppendError::Fenced {
                    run: lease.run.clone(),
                    ours: lease.epoch,
                    found: row.map_or(0, |row| row.epoch),
                })
            }
        }
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let sql = "UPDATE planwright.leases SET owner = NULL WHERE run = $1 AND epoch = $2 AND owner = $3";
        let values: [(Value<'_>, Type); 3] = [
            (&lease.run.as_str(), Type::TEXT),
            (&number(lease.epoch), Type::INT8),
            (&lease.owner.0, Type::TEXT),
        ];
        self.kept_rows(sql, &values).await?;
        self.wakeups.announce(News::Change);
        Ok(())
    }

    async fn living_owner(&self, run: &RunId) -> Result<Option<OwnerId>, StoreError> {
        let (row, _) = self.lease_row(run).await?;
        let Some(owner) = row.and_then(|row| row.owner) else {
            return Ok(None);
        };
        Ok(match self.life(&owner).await? {
            Life::Alive => Some(owner),
            Life::Missing | Life::Dead => None,
        })
    }

    async fn lease(&self, run: &RunId) -> Result<Option<Lease>, StoreError> {
        let (row, now) = self.lease_row(run).await?;
        let Some(lease) = row.and_then(|row| row.lease(run)) else {
            return Ok(None);
        };
        if lease.expires_at.as_millis() <= now {
            return Ok(None);
        }
        // In doubt it is alive.
        Ok(match self.life(&lease.owner).await? {
            Life::Alive | Life::Missing => Some(lease),
            Life::Dead => None,
        })
    }
}

impl Leases for PostgresStore {
    fn acquire<'a>(
        &'a self,
        run: &'a RunId,
        owner: &'a OwnerId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AcquireError>> {
        let run = run.clone();
        let owner = owner.clone();
        self.on(move |shared| async move { shared.acquire(&run, &owner, ttl).await })
    }

    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AppendError>> {
        let lease = lease.clone();
        self.on(move |shared| async move { shared.renew(&lease, ttl).await })
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>> {
        let lease = lease.clone();
        self.on(move |shared| async move { shared.release(&lease).await })
    }

    fn living_owner<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<OwnerId>, StoreError>> {
        let run = run.clone();
        self.on(move |shared| async move { shared.living_owner(&run).await })
    }

    fn is_dead<'a>(&'a self, owner: &'a OwnerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        let owner = owner.clone();
        self.on(move |shared| async move { Ok(shared.life(&owner).await? == Life::Dead) })
    }

    fn lease<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Lease>, StoreError>> {
        let run = run.clone();
        self.on(move |shared| async move { shared.lease(&run).await })
    }
}
