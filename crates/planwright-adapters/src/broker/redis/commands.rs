//! Commands that answer at once, on one connection for all of them.

use super::super::kept_link::KeptLink;
use super::super::limits::BrokerLimits;
use super::super::notice::MAX_NOTICE_BYTES;
use super::failure::{classify, is_group_missing};
use super::keys::{DELIVERIES, GROUP, NOTICE, RESTING, dead_key, redelivered_key, steps_key};
use super::link::{Link, Opener};
use super::reply::{Entry, items, made_at, number, read_entries, read_named, read_pending};
use planwright_engine::port::{BrokerError, QueueState};
use redis::{Cmd, Pipeline, RedisError, Value, cmd, pipe};
use std::sync::Arc;
use std::time::Duration;

/// Adds a notice unless the stream is full, in one step.
const ADD: &str = "if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then return false end \
    return redis.call('XADD', KEYS[1], '*', ARGV[2], ARGV[3])";

/// One connection, made anew when it broke.
#[derive(Debug)]
pub(super) struct Commands {
    opener: Opener,
    kept: KeptLink<Link>,
}

impl Commands {
    pub(super) fn new(opener: Opener) -> Self {
        Self {
            opener,
            kept: KeptLink::default(),
        }
    }

    pub(super) fn limits(&self) -> &BrokerLimits {
        &self.opener.limits
    }

    /// Returns the connection.
    pub(super) async fn link(&self) -> Result<Arc<Link>, BrokerError> {
        self.kept
            .get(async || self.opener.open(Duration::ZERO).await)
            .await
    }

    /// Runs a command. One whose fate is unknown is run once more on another connection: all of
    /// them may be repeated.
    pub(super) async fn run(&self, command: &Cmd) -> Result<Value, BrokerError> {
        self.attempt(Query::One(command)).await
    }

    /// Runs commands with one message. Those of a transaction are all done or none.
    pub(super) async fn run_all(&self, commands: &Pipeline) -> Result<Value, BrokerError> {
        self.attempt(Query::Several(commands)).await
    }

    async fn attempt(&self, query: Query<'_>) -> Result<Value, BrokerError> {
        let mut is_last = false;
        loop {
            let link = self.link().await?;
            let error = match query.run(&link).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            // An answer of the server is one, and the connection works.
            if is_last || error.code().is_some() {
                return Err(classify(&error));
            }
            self.kept.give_up(&link).await;
            is_last = true;
        }
    }

    pub(super) async fn publish(&self, capability: &str, body: &[u8]) -> Result<(), BrokerError> {
        let key = steps_key(capability);
        let mut add = cmd("EVAL");
        add.arg(ADD).arg(1).arg(&key);
        add.arg(self.limits().waiting).arg(NOTICE).arg(body);
        match self.run(&add).await? {
            Value::Nil | Value::Boolean(false) => {
                Err(BrokerError::Unreachable(format!("{key} is full")))
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn state(&self, capability: &str) -> Result<QueueState, BrokerError> {
        let key = steps_key(capability);
        let link = self.link().await?;
        ensure_group(&link, &key)
            .await
            .map_err(|error| classify(&error))?;
        let mut ask = pipe();
        ask.cmd("XLEN").arg(&key);
        ask.cmd("XPENDING").arg(&key).arg(GROUP);
        ask.cmd("XLEN").arg(dead_key(capability));
        ask.cmd("GET").arg(redelivered_key(capability));
        ask.cmd("XINFO").arg("GROUPS").arg(&key);
        let answers = self.run_all(&ask).await?;
        let [all, pending, dead, redelivered, groups] = items(&answers) else {
            let reason = "its answer cannot be read".to_owned();
            return Err(BrokerError::Unreachable(reason));
        };
        let (taken, resting) = read_pending(pending, RESTING);
        let held = taken.saturating_sub(resting);
        Ok(QueueState {
            capability: capability.to_owned(),
            waiting: number(all).unwrap_or(0).saturating_sub(held),
            held: Some(held),
            dead: number(dead).unwrap_or(0),
            oldest: match last_delivered(groups) {
                Some(last) => self.first_after(&key, &last).await?,
                None => None,
            },
            redelivered: Some(number(redelivered).unwrap_or(0)),
        })
    }

    /// When the first entry was made that no worker has got.
    async fn first_after(
        &self,
        key: &str,
        last: &str,
    ) -> Result<Option<planwright_core::time::Timestamp>, BrokerError> {
        let mut range = cmd("XRANGE");
        range.arg(key).arg(format!("({last}")).arg("+");
        let entries = read_entries(&self.run(range.arg("COUNT").arg(1)).await?);
        Ok(entries.first().and_then(|entry| made_at(&entry.id)))
    }
}

/// What is asked of the server.
enum Query<'a> {
    One(&'a Cmd),
    Several(&'a Pipeline),
}

impl Query<'_> {
    async fn run(&self, link: &Link) -> Result<Value, RedisError> {
        let mut connection = link.connection();
        match self {
            Self::One(command) => command.query_async(&mut connection).await,
            Self::Several(commands) => commands.query_async(&mut connection).await,
        }
    }
}

fn last_delivered(groups: &Value) -> Option<String> {
    let mut groups = items(groups).iter();
    let ours = groups.find(|group| read_named(group, "name").as_deref() == Some(GROUP))?;
    read_named(ours, "last-delivered-id")
}

/// Makes the group of a stream, and the stream. What the stream has already is delivered too.
pub(super) async fn ensure_group(link: &Link, key: &str) -> Result<(), RedisError> {
    let mut create = cmd("XGROUP");
    create
        .arg("CREATE")
        .arg(key)
        .arg(GROUP)
        .arg("0")
        .arg("MKSTREAM");
    let made: Result<Value, RedisError> = create.query_async(&mut link.connection()).await;
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some("BUSYGROUP") => Ok(()),
        Err(error) => Err(error),
    }
}

/// The commands that settle an entry for good.
pub(super) fn settle(commands: &mut Pipeline, key: &str, id: &str) {
    commands.cmd("XACK").arg(key).arg(GROUP).arg(id);
    commands.cmd("XDEL").arg(key).arg(id);
}

/// The commands that give an entry up. All of them are done or none, and so none is lost.
pub(super) fn give_up(
    capability: &str,
    entry: &Entry,
    deliveries: u64,
    limits: &BrokerLimits,
) -> Pipeline {
    let body = entry.notice();
    let kept = &body[..body.len().min(MAX_NOTICE_BYTES)];
    let mut commands = pipe();
    commands.atomic();
    commands
        .cmd("XADD")
        .arg(dead_key(capability))
        .arg("MAXLEN")
        .arg("~")
        .arg(limits.dead)
        .arg("*")
        .arg(NOTICE)
        .arg(kept)
        .arg(DELIVERIES)
        .arg(deliveries);
    settle(&mut commands, &steps_key(capability), &entry.id);
    commands
}

/// The command that lets an entry rest until it may be claimed. It counts no delivery.
pub(super) fn put_to_rest(key: &str, ids: &[String], limits: &BrokerLimits) -> Cmd {
    let mut claim = cmd("XCLAIM");
    claim.arg(key).arg(GROUP).arg(RESTING).arg(0).arg(ids);
    let idle = limits.idle.saturating_sub(limits.rest);
    let idle = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
    claim.arg("IDLE").arg(idle).arg("JUSTID");
    claim
}

/// Runs a command on one connection; `None` if the group is gone.
pub(super) async fn run_on(link: &Link, command: &Cmd) -> Result<Option<Value>, BrokerError> {
    let answer: Result<Value, RedisError> = command.query_async(&mut link.connection()).await;
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_group_missing(&error) => Ok(None),
        Err(error) => Err(classify(&error)),
    }
}

/// Reads the names of consumers that are gone: they have nothing, and were silent for long.
pub(super) fn read_gone_consumers(reply: &Value, silent: Duration) -> Vec<String> {
    let silent = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
    let consumers = items(reply).iter().filter_map(|consumer| {
        let count = |name: &str| read_named(consumer, name)?.parse::<u64>().ok();
        let is_gone = count("pending")? == 0 && count("idle")? > silent;
        let name = is_gone.then(|| read_named(consumer, "name"))?;
        name.filter(|name| name != RESTING)
    });
    consumers.collect()
}
