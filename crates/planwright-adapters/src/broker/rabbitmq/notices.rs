//! The notices for one worker, on a connection of their own.

use super::super::backoff::Backoff;
use super::super::notice::{decode, encode};
use super::failure::{connection_lost, within};
use super::link::{Link, Opener};
use super::publisher::{DELIVERIES_HEADER, Publisher};
use super::topology::{dead_queue, resting_queue, steps_queue};
use futures::Stream;
use futures::stream::{self, SelectAll, StreamExt as _};
use lapin::Acker;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, BasicRejectOptions};
use lapin::types::FieldTable;
use planwright_engine::port::{
    BoxFuture, BrokerError, NoticeEnd, Notices, ReceivedNotice, StepNotice,
};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Errors that wait to be read, beside the notices.
const MAX_ERRORS: usize = 8;

/// A notice that this worker has and did not settle.
#[derive(Debug)]
struct Held {
    acker: Acker,
    notice: StepNotice,
    deliveries: u32,
    _slot: OwnedSemaphorePermit,
}

/// What the worker and the task that receives share.
#[derive(Debug)]
struct Shared {
    held: Mutex<BTreeMap<String, Held>>,
    /// Told when the worker finds the connection broken.
    broken: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notices over RabbitMQ. They go back to their queue when this is dropped.
#[derive(Debug)]
pub(super) struct RabbitNotices {
    arrived: mpsc::Receiver<Result<ReceivedNotice, BrokerError>>,
    shared: Arc<Shared>,
    publisher: Arc<Publisher>,
    _stop: DropGuard,
}

impl RabbitNotices {
    pub(super) async fn start(
        opener: &Opener,
        publisher: Arc<Publisher>,
        capabilities: &[String],
        worker: &str,
        ahead: u16,
    ) -> Result<Self, BrokerError> {
        let ahead = ahead.max(1);
        let (sender, arrived) = mpsc::channel(usize::from(ahead) + MAX_ERRORS);
        let shared = Arc::new(Shared {
            held: Mutex::default(),
            broken: Notify::new(),
        });
        let stop = CancellationToken::new();
        let receiver = Receiver {
            opener: opener.clone(),
            capabilities: capabilities.to_vec(),
            worker: worker.to_owned(),
            ahead,
            slots: Arc::new(Semaphore::new(ahead.into())),
            sender,
            shared: shared.clone(),
            stop: stop.clone(),
            connections: 0,
        };
        let first = Box::pin(receiver.connect()).await?;
        tokio::spawn(receiver.follow(first));
        Ok(Self {
            arrived,
            shared,
            publisher,
            _stop: stop.drop_guard(),
        })
    }

    async fn end(&self, held: &Held, end: NoticeEnd) -> Result<(), BrokerError> {
        if end == NoticeEnd::Returned {
            self.send_again(held).await?;
        }
        let limit = self.publisher.limits().answer;
        let acked = held.acker.ack(BasicAckOptions::default());
        within(limit, "the end of a notice", acked).await.map(drop)
    }

    /// Sends a copy that arrives a little later. A server that counts returned messages itself
    /// would deliver it at once and, from version 4.3 on, without end.
    async fn send_again(&self, held: &Held) -> Result<(), BrokerError> {
        let capability = &held.notice.capability;
        let is_dead = held.deliveries >= self.publisher.limits().deliveries;
        let queue = match is_dead {
            true => dead_queue(capability),
            false => resting_queue(capability),
        };
        let body = encode(&held.notice)?;
        let deliveries = held.deliveries;
        self.publisher
            .send(capability, &queue, &body, deliveries)
            .await
    }
}

impl Notices for RabbitNotices {
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
            // It arrived on a connection that broke: the server delivers it again, to say so there.
            let Some(held) = held else { return Ok(()) };
            let ended = self.end(&held, end).await;
            if ended.is_err() {
                // Without this connection the server delivers it again.
                self.shared.broken.notify_one();
            }
            ended
        })
    }
}

/// The task that receives.
struct Receiver {
    opener: Opener,
    capabilities: Vec<String>,
    worker: String,
    ahead: u16,
    slots: Arc<Semaphore>,
    sender: mpsc::Sender<Result<ReceivedNotice, BrokerError>>,
    shared: Arc<Shared>,
    stop: CancellationToken,
    /// Names of deliveries count within a connection only.
    connections: u64,
}

/// What arrives for one capability; `None` when no more will.
type Arrival = Option<(String, Result<Delivery, lapin::Error>)>;
type Arrivals = SelectAll<Pin<Box<dyn Stream<Item = Arrival> + Send>>>;

/// Why receiving ended.
enum Left {
    Stopped,
    /// Nothing came for long. Servers do not always tell that a queue was removed and made again, so
    /// that it is subscribed to anew.
    Idle,
    Broken(BrokerError),
}

struct Subscription {
    /// Keeps the connection.
    _link: Link,
    arrivals: Arrivals,
}

impl Receiver {
    async fn connect(&self) -> Result<Subscription, BrokerError> {
        let link = self.opener.open(&self.worker).await?;
        let limit = self.opener.limits.answer;
        let mut arrivals = Arrivals::new();
        for capability in &self.capabilities {
            link.declare(capability).await?;
            let channel = link.open_channel().await?;
            let qos = channel.basic_qos(self.ahead, BasicQosOptions::default());
            within(limit, "the limit of unsettled notices", qos).await?;
            let consumer = channel.basic_consume(
                steps_queue(capability).into(),
                "".into(),
                BasicConsumeOptions::default(),
                FieldTable::default(),
            );
            let consumer = within(limit, "the queue of a capability", consumer).await?;
            let capability = capability.clone();
            let deliveries = consumer.map(move |it| Some((capability.clone(), it)));
            let end = stream::once(std::future::ready(None));
            arrivals.push(Box::pin(deliveries.chain(end)));
        }
        Ok(Subscription {
            _link: link,
            arrivals,
        })
    }

    async fn follow(mut self, first: Subscription) {
        let mut subscription = Some(first);
        let mut backoff = Backoff::default();
        let mut reported = None;
        loop {
            let error = match subscription.take() {
                Some(mut subscription) => {
                    backoff.reset();
                    reported = None;
                    self.connections += 1;
                    let left = self.receive(&mut subscription.arrivals).await;
                    // The server delivers again what was held.
                    self.shared.lock().clear();
                    match left {
                        Left::Stopped => return,
                        Left::Idle => continue,
                        Left::Broken(error) => error,
                    }
                }
                None => match Box::pin(self.connect()).await {
                    Ok(again) => {
                        subscription = Some(again);
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
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Receives until the connection breaks, or the worker stops.
    async fn receive(&self, arrivals: &mut Arrivals) -> Left {
        loop {
            let slot = tokio::select! {
                slot = self.slots.clone().acquire_owned() => slot,
                () = self.shared.broken.notified() => return Left::Broken(broken()),
                () = self.stop.cancelled() => return Left::Stopped,
            };
            let Ok(slot) = slot else {
                return Left::Stopped;
            };
            let arrival = tokio::select! {
                arrival = arrivals.next() => arrival,
                () = self.shared.broken.notified() => return Left::Broken(broken()),
                () = self.stop.cancelled() => return Left::Stopped,
                () = tokio::time::sleep(self.opener.limits.idle) => {
                    match self.shared.lock().is_empty() {
                        true => return Left::Idle,
                        false => continue,
                    }
                }
            };
            let taken = match arrival.flatten() {
                None => Err(BrokerError::Unreachable("a queue was removed".to_owned())),
                Some((_, Err(error))) => Err(connection_lost(&error)),
                Some((capability, Ok(delivery))) => self.take(&capability, delivery, slot).await,
            };
            if let Err(error) = taken {
                return Left::Broken(error);
            }
        }
    }

    /// Hands a notice to the worker. What is none goes to the dead ones.
    async fn take(
        &self,
        capability: &str,
        delivery: Delivery,
        slot: OwnedSemaphorePermit,
    ) -> Result<(), BrokerError> {
        let notice = match decode(capability, &delivery.data) {
            Ok(notice) => notice,
            Err(error) => {
                tracing::warn!(reason = %error, capability, "a message is put aside");
                let rejected = delivery.acker.reject(BasicRejectOptions { requeue: false });
                let limit = self.opener.limits.answer;
                return within(limit, "putting a message aside", rejected)
                    .await
                    .map(drop);
            }
        };
        let earlier = earlier_deliveries(&delivery);
        // Each capability has a channel of its own, and channels count by themselves.
        let tag = delivery.delivery_tag;
        let name = format!("{}:{tag}@{capability}", self.connections);
        let received = ReceivedNotice {
            delivery: name.clone(),
            notice: notice.clone(),
            redelivered: delivery.redelivered || earlier > 0,
        };
        let held = Held {
            acker: delivery.acker,
            notice,
            deliveries: earlier.saturating_add(1),
            _slot: slot,
        };
        self.shared.lock().insert(name, held);
        tokio::select! {
            // A worker that is gone is noticed by the token.
            sent = self.sender.send(Ok(received)) => drop(sent),
            () = self.stop.cancelled() => {}
        }
        Ok(())
    }
}

fn broken() -> BrokerError {
    BrokerError::Unreachable("the connection broke".to_owned())
}

/// How often it was delivered before: as the server counts, and as we did before it was sent again.
fn earlier_deliveries(delivery: &Delivery) -> u32 {
    let count = |name: &str| super::dead::read_count(&delivery.properties, name).unwrap_or(0);
    let sum = count("x-delivery-count").saturating_add(count(DELIVERIES_HEADER));
    u32::try_from(sum).unwrap_or(u32::MAX)
}
