//! The queues of a capability. Everything goes through the default exchange, which leads to a queue by its name.

use super::super::limits::{BrokerLimits, MAX_QUEUE_BYTES};
use super::failure::within;
use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Queue};
use planwright_engine::port::BrokerError;

/// Looking at dead notices delivers them; servers of version 4 would drop them after twenty looks.
const DELIVERIES_OF_DEAD: i32 = 1_000_000;

/// Notices that wait for a worker.
pub(super) fn steps_queue(capability: &str) -> String {
    format!("planwright.steps.{capability}")
}

/// Notices that were returned, and rest for a moment.
pub(super) fn resting_queue(capability: &str) -> String {
    format!("planwright.resting.{capability}")
}

/// Notices that were given up.
pub(super) fn dead_queue(capability: &str) -> String {
    format!("planwright.dead.{capability}")
}

/// How many messages are ready in the queues of a capability.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready {
    pub(super) waiting: u32,
    pub(super) resting: u32,
    pub(super) dead: u32,
}

/// Makes the queues of a capability, or finds that they are as they should be.
pub(super) async fn declare(
    channel: &Channel,
    capability: &str,
    limits: &BrokerLimits,
) -> Result<Ready, BrokerError> {
    let steps = steps_queue(capability);
    let resting = resting_queue(capability);
    let dead = dead_queue(capability);
    let dead_count = declare_queue(channel, &dead, dead_arguments(limits), limits).await?;
    let to_dead = full_arguments(limits, &dead, "x-delivery-limit", limits.deliveries);
    let waiting = declare_queue(channel, &steps, to_dead, limits).await?;
    let rest = u32::try_from(limits.rest.as_millis()).unwrap_or(u32::MAX);
    let to_steps = full_arguments(limits, &steps, "x-message-ttl", rest);
    let resting_count = declare_queue(channel, &resting, to_steps, limits).await?;
    Ok(Ready {
        waiting: waiting.message_count(),
        resting: resting_count.message_count(),
        dead: dead_count.message_count(),
    })
}

async fn declare_queue(
    channel: &Channel,
    name: &str,
    arguments: FieldTable,
    limits: &BrokerLimits,
) -> Result<Queue, BrokerError> {
    let options = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    let declared = channel.queue_declare(name.into(), options, arguments);
    within(limits.answer, name, declared).await
}

/// A queue that refuses what is too much, and hands over what is over its limit or its time. The
/// hand-over waits until the other queue has it, for which refusing is a condition.
fn full_arguments(
    limits: &BrokerLimits,
    next_queue: &str,
    limit_name: &str,
    limit: u32,
) -> FieldTable {
    let mut arguments = quorum_arguments(limits.waiting, "reject-publish");
    let mut text = |name: &str, value: &str| {
        arguments.insert(name.into(), AMQPValue::LongString(value.into()));
    };
    text("x-dead-letter-exchange", "");
    text("x-dead-letter-routing-key", next_queue);
    text("x-dead-letter-strategy", "at-least-once");
    arguments.insert(limit_name.into(), number(limit));
    arguments
}

/// A queue that forgets the oldest when it is full: dead notices must not hold up the others.
fn dead_arguments(limits: &BrokerLimits) -> FieldTable {
    let mut arguments = quorum_arguments(limits.dead, "drop-head");
    let deliveries = AMQPValue::LongInt(DELIVERIES_OF_DEAD);
    arguments.insert("x-delivery-limit".into(), deliveries);
    arguments
}

fn quorum_arguments(length: u32, overflow: &str) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert(
        "x-queue-type".into(),
        AMQPValue::LongString("quorum".into()),
    );
    arguments.insert("x-overflow".into(), AMQPValue::LongString(overflow.into()));
    arguments.insert("x-max-length".into(), number(length));
    arguments.insert("x-max-length-bytes".into(), number(MAX_QUEUE_BYTES));
    arguments
}

fn number(value: u32) -> AMQPValue {
    AMQPValue::LongLongInt(value.into())
}
