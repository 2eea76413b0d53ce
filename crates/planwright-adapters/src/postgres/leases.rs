//! Leases as rows, by the clock of the database.

use super::appending::millis;
use super::commit::Value;
use super::fault::Stop;
use super::kept_statements::KeepingClient;
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
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

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

/// What a transaction that wants a lease is about.
struct Wanted<'a> {
    run: &'a RunId,
    owner: &'a OwnerId,
    ttl: Duration,
    /// The row that the decision was made on.
    seen: Option<LeaseRow>,
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
            let taken = self
                .transact_kept(&wanted, |client, wanted| Box::pin(take(client, wanted)))
                .await?;
            if let Some(lease) = taken {
                self.wakeups.announce(News::Change);
                return Ok(lease);
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

/// Takes a lease, if its row is still the one that was seen.
async fn take(
    client: KeepingClient<'_>,
    wanted: &Wanted<'_>,
) -> Result<Option<Lease>, Stop<AcquireError>> {
    let run = wanted.run.as_str();
    let found = find_locked(client, run).await?;
    if found != wanted.seen {
        return Ok(None);
    }
    let epoch = found.as_ref().map_or(0, |row| row.epoch) + 1;
    // Without a row two may come here at once: the second finds the row of the first when it tries again.
    let sql = match found {
        Some(_) => format!(
            "UPDATE planwright.leases SET epoch = $2, owner = $3, expires_at = {NOW} + $4 \
             WHERE run = $1 RETURNING expires_at"
        ),
        None => format!(
            "INSERT INTO planwright.leases (run, epoch, owner, expires_at) \
             VALUES ($1, $2, $3, {NOW} + $4) RETURNING expires_at"
        ),
    };
    let values: [(Value<'_>, Type); 4] = [
        (&run, Type::TEXT),
        (&number(epoch), Type::INT8),
        (&wanted.owner.0, Type::TEXT),
        (&millis(wanted.ttl), Type::INT8),
    ];
    let rows = client.query(&sql, &values).await?;
    Ok(rows.first().map(|row| Lease {
        run: wanted.run.clone(),
        owner: wanted.owner.clone(),
        epoch,
        expires_at: Timestamp::from_millis(row.get(0)),
    }))
}

async fn find_locked(client: KeepingClient<'_>, run: &str) -> Result<Option<LeaseRow>, Error> {
    let sql = "SELECT epoch, owner, expires_at FROM planwright.leases WHERE run = $1 FOR UPDATE";
    let rows = client.query(sql, &[(&run, Type::TEXT)]).await?;
    Ok(rows.first().map(LeaseRow::read))
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
