//! Redis: a stream per capability with one group of consumers, and a stream beside it for what was given up.

mod commands;
mod dead;
mod failure;
mod keys;
mod link;
mod notices;
mod reply;

use super::address::BrokerAddress;
use super::connector::Connector;
use super::limits::BrokerLimits;
use super::notice::{check_capabilities, check_capability, encode};
use commands::Commands;
use link::Opener;
use notices::RedisNotices;
use planwright_engine::port::{
    BoxFuture, Broker, BrokerError, DeadNotice, Notices, QueueState, StepNotice,
};
use std::sync::Arc;

/// Notices over streams of Redis.
#[derive(Debug)]
pub(super) struct Redis {
    opener: Opener,
    commands: Arc<Commands>,
}

impl Redis {
    pub(super) fn new(address: BrokerAddress, connector: Connector, limits: BrokerLimits) -> Self {
        let opener = Opener::new(address, connector, limits);
        Self {
            commands: Arc::new(Commands::new(opener.clone())),
            opener,
        }
    }
}

impl Broker for Redis {
    fn publish<'a>(&'a self, notice: &'a StepNotice) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            let body = encode(notice)?;
            self.commands.publish(&notice.capability, &body).await
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
            let commands = self.commands.clone();
            let notices =
                RedisNotices::start(&self.opener, commands, capabilities, worker, ahead).await?;
            Ok(Box::new(notices) as Box<dyn Notices>)
        })
    }

    fn states<'a>(
        &'a self,
        capabilities: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<QueueState>, BrokerError>> {
        Box::pin(async move {
            // Also where no queue is asked for: the answer says that the broker is there.
            self.commands.link().await?;
            let mut states = Vec::with_capacity(capabilities.len());
            for capability in capabilities {
                check_capability(capability)?;
                states.push(self.commands.state(capability).await?);
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
            dead::list(&self.commands, capability, limit).await
        })
    }

    fn requeue<'a>(
        &'a self,
        capability: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, BrokerError>> {
        Box::pin(async move {
            check_capability(capability)?;
            dead::requeue(&self.commands, capability, id).await
        })
    }

    fn purge_dead<'a>(&'a self, capability: &'a str) -> BoxFuture<'a, Result<u64, BrokerError>> {
        Box::pin(async move {
            check_capability(capability)?;
            dead::purge(&self.commands, capability).await
        })
    }
}
