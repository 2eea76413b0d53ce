//! Leases as rows: taken, extended and given back inside a write transaction, by the clock of this
//! machine.

use super::fault::Stop;
use super::owner::{Owners, holds_lock, is_alive};
use planwright_core::id::RunId;
use planwright_core::journal::StreamName;
use planwright_core::time::Timestamp;
use planwright_engine::port::{AcquireError, AppendError, Lease, OwnerId, StoreError};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The wall clock: the only one that all processes, and a process after a restart, agree on.
pub(super) fn now() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(0).plus(since_epoch)
}

struct Row {
    epoch: u64,
    /// `None` once it was given back.
    owner: Option<OwnerId>,
    expires_at: Timestamp,
}

fn find(connection: &Connection, run: &RunId) -> Result<Option<Row>, rusqlite::Error> {
    let mut statement =
        connection.prepare_cached("SELECT epoch, owner, expires_at FROM leases WHERE run = ?1")?;
    let row = statement.query_row([run.as_str()], |row| {
        Ok(Row {
            epoch: row.get(0)?,
            owner: row.get::<_, Option<String>>(1)?.map(OwnerId),
            expires_at: Timestamp::from_millis(row.get(2)?),
        })
    });
    row.optional()
}

/// Checks that the lease is still held with this epoch. One that ran out but was not taken over
/// still counts: no other process can have written.
pub(super) fn check_held(
    connection: &Connection,
    run: &RunId,
    ours: u64,
) -> Result<(), Stop<AppendError>> {
    let row = find(connection, run)?;
    if row
        .as_ref()
        .is_some_and(|row| row.epoch == ours && row.owner.is_some())
    {
        return Ok(());
    }
    let found = row.map_or(0, |row| row.epoch);
    Err(Stop::Refused(AppendError::Fenced {
        run: run.clone(),
        ours,
        found,
    }))
}

/// Takes the first lease of a run.
pub(super) fn open(
    connection: &Connection,
    owners: &mut Owners,
    run: &RunId,
    owner: &OwnerId,
    ttl: Duration,
) -> Result<(), Stop<AppendError>> {
    if let Some(row) = find(connection, run)? {
        return Err(Stop::Refused(AppendError::Fenced {
            run: run.clone(),
            ours: 1,
            found: row.epoch,
        }));
    }
    owners.hold(owner).map_err(Stop::failed)?;
    write(
        connection,
        &Lease {
            run: run.clone(),
            owner: owner.clone(),
            epoch: 1,
            expires_at: now().plus(ttl),
        },
    )?;
    Ok(())
}

/// Takes over a run whose owner is gone. The caller has checked that the run exists or has a lease.
pub(super) fn acquire(
    connection: &Connection,
    owners: &mut Owners,
    directory: &Path,
    (run, owner, ttl): (&RunId, &OwnerId, Duration),
) -> Result<Lease, Stop<AcquireError>> {
    let row = find(connection, run)?;
    if row.is_none()
        && super::transaction::stream_id(connection, &StreamName::Run(run.clone()).to_string())?
            .is_none()
    {
        return Err(Stop::Refused(AcquireError::NoSuchRun(run.clone())));
    }
    let now = now();
    // Also after a lease that was given back: an append of its owner that is still on its way must not
    // pass for one of the next owner.
    let epoch = row.as_ref().map_or(0, |row| row.epoch) + 1;
    if let Some(Row {
        owner: Some(before),
        expires_at,
        ..
    }) = row
    {
        if expires_at > now && is_alive(directory, &before) {
            return Err(Stop::Refused(AcquireError::Held {
                run: run.clone(),
                owner: before,
                expires_at,
            }));
        }
        owners.bury(&before);
    }
    owners.hold(owner).map_err(Stop::failed)?;
    let lease = Lease {
        run: run.clone(),
        owner: owner.clone(),
        epoch,
        expires_at: now.plus(ttl),
    };
    write(connection, &lease)?;
    Ok(lease)
}

fn write(connection: &Connection, lease: &Lease) -> Result<(), rusqlite::Error> {
    let sql = "INSERT INTO leases (run, epoch, owner, expires_at) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (run) DO UPDATE SET epoch = ?2, owner = ?3, expires_at = ?4";
    let mut statement = connection.prepare_cached(sql)?;
    let Lease {
        run,
        owner,
        epoch,
        expires_at,
    } = lease;
    statement.execute(params![
        run.as_str(),
        epoch,
        owner.0,
        expires_at.as_millis()
    ])?;
    Ok(())
}

pub(super) fn renew(
    connection: &Connection,
    lease: &Lease,
    ttl: Duration,
) -> Result<Lease, Stop<AppendError>> {
    let renewed = Lease {
        expires_at: now().plus(ttl),
        ..lease.clone()
    };
    let sql = "UPDATE leases SET expires_at = ?4 WHERE run = ?1 AND epoch = ?2 AND owner = ?3";
    let Lease {
        run,
        owner,
        epoch,
        expires_at,
    } = &renewed;
    let mut statement = connection.prepare_cached(sql)?;
    let changed = statement.execute(params![
        run.as_str(),
        epoch,
        owner.0,
        expires_at.as_millis()
    ])?;
    if changed == 0 {
        let found = find(connection, run)?.map_or(0, |row| row.epoch);
        return Err(Stop::Refused(AppendError::Fenced {
            run: run.clone(),
            ours: *epoch,
            found,
        }));
    }
    Ok(renewed)
}

pub(super) fn release(connection: &Connection, lease: &Lease) -> Result<(), Stop<StoreError>> {
    // The row stays, because the next owner counts on from its epoch. A lease that another process has
    // taken since is left alone, which is no error: there is nothing to give back.
    let sql = "UPDATE leases SET owner = NULL WHERE run = ?1 AND epoch = ?2 AND owner = ?3";
    let mut statement = connection.prepare_cached(sql)?;
    statement.execute(params![lease.run.as_str(), lease.epoch, lease.owner.0])?;
    Ok(())
}

/// Gives back the lease that the run has; [`check_held`] has said that it is ours.
pub(super) fn release_held(connection: &Connection, run: &RunId) -> Result<(), rusqlite::Error> {
    let mut statement =
        connection.prepare_cached("UPDATE leases SET owner = NULL WHERE run = ?1")?;
    statement.execute([run.as_str()])?;
    Ok(())
}

/// The owner of a lease that was not given back, if it holds its lock: the operating system shows
/// that it is alive, even when the lease has run out by the clock.
pub(super) fn living_owner(
    connection: &Connection,
    directory: &Path,
    run: &RunId,
) -> Result<Option<OwnerId>, rusqlite::Error> {
    let owner = find(connection, run)?.and_then(|row| row.owner);
    Ok(owner.filter(|owner| holds_lock(directory, owner)))
}

/// The lease of a run, if its owner is alive and it has not run out.
pub(super) fn current(
    connection: &Connection,
    directory: &Path,
    run: &RunId,
) -> Result<Option<Lease>, rusqlite::Error> {
    let Some(Row {
        epoch,
        owner: Some(owner),
        expires_at,
    }) = find(connection, run)?
    else {
        return Ok(None);
    };
    let live = expires_at > now() && is_alive(directory, &owner);
    Ok(live.then(|| Lease {
        run: run.clone(),
        owner,
        epoch,
        expires_at,
    }))
}
