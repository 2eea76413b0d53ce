//! Dead notices. The server has no way to look at a queue: they are taken and put back, on one channel, so that they go back
//! by themselves if this process ends.

use super::super::limits::MAX_SEARCHED;
use super::super::notice::decode;
use super::failure::within;
use super::link::{Link, close};
use super::publisher::{DELIVERIES_HEADER, Publisher};
use super::topology::{dead_queue, steps_queue};
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, QueueDeclareOptions, QueuePurgeOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel};
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use planwright_engine::port::{BrokerError, DeadNotice};
use std::time::Duration;

const MAX_LOOKS: usize = 50;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A channel on which dead notices are taken, and put back in the end.
struct Look<'a> {
    link: &'a Link,
    channel: Channel,
    queue: String,
    last: Option<u64>,
    /// How many were taken and are to be put back.
    taken: u32,
}

impl<'a> Look<'a> {
    async fn start(link: &'a Link, capability: &str) -> Result<Self, BrokerError> {
        link.declare(capability).await?;
        Ok(Self {
            link,
            channel: link.open_channel().await?,
            queue: dead_queue(capability),
            last: None,
            taken: 0,
        })
    }

    async fn take(&mut self) -> Result<Option<Delivery>, BrokerError> {
        let options = BasicGetOptions { no_ack: false };
        let taken = self.channel.basic_get(self.queue.as_str().into(), options);
        let taken = within(self.link.limits.answer, &self.queue, taken).await?;
        let delivery = taken.map(|message| message.delivery);
        if let Some(delivery) = &delivery {
            self.last = Some(delivery.delivery_tag);
            self.taken += 1;
        }
        Ok(delivery)
    }

    /// Ends the life of one that was taken.
    async fn remove(&mut self, delivery: &Delivery) -> Result<(), BrokerError> {
        let acked = delivery.acker.ack(BasicAckOptions::default());
        within(self.link.limits.answer, "the end of a dead notice", acked).await?;
        self.taken -= 1;
        // It was the last one that was taken. The server knows its tag no more, and would close the channel over it.
        self.last = (self.taken > 0).then_some(delivery.delivery_tag - 1);
        Ok(())
    }

    /// Puts back all that was taken and not acknowledged.
    async fn end(self) -> Result<(), BrokerError> {
        let Some(last) = self.last else {
            close(&self.channel).await;
            return Ok(());
        };
        let options = BasicNackOptions {
            multiple: true,
            requeue: true,
        };
        let put_back = self.channel.basic_nack(last, options);
        within(self.link.limits.answer, &self.queue, put_back).await?;
        self.await_put_back().await?;
        close(&self.channel).await;
        Ok(())
    }

    /// The server says nothing when they are back: who looks next should find them. Others may take some meanwhile, so that
    /// the wait is short.
    async fn await_put_back(&self) -> Result<(), BrokerError> {
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        for _ in 0..MAX_LOOKS {
            let name = self.queue.as_str().into();
            let queue = self
                .channel
                .queue_declare(name, options, FieldTable::default());
            let queue = within(self.link.limits.answer, &self.queue, queue).await?;
            if queue.message_count() >= self.taken {
                break;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }
}

pub(super) async fn list(
    publisher: &Publisher,
    capability: &str,
    limit: usize,
) -> Result<Vec<DeadNotice>, BrokerError> {
    let link = publisher.link().await?;
    let mut look = Look::start(&link, capability).await?;
    let mut dead = Vec::new();
    while dead.len() < limit.min(MAX_SEARCHED) {
        let Some(delivery) = look.take().await? else {
            break;
        };
        dead.push(read_dead(capability, &delivery));
    }
    look.end().await?;
    Ok(dead)
}

pub(super) async fn requeue(
    publisher: &Publisher,
    capability: &str,
    id: &str,
) -> Result<bool, BrokerError> {
    let link = publisher.link().await?;
    let mut look = Look::start(&link, capability).await?;
    for _ in 0..MAX_SEARCHED {
        let Some(delivery) = look.take().await? else {
            break;
        };
        if name(&delivery) != id {
            continue;
        }
        let sent = send_again(publisher, capability, &delivery).await;
        if sent.is_ok() {
            // Only now: in between it is doubled, and never lost.
            look.remove(&delivery).await?;
        }
        look.end().await?;
        return sent.map(|()| true);
    }
    look.end().await?;
    Ok(false)
}

async fn send_again(
    publisher: &Publisher,
    capability: &str,
    delivery: &Delivery,
) -> Result<(), BrokerError> {
    decode(capability, &delivery.data)?;
    let queue = steps_queue(capability);
    publisher.send(capability, &queue, &delivery.data, 0).await
}

pub(super) async fn purge(publisher: &Publisher, capability: &str) -> Result<u64, BrokerError> {
    let link = publisher.link().await?;
    link.declare(capability).await?;
    let channel = link.open_channel().await?;
    let queue = dead_queue(capability);
    let purged = channel.queue_purge(queue.as_str().into(), QueuePurgeOptions::default());
    let count = within(link.limits.answer, &queue, purged).await?;
    close(&channel).await;
    Ok(count.into())
}

fn read_dead(capability: &str, delivery: &Delivery) -> DeadNotice {
    let properties = &delivery.properties;
    DeadNotice {
        id: name(delivery),
        notice: decode(capability, &delivery.data).ok(),
        deliveries: read_count(properties, DELIVERIES_HEADER).filter(|count| *count > 0),
        since: died_at(properties),
    }
}

/// The id of a message. Those from elsewhere may have none, and are known by what they say.
fn name(delivery: &Delivery) -> String {
    let id = delivery.properties.message_id().as_ref();
    let id = id.map(|id| id.as_str()).filter(|id| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !id.is_empty() && id.len() <= 64 && id.chars().all(is_plain)
    });
    match id {
        Some(id) => id.to_owned(),
        None => Digest::of_parts(&[b"message", &delivery.data])
            .to_string()
            .replace(':', "-"),
    }
}

/// Reads a number among the headers, which servers write in several sizes.
pub(super) fn read_count(properties: &BasicProperties, name: &str) -> Option<u64> {
    let value = properties.headers().as_ref()?.inner().get(name)?;
    let number = match value {
        AMQPValue::LongLongInt(number) => *number,
        AMQPValue::LongInt(number) => i64::from(*number),
        AMQPValue::LongUInt(number) => i64::from(*number),
        AMQPValue::ShortInt(number) => i64::from(*number),
        AMQPValue::ShortShortUInt(number) => i64::from(*number),
        AMQPValue::ShortShortInt(number) => i64::from(*number),
        _ => return None,
    };
    u64::try_from(number).ok()
}

/// When the server gave a message up, or when we did: then the message is as old as that.
fn died_at(properties: &BasicProperties) -> Option<Timestamp> {
    let deaths = properties.headers().as_ref()?.inner().get("x-death");
    let last = deaths.and_then(|deaths| match deaths {
        AMQPValue::FieldArray(deaths) => deaths.as_slice().first(),
        _ => None,
    });
    let by_server = last.and_then(|death| match death {
        AMQPValue::FieldTable(death) => time_of(death),
        _ => None,
    });
    let seconds = by_server.or_else(|| *properties.timestamp())?;
    let millis = i64::try_from(seconds).ok()?.checked_mul(1000)?;
    Some(Timestamp::from_millis(millis))
}

fn time_of(death: &FieldTable) -> Option<u64> {
    match death.inner().get("time") {
        Some(AMQPValue::Timestamp(seconds)) => Some(*seconds),
        Some(_) | None => None,
    }
}
