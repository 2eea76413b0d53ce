//! One connection to the server. Those who find it broken make another.

use super::super::address::BrokerAddress;
use super::super::connector::Connector;
use super::super::kept_link::BrokerLink;
use super::super::limits::BrokerLimits;
use super::failure::classify;
use planwright_engine::port::BrokerError;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisError};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Makes connections.
#[derive(Debug, Clone)]
pub(super) struct Opener {
    address: Arc<BrokerAddress>,
    connector: Connector,
    pub(super) limits: BrokerLimits,
}

impl Opener {
    pub(super) fn new(address: BrokerAddress, connector: Connector, limits: BrokerLimits) -> Self {
        Self {
            address: Arc::new(address),
            connector,
            limits,
        }
    }

    /// Connects. A command that the server lets wait may take `waiting` longer than others.
    pub(super) async fn open(&self, waiting: Duration) -> Result<Link, BrokerError> {
        let limit = self.limits.connect;
        match tokio::time::timeout(limit, Box::pin(self.connect(waiting))).await {
            Ok(Ok(link)) => Ok(link),
            Ok(Err(error)) => Err(self.name_address(classify(&error))),
            Err(_) => Err(BrokerError::Unreachable(format!(
                "{}: no answer within {limit:?}",
                self.address
            ))),
        }
    }

    async fn connect(&self, waiting: Duration) -> Result<Link, RedisError> {
        let wire = self.connector.connect().await?;
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(Some(self.limits.answer.saturating_add(waiting)));
        let (connection, driver) =
            MultiplexedConnection::new_with_config(&self.info(), wire, config).await?;
        Ok(Link {
            connection,
            driver: tokio::spawn(driver),
        })
    }

    fn info(&self) -> RedisConnectionInfo {
        let place = self.address.place.as_deref();
        let number = place.and_then(|place| place.parse().ok()).unwrap_or(0);
        let mut info = RedisConnectionInfo::default().set_db(number);
        if let Some(user) = &self.address.user {
            info = info.set_username(user);
        }
        if let Some(password) = &self.address.password {
            info = info.set_password(password);
        }
        info
    }

    /// A process may know several servers. The password is not named.
    fn name_address(&self, error: BrokerError) -> BrokerError {
        match error {
            BrokerError::Unreachable(reason) => {
                BrokerError::Unreachable(format!("{}: {reason}", self.address))
            }
            BrokerError::Refused(reason) => {
                BrokerError::Refused(format!("{}: {reason}", self.address))
            }
            BrokerError::Unreadable(reason) => BrokerError::Unreadable(reason),
        }
    }
}

/// A connection, closed when this is dropped.
#[derive(Debug)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
}

impl Link {
    /// The connection, for one command.
    pub(super) fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }
}

impl BrokerLink for Link {
    fn is_open(&self) -> bool {
        !self.driver.is_finished()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
