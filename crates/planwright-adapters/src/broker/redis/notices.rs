//! The notices for one worker. They are read on a connection of their own, because reading blocks it.

use super::super::backoff::Backoff;
use super::super::limits::BrokerLimits;
use super::super::notice::decode;
use super::commands::{
    Commands, ensure_group, give_up, put_to_rest, read_gone_consumers, run_on, settle,
};
use super::failure::classify;
use super::keys::{GROUP, redelivered_key, steps_key};
use super::link::{Link, Opener};
use super::reply::{Entry, read_claimed, read_delivery_count, read_streams};
use planwright_engine::port::{BoxFuture, BrokerError, NoticeEnd, Notices, ReceivedNotice};
use redis::{RedisError, Value, cmd, pipe};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Errors that wait to be read, beside the notices.
const MAX_ERRORS: usize = 8;
/// The longest wait of one command for something to arrive.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Consumers without notices that were silent for this time belong to workers that are gone.
const SILENT: Duration = Duration::from_secs(24 * 60 * 60);

/// A notice that this worker has and did not settle.
#[derive(Debug)]
struct Held {
    key: String,
    id: String,
    _slot: OwnedSemaphorePermit,
}

/// What the worker and the task that receives share.
#[derive(Debug)]
struct Shared {
    held: Mutex<BTreeMap<String, Held>>,
    /// Told when the worker has room again.
    settled: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ids of what is held, by stream.
    fn ids_by_key(&self) -> BTreeMap<String, Vec<String>> {
        let mut ids = BTreeMap::<String, Vec<String>>::new();
        for held in self.lock().values() {
            ids.entry(held.key.clone())
                .or_default()
                .push(held.id.clone());
        }
        ids
    }
}

/// Notices over Redis. When this is dropped, others may have them after a short rest.
#[derive(Debug)]
pub(super) struct RedisNotices {
    arrived: mpsc::Receiver<Result<ReceivedNotice, BrokerError>>,
    shared: Arc<Shared>,
    commands: Arc<Commands>,
    _stop: DropGuard,
}

impl RedisNotices {
    pub(super) async fn start(
        opener: &Opener,
        commands: Arc<Commands>,
        capabilities: &[String],
        worker: &str,
        ahead: u16,
    ) -> Result<Self, BrokerError> {
        let ahead = usize::from(ahead.max(1));
        let (sender, arrived) = mpsc::channel(ahead + MAX_ERRORS);
        let shared = Arc::new(Shared {
            held: Mutex::default(),
            settled: Notify::new(),
        });
        let stop = CancellationToken::new();
        let limits = opener.limits;
        let receiver = Receiver {
            opener: opener.clone(),
            commands: commands.clone(),
            streams: capabilities.iter().map(|it| Stream::new(it)).collect(),
            // Two receivers of one worker must not take each other's entries for theirs.
            consumer: format!("{worker}-{:08x}", getrandom::u32().unwrap_or_default()),
            slots: Arc::new(Semaphore::new(ahead)),
            sender,
            shared: shared.clone(),
            stop: stop.clone(),
            wait: LONGEST_WAIT.min(limits.idle / 4).min(limits.rest),
            limits,
            turn: 0,
            claimed_at: None,
            kept_at: Instant::now(),
        };
        let first = receiver.connect().await?;
        tokio::spawn(receiver.follow(first));
        Ok(Self {
            arrived,
            shared,
            commands,
            _stop: stop.drop_guard(),
        })
    }
}

impl Notices for RedisNotices {
    fn next(&mut self) -> BoxFuture<'_, Result<ReceivedNotice, BrokerError>> {
        Box::pin(async move {
            let gone = || Err(BrokerError::Unreachable("the worker stops".to_owned()));
            self.arrived.recv().await.unwrap_or_else(gone)
        })
    }

    fn settle<'a>(
        &'a mut self,
        delivery: &'a str,
        end: NoticeEnd,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            let held = self.shared.lock().remove(delivery);
            // It belongs to another worker meanwhile.
            let Some(held) = held else { return Ok(()) };
            let ended = match end {
                NoticeEnd::Done => {
                    let mut commands = pipe();
                    commands.atomic();
                    settle(&mut commands, &held.key, &held.id);
                    self.commands.run_all(&commands).await
                }
                NoticeEnd::Returned => {
                    let limits = self.commands.limits();
                    let ids = std::slice::from_ref(&held.id);
                    self.commands
                        .run(&put_to_rest(&held.key, ids, limits))
                        .await
                }
            };
            drop(held);
            self.shared.settled.notify_one();
            ended.map(drop)
        })
    }
}

/// A stream that is read.
struct Stream {
    capability: String,
    key: String,
    /// Where the next look for entries without a living worker begins.
    cursor: String,
}

impl Stream {
    fn new(capability: &str) -> Self {
        Self {
            capability: capability.to_owned(),
            key: steps_key(capability),
            cursor: "0-0".to_owned(),
        }
    }
}

/// The task that receives.
struct Receiver {
    opener: Opener,
    commands: Arc<Commands>,
    streams: Vec<Stream>,
    consumer: String,
    slots: Arc<Semaphore>,
    sender: mpsc::Sender<Result<ReceivedNotice, BrokerError>>,
    shared: Arc<Shared>,
    stop: CancellationToken,
    limits: BrokerLimits,
    wait: Duration,
    /// The stream that is read first.
    turn: usize,
    claimed_at: Option<Instant>,
    /// When the server was told last that what is held is in good hands.
    kept_at: Instant,
}

impl Receiver {
    async fn connect(&self) -> Result<Link, BrokerError> {
        let link = self.opener.open(self.wait).await?;
        self.ensure_groups(&link).await?;
        Ok(link)
    }

    async fn ensure_groups(&self, link: &Link) -> Result<(), BrokerError> {
        for stream in &self.streams {
            ensure_group(link, &stream.key)
                .await
                .map_err(|error| classify(&error))?;
            self.remove_gone_consumers(link, &stream.key).await?;
        }
        Ok(())
    }

    async fn remove_gone_consumers(&self, link: &Link, key: &str) -> Result<(), BrokerError> {
        let mut ask = cmd("XINFO");
        ask.arg("CONSUMERS").arg(key).arg(GROUP);
        let Some(reply) = run_on(link, &ask).await? else {
            return Ok(());
        };
        for name in read_gone_consumers(&reply, SILENT) {
            let mut remove = cmd("XGROUP");
            remove.arg("DELCONSUMER").arg(key).arg(GROUP).arg(name);
            run_on(link, &remove).await?;
        }
        Ok(())
    }

    async fn follow(mut self, first: Link) {
        let mut link = Some(first);
        let mut backoff = Backoff::default();
        let mut reported = None;
        loop {
            let error = match link.take() {
                Some(link) => {
                    backoff.reset();
                    reported = None;
                    match self.receive(&link).await {
                        Ok(()) => break,
                        Err(error) => error,
                    }
                }
                None => match self.connect().await {
                    Ok(again) => {
                        link = Some(again);
                        continue;
                    }
                    Err(error) => error,
                },
            };
            if reported.as_ref() != Some(&error) {
                tracing::warn!(reason = %error, "no notices from the broker");
                // A worker that does not read them has no need of them.
                drop(self.sender.try_send(Err(error.clone())));
                reported = Some(error);
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.next_pause()) => {}
                () = self.stop.cancelled() => break,
            }
        }
        self.return_all().await;
    }

    /// Lets others have what this worker holds. Where that fails they have it when it was idle for
    /// long enough.
    async fn return_all(&self) {
        for (key, ids) in self.shared.ids_by_key() {
            let command = put_to_rest(&key, &ids, &self.limits);
            if let Err(error) = self.commands.run(&command).await {
                tracing::debug!(reason = %error, "notices could not be returned");
            }
        }
    }

    /// Receives until the connection breaks, or the worker stops.
    async fn receive(&mut self, link: &Link) -> Result<(), BrokerError> {
        let stop = self.stop.clone();
        loop {
            let round = tokio::select! {
                round = Box::pin(self.receive_some(link)) => round?,
                () = stop.cancelled() => return Ok(()),
            };
            match round {
                Round::Done => {}
                Round::GroupMissing => self.ensure_groups(link).await?,
            }
        }
    }

    async fn receive_some(&mut self, link: &Link) -> Result<Round, BrokerError> {
        self.keep_held(link).await?;
        if self.slots.available_permits() == 0 {
            tokio::select! {
                () = self.shared.settled.notified() => {}
                () = tokio::time::sleep(self.wait) => {}
            }
            return Ok(Round::Done);
        }
        let is_due = |at: Instant| at.elapsed() >= self.wait;
        if self.claimed_at.is_none_or(is_due) {
            self.claimed_at = Some(Instant::now());
            if let Round::GroupMissing = self.claim(link).await? {
                return Ok(Round::GroupMissing);
            }
        }
        match self.slots.available_permits() {
            0 => Ok(Round::Done),
            free => self.read(link, free).await,
        }
    }

    /// Tells the server that what is held is in good hands. After too long a silence it is not
    /// ours any more.
    async fn keep_held(&mut self, link: &Link) -> Result<(), BrokerError> {
        let silent = self.kept_at.elapsed();
        if silent < self.limits.idle / 4 {
            return Ok(());
        }
        if silent >= self.limits.idle {
            self.shared.lock().clear();
        }
        for (key, ids) in self.shared.ids_by_key() {
            let mut claim = cmd("XCLAIM");
            claim.arg(key).arg(GROUP).arg(&self.consumer).arg(0);
            claim.arg(ids).arg("JUSTID");
            run_on(link, &claim).await?;
        }
        self.kept_at = Instant::now();
        Ok(())
    }

    /// Takes over entries whose worker is gone or has returned them.
    async fn claim(&mut self, link: &Link) -> Result<Round, BrokerError> {
        for place in 0..self.streams.len() {
            let free = self.slots.available_permits();
            if free == 0 {
                break;
            }
            let stream = &self.streams[place];
            let mut claim = cmd("XAUTOCLAIM");
            claim.arg(&stream.key).arg(GROUP).arg(&self.consumer);
            claim.arg(millis(self.limits.idle)).arg(&stream.cursor);
            claim.arg("COUNT").arg(free);
            let Some(reply) = run_on(link, &claim).await? else {
                return Ok(Round::GroupMissing);
            };
            let (next, entries) = read_claimed(&reply);
            for entry in &entries {
                self.take_claimed(link, &self.streams[place], entry).await?;
            }
            self.streams[place].cursor = next;
        }
        Ok(Round::Done)
    }

    async fn take_claimed(
        &self,
        link: &Link,
        stream: &Stream,
        entry: &Entry,
    ) -> Result<(), BrokerError> {
        let mut ask = cmd("XPENDING");
        ask.arg(&stream.key).arg(GROUP);
        ask.arg(&entry.id).arg(&entry.id).arg(1);
        let reply = run_on(link, &ask).await?.unwrap_or(Value::Nil);
        let deliveries = read_delivery_count(&reply).unwrap_or(1);
        if deliveries > u64::from(self.limits.deliveries) {
            tracing::warn!(capability = stream.capability, "a notice is dead");
            return self.give_up(link, stream, entry, deliveries).await;
        }
        if deliveries > 1 {
            let mut count = cmd("INCR");
            count.arg(redelivered_key(&stream.capability));
            run_on(link, &count).await?;
        }
        self.take(link, stream, entry, deliveries).await
    }

    async fn give_up(
        &self,
        link: &Link,
        stream: &Stream,
        entry: &Entry,
        deliveries: u64,
    ) -> Result<(), BrokerError> {
        let commands = give_up(&stream.capability, entry, deliveries, &self.limits);
        let done: Result<Value, RedisError> = commands.query_async(&mut link.connection()).await;
        done.map(drop).map_err(|error| classify(&error))
    }

    /// Reads entries that no worker had. The number that is asked for is that of each stream, so
    /// that a worker with little room reads some streams now and the others next.
    async fn read(&mut self, link: &Link, free: usize) -> Result<Round, BrokerError> {
        let all = self.streams.len();
        let some = all.min(free).max(1);
        let wait = match some < all {
            true => self.wait / 10,
            false => self.wait,
        };
        let chosen: Vec<usize> = (0..some).map(|it| (self.turn + it) % all.max(1)).collect();
        self.turn = (self.turn + some) % all.max(1);
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(&self.consumer);
        read.arg("COUNT").arg((free / some).max(1));
        read.arg("BLOCK").arg(millis(wait).max(1)).arg("STREAMS");
        let keys: Vec<&str> = chosen.iter().map(|it| &*self.streams[*it].key).collect();
        read.arg(&keys).arg(vec![">"; keys.len()]);
        let Some(reply) = run_on(link, &read).await? else {
            return Ok(Round::GroupMissing);
        };
        for (key, entries) in read_streams(&reply) {
            let Some(stream) = self.streams.iter().find(|stream| stream.key == key) else {
                continue;
            };
            for entry in &entries {
                self.take(link, stream, entry, 1).await?;
            }
        }
        Ok(Round::Done)
    }

    /// Hands a notice to the worker. What is none goes to the dead ones.
    async fn take(
        &self,
        link: &Link,
        stream: &Stream,
        entry: &Entry,
        deliveries: u64,
    ) -> Result<(), BrokerError> {
        let notice = match decode(&stream.capability, entry.notice()) {
            Ok(notice) => notice,
            Err(error) => {
                let capability = &stream.capability;
                tracing::warn!(reason = %error, capability, "a message is put aside");
                return self.give_up(link, stream, entry, deliveries).await;
            }
        };
        let Ok(slot) = self.slots.clone().acquire_owned().await else {
            return Ok(());
        };
        let name = format!("{}@{}", entry.id, stream.capability);
        let received = ReceivedNotice {
            delivery: name.clone(),
            notice,
            redelivered: deliveries > 1,
        };
        let held = Held {
            key: stream.key.clone(),
            id: entry.id.clone(),
            _slot: slot,
        };
        self.shared.lock().insert(name, held);
        // A worker that is gone is noticed by the token.
        drop(self.sender.send(Ok(received)).await);
        Ok(())
    }
}

/// How one round of receiving ended.
enum Round {
    Done,
    /// The server lost its data.
    GroupMissing,
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
