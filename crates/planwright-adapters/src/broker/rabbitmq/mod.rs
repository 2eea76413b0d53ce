//! RabbitMQ: a quorum queue per capability, and one beside it for what was given up.

mod dead;
mod failure;
mod link;
mod notices;
mod publisher;
mod topology;
mod wire;

use super::address::BrokerAddress;
use super::connector::Connector;
use super::limits::BrokerLimits;
use super::notice::{check_capabilities, check_capability, encode};
use link::Opener;
use notices::RabbitNotices;
use planwright_engine::port::{
    BoxFuture, Broker, BrokerError, DeadNotice, Notices, QueueState, StepNotice,
};
use publisher::Publisher;
use std::sync::Arc;
use topology::steps_queue;

/// Notices over RabbitMQ.
#[derive(Debug)]
pub(super) struct RabbitMq {
    opener: Opener,
    publisher: Arc<Publisher>,
}

impl RabbitMq {
    pub(super) fn new(address: BrokerAddress, connector: Connector, limits: BrokerLimits) -> Self {
        let opener = Opener::new(address, connector, limits);
        Self {
            publisher: Arc::new(Publisher::new(opener.clone())),
            opener,
        }
    }
}

impl Broker for RabbitMq {
    fn publish<'a>(&'a self, notice: &'a StepNotice) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            let body = encode(notice)?;
            let queue = steps_queue(&notice.capability);
            self.publisher
                .send(&notice.capability, &queue, &body, 0)
                .await
        })
    }

    fn receive<'a>(
        &'a self,
        capabilities: &'a [String],
        worker: &'a str,
        ahead: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Notices>, BrokerError>> {
        Box::pin(async move {
            check_capabilities(capabilities)?;
            let publisher = self.publisher.clone();
            let notices =
                RabbitNotices::start(&self.opener, publisher, capabilities, worker, ahead).await?;
            Ok(Box::new(notices) as Box<dyn Notices>)
        })
    }

    fn states<'a>(
        &'a self,
        capabilities: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<QueueState>, BrokerError>> {
        Box::pin(async move {
            // Also where no queue is asked for: the answer says that the broker is there.
            self.publisher.link().await?;
            let mut states = Vec::with_capacity(capabilities.len());
            for capability in capabilities {
                check_capability(capability)?;
                states.push(self.publisher.state(capability).await?);
            }
            Ok(states)
        })
    }

    fn list_dead<'a>(
        &'a self,
        capability: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadNotice>, BrokerError>> {
        Box::pin(async move {
            check_capability(capability)?;
            dead::list(&self.publisher, capability, limit).await
        })
    }

    fn requeue<'a>(
        &'a self,
        capability: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, BrokerError>> {
        Box::pin(async move {
            check_capability(capability)?;
            dead::requeue(&self.publisher, capability, id).await
        })
    }

    fn purge_dead<'a>(&'a self, capability: &'a str) -> BoxFuture<'a, Result<u64, BrokerError>> {
        Box::pin(async move {
            check_capability(capability)?;
            dead::purge(&self.publisher, capability).await
        })
    }
}
