//! Wake-ups: of this process at once, of others by `NOTIFY`, and by a slow look where that got lost.
//!
//! `NOTIFY` is sent after the commit and not in it: in a transaction it would make all commits of the database wait for
//! each other. Many commits share one: that something changed is said at once unless it was said often just before; mail
//! and offers do not wait. A process that dies in between is what the slow look is for.

use super::pool::{Planned, Pool};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_postgres::types::Type;

pub(super) const CHANNEL: &str = "planwright";
/// The time between two news that something changed, on average. Each costs the server and all listeners more than an
/// append does.
const CHANGE_PAUSE: Duration = Duration::from_millis(10);
/// The pauses of so much time can be left out after a quiet moment: an approval and what follows from it are told at once.
const LENIENCE: Duration = Duration::from_millis(200);
/// How often the store is looked at, for news that got lost.
const SLOW_LOOK: Duration = Duration::from_secs(2);
/// So many looks after which those who wait are woken in any case.
const LOOKS_PER_WAKE: u32 = 10;

/// What has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Change,
    Mail,
    /// A worker can take an offer.
    Offer,
    /// Something was said of an offer that was made.
    Answer,
}

#[derive(Debug)]
pub(super) struct Wakeups {
    /// Names this store among those that send news, so that it does not wake itself a second time.
    instance: String,
    changes: watch::Sender<u64>,
    mail: watch::Sender<u64>,
    offers: watch::Sender<u64>,
    answers: watch::Sender<u64>,
    unsent_change: AtomicBool,
    unsent_mail: AtomicBool,
    unsent_offer: AtomicBool,
    unsent_answer: AtomicBool,
    unsent: Notify,
    looking: AtomicBool,
    /// Whether the connection for news is there, and with it the locks on it.
    listens: AtomicBool,
    pub(super) listening_changed: Notify,
}

impl Wakeups {
    pub(super) fn new(instance: String) -> Self {
        Self {
            instance,
            changes: watch::Sender::new(0),
            mail: watch::Sender::new(0),
            offers: watch::Sender::new(0),
            answers: watch::Sender::new(0),
            unsent_change: AtomicBool::new(false),
            unsent_mail: AtomicBool::new(false),
            unsent_offer: AtomicBool::new(false),
            unsent_answer: AtomicBool::new(false),
            unsent: Notify::new(),
            looking: AtomicBool::new(false),
            listens: AtomicBool::new(false),
            listening_changed: Notify::new(),
        }
    }

    pub(super) fn note_listening(&self, listens: bool) {
        self.listens.store(listens, Ordering::Release);
        self.listening_changed.notify_one();
    }

    pub(super) fn listens(&self) -> bool {
        self.listens.load(Ordering::Acquire)
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn mail(&self) -> watch::Receiver<u64> {
        self.mail.subscribe()
    }

    pub(super) fn offers(&self) -> watch::Receiver<u64> {
        self.offers.subscribe()
    }

    pub(super) fn answers(&self) -> watch::Receiver<u64> {
        self.answers.subscribe()
    }

    /// Tells this process and the others that something was committed.
    pub(super) fn announce(&self, news: News) {
        self.wake(news);
        let unsent = match news {
            News::Change => &self.unsent_change,
            News::Mail => &self.unsent_mail,
            News::Offer => &self.unsent_offer,
            News::Answer => &self.unsent_answer,
        };
        // The task that sends is woken once for all that is said until it has sent.
        if !unsent.swap(true, Ordering::AcqRel) {
            self.unsent.notify_one();
        }
    }

    /// Wakes those who wait in this process.
    pub(super) fn wake(&self, news: News) {
        match news {
            News::Change => {}
            News::Mail => self.mail.send_modify(|count| *count += 1),
            // Those who wait for entries have nothing to read because of an offer.
            News::Offer => return self.offers.send_modify(|count| *count += 1),
            News::Answer => return self.answers.send_modify(|count| *count += 1),
        }
        self.changes.send_modify(|count| *count += 1);
    }

    /// Takes what another process sent.
    pub(super) fn hear(&self, payload: &str) {
        let (kind, instance) = payload.split_once(' ').unwrap_or((payload, ""));
        if instance != self.instance {
            self.wake(match kind {
                "mail" => News::Mail,
                "offer" => News::Offer,
                "answer" => News::Answer,
                _ => News::Change,
            });
        }
    }

    /// Wakes everything: news may have been lost.
    pub(super) fn wake_all(&self) {
        self.wake(News::Mail);
        self.wake(News::Offer);
        self.wake(News::Answer);
    }

    /// Sends news to other processes for as long as the store is open.
    pub(super) async fn send_news(&self, pool: &Pool) {
        // It is a commit, and no one would miss it after a crash: nothing has to wait for a disk or a standby.
        let sql = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)";
        let mut allowed_at = Instant::now();
        loop {
            self.unsent.notified().await;
            while !self.is_urgent() {
                let more = self.unsent.notified();
                if tokio::time::timeout_at(allowed_at, more).await.is_err() {
                    break;
                }
            }
            let mail = self.unsent_mail.swap(false, Ordering::AcqRel);
            let change = self.unsent_change.swap(false, Ordering::AcqRel);
            let offer = self.unsent_offer.swap(false, Ordering::AcqRel);
            let answer = self.unsent_answer.swap(false, Ordering::AcqRel);
            // Mail is a change too.
            let kinds = [
                (mail, "mail"),
                (change && !mail, "change"),
                (offer, "offer"),
                (answer, "answer"),
            ];
            for (_, kind) in kinds.into_iter().filter(|(is_due, _)| *is_due) {
                let payload = format!("{kind} {}", self.instance);
                // News that cannot be sent is found by the slow look of those who wait.
                let Ok(connection) = pool.lend(Planned::Once).await else {
                    continue;
                };
                let values: [(super::commit::Value<'_>, Type); 2] =
                    [(&CHANNEL, Type::TEXT), (&payload, Type::TEXT)];
                match connection.keeping().query(sql, &values).await {
                    Ok(_) => connection.keeping().prepare_due().await,
                    Err(error) => drop(connection.discard_broken(&error)),
                }
            }
            let now = Instant::now();
            let earliest = now.checked_sub(LENIENCE).unwrap_or(now);
            allowed_at = allowed_at.clamp(earliest, now) + CHANGE_PAUSE;
        }
    }

    fn is_urgent(&self) -> bool {
        let urgent = [&self.unsent_mail, &self.unsent_offer, &self.unsent_answer];
        urgent.iter().any(|unsent| unsent.load(Ordering::Acquire))
    }

    /// Returns whether the caller is the first to ask, and has to start looking.
    pub(super) fn begin_looking(&self) -> bool {
        !self.looking.swap(true, Ordering::AcqRel)
    }

    /// Looks slowly, for as long as the store is open and a receiver is held.
    pub(super) async fn look_slowly(self: Arc<Self>, pool: Arc<Pool>) {
        // What numbers were drawn says that something was written, or is about to be: it is looked at once more then.
        let sql = "SELECT (SELECT last_value FROM planwright.unplaced_id_seq), \
                   (SELECT last_value FROM planwright.messages_id_seq)";
        let mut seen = None;
        let mut looks: u32 = 0;
        loop {
            tokio::time::sleep(SLOW_LOOK).await;
            if self.changes.receiver_count() + self.mail.receiver_count() == 0 {
                continue;
            }
            looks += 1;
            let Ok(connection) = pool.get().await else {
                continue;
            };
            let found = match connection.query_typed_one(sql, &[]).await {
                Ok(row) => Some((row.get::<_, i64>(0), row.get::<_, i64>(1))),
                Err(error) => {
                    connection.discard_broken(&error);
                    None
                }
            };
            if found != seen || looks.is_multiple_of(LOOKS_PER_WAKE) {
                self.wake_all();
            }
            seen = found;
        }
    }
}
