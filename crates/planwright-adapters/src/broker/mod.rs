//! Brokers that carry notices to workers: RabbitMQ and Redis.
//!
//! A broker is a convenience: the store decides who carries out a step, and everything a broker holds may be lost.
//! Connections are made and supervised here, and not by the client libraries.

mod address;
mod backoff;
mod connector;
mod kept_link;
mod limits;
mod notice;
mod rabbitmq;
mod redis;

pub use address::BrokerAddress;
pub use limits::BrokerLimits;

use address::Kind;
use connector::Connector;
use planwright_engine::port::{Broker, BrokerError};
use std::sync::Arc;

/// Makes a broker of an address. `password` is used if the address has none. Nothing is connected
/// yet: a broker that is away is noticed by the first call.
pub fn open(url: &str, password: Option<&str>) -> Result<Arc<dyn Broker>, BrokerError> {
    let address = BrokerAddress::parse(url, password)?;
    open_with(address, BrokerLimits::default())
}

/// Makes a broker with limits of the caller's.
pub fn open_with(
    address: BrokerAddress,
    limits: BrokerLimits,
) -> Result<Arc<dyn Broker>, BrokerError> {
    let connector = Connector::new(&address)?;
    Ok(match address.kind {
        Kind::RabbitMq => Arc::new(rabbitmq::RabbitMq::new(address, connector, limits)),
        Kind::Redis => Arc::new(redis::Redis::new(address, connector, limits)),
    })
}
