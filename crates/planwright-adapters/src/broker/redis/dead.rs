//! Dead notices: a stream that is read without consumers.

use super::super::limits::MAX_SEARCHED;
use super::super::notice::decode;
use super::commands::Commands;
use super::keys::{DELIVERIES, NOTICE, dead_key, steps_key};
use super::reply::{Entry, is_entry_id, items, made_at, number, read_entries};
use planwright_engine::port::{BrokerError, DeadNotice};
use redis::{cmd, pipe};

pub(super) async fn list(
    commands: &Commands,
    capability: &str,
    limit: usize,
) -> Result<Vec<DeadNotice>, BrokerError> {
    let mut range = cmd("XRANGE");
    range.arg(dead_key(capability)).arg("-").arg("+");
    range.arg("COUNT").arg(limit.min(MAX_SEARCHED));
    let entries = read_entries(&commands.run(&range).await?);
    Ok(entries
        .iter()
        .map(|entry| read_dead(capability, entry))
        .collect())
}

fn read_dead(capability: &str, entry: &Entry) -> DeadNotice {
    let deliveries = std::str::from_utf8(entry.field(DELIVERIES)).ok();
    DeadNotice {
        id: entry.id.clone(),
        notice: decode(capability, entry.notice()).ok(),
        deliveries: deliveries.and_then(|text| text.parse().ok()),
        since: made_at(&entry.id),
    }
}

/// Sends a dead notice again, which is one step with its removal from the dead ones.
pub(super) async fn requeue(
    commands: &Commands,
    capability: &str,
    id: &str,
) -> Result<bool, BrokerError> {
    if !is_entry_id(id) {
        return Ok(false);
    }
    let key = dead_key(capability);
    let mut range = cmd("XRANGE");
    range.arg(&key).arg(id).arg(id);
    let entries = read_entries(&commands.run(&range).await?);
    let Some(entry) = entries.first() else {
        return Ok(false);
    };
    decode(capability, entry.notice())?;
    let mut again = pipe();
    again.atomic();
    again
        .cmd("XADD")
        .arg(steps_key(capability))
        .arg("*")
        .arg(NOTICE)
        .arg(entry.notice());
    again.cmd("XDEL").arg(&key).arg(id);
    commands.run_all(&again).await?;
    Ok(true)
}

pub(super) async fn purge(commands: &Commands, capability: &str) -> Result<u64, BrokerError> {
    let key = dead_key(capability);
    let mut purge = pipe();
    purge.atomic();
    purge.cmd("XLEN").arg(&key);
    purge.cmd("DEL").arg(&key);
    let answers = commands.run_all(&purge).await?;
    Ok(items(&answers).first().and_then(number).unwrap_or(0))
}
