//! Sends messages and waits until the server has confirmed them.

use super::super::kept_link::KeptLink;
use super::super::limits::BrokerLimits;
use super::failure::{connection_lost, within};
use super::link::{Link, Opener, close};
use super::topology;
use lapin::options::BasicPublishOptions;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Confirmation};
use planwright_engine::port::{BrokerError, QueueState};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often a notice was delivered before this message was sent.
pub(super) const DELIVERIES_HEADER: &str = "planwright-deliveries";
const PERSISTENT: u8 = 2;

/// One connection for all that is sent, made anew when it broke.
#[derive(Debug)]
pub(super) struct Publisher {
    opener: Opener,
    kept: KeptLink<Link>,
}

/// Why a message was not confirmed.
enum Unsent {
    /// There is no queue of that name any more.
    NoQueue,
    /// The server did not take it, and will later.
    Full,
    /// Whether it arrived is unknown.
    Lost(BrokerError),
}

impl Publisher {
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
        let open = async || Box::pin(self.opener.open("publisher")).await;
        self.kept.get(open).await
    }

    /// Gives a connection up.
    pub(super) async fn give_up(&self, link: &Arc<Link>) {
        self.kept.give_up(link).await;
    }

    /// Sends a message to a queue of a capability. A message whose fate is unknown is sent once
    /// more on another connection: a notice may arrive twice.
    pub(super) async fn send(
        &self,
        capability: &str,
        queue: &str,
        body: &[u8],
        deliveries: u32,
    ) -> Result<(), BrokerError> {
        let mut is_last = false;
        loop {
            let link = self.link().await?;
            let error = match send_on(&link, capability, queue, body, deliveries).await {
                Ok(()) => return Ok(()),
                Err(Unsent::Full) => {
                    return Err(BrokerError::Unreachable(format!("{queue} is full")));
                }
                Err(Unsent::NoQueue) => {
                    link.forget(capability);
                    BrokerError::Unreachable(format!("there is no {queue}"))
                }
                Err(Unsent::Lost(error @ BrokerError::Refused(_))) => return Err(error),
                Err(Unsent::Lost(error)) => {
                    self.give_up(&link).await;
                    error
                }
            };
            if is_last {
                return Err(error);
            }
            is_last = true;
        }
    }

    pub(super) async fn state(&self, capability: &str) -> Result<QueueState, BrokerError> {
        let link = self.link().await?;
        let channel = link.open_channel().await?;
        let ready = topology::declare(&channel, capability, self.limits()).await?;
        close(&channel).await;
        Ok(QueueState {
            capability: capability.to_owned(),
            waiting: (ready.waiting + ready.resting).into(),
            // The server tells these to its own tools only.
            held: None,
            dead: ready.dead.into(),
            oldest: None,
            redelivered: None,
        })
    }
}

async fn send_on(
    link: &Link,
    capability: &str,
    queue: &str,
    body: &[u8],
    deliveries: u32,
) -> Result<(), Unsent> {
    link.declare(capability).await.map_err(Unsent::Lost)?;
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let limit = link.limits.answer;
    let confirmation = within(limit, "the confirmation of a notice", async {
        let sent = link.channel.basic_publish(
            "".into(),
            queue.into(),
            options,
            body,
            properties(deliveries),
        );
        sent.await?.await
    });
    let confirmation = confirmation.await.map_err(|error| match error {
        // On a channel that has worked before, a refusal concerns the channel.
        BrokerError::Refused(reason) => Unsent::Lost(BrokerError::Unreachable(reason)),
        error @ (BrokerError::Unreachable(_) | BrokerError::Unreadable(_)) => Unsent::Lost(error),
    })?;
    match confirmation {
        Confirmation::Ack(None) => Ok(()),
        Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => Err(Unsent::NoQueue),
        Confirmation::Nack(None) => Err(Unsent::Full),
        Confirmation::NotRequested => Err(Unsent::Lost(connection_lost(
            &lapin::ErrorKind::FutureCompleted.into(),
        ))),
    }
}

fn properties(deliveries: u32) -> BasicProperties {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut headers = FieldTable::default();
    let count = AMQPValue::LongLongInt(deliveries.into());
    headers.insert(DELIVERIES_HEADER.into(), count);
    BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_content_type("application/json".into())
        .with_message_id(random_name())
        .with_timestamp(now.unwrap_or(Duration::ZERO).as_secs())
        .with_headers(headers)
}

fn random_name() -> ShortString {
    let bits = getrandom::u64().unwrap_or_default();
    format!("{bits:016x}").into()
}
