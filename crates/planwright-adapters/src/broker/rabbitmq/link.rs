//! One connection to the server. Those who find it broken make another: the client library does not.

use super::super::address::BrokerAddress;
use super::super::connector::Connector;
use super::super::kept_link::BrokerLink;
use super::super::limits::BrokerLimits;
use super::failure::within;
use super::topology;
use super::wire::{Connected, OwnReactor};
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use lapin::tcp::AsyncTcpStream;
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{Channel, Connection, ConnectionProperties};
use planwright_engine::port::BrokerError;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The seconds after which a silent server counts as gone.
const HEARTBEAT: u16 = 10;
/// Messages are small, and the library reserves room for many frames of the largest size.
const MAX_FRAME: u32 = 16 * 1024;

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

    /// Connects, and opens the channel that is used for everything that can be confirmed.
    pub(super) async fn open(&self, name: &str) -> Result<Link, BrokerError> {
        let kit = Tokio::current();
        let runtime = Runtime::new(RuntimeParts::new(kit.clone(), OwnReactor(kit)));
        let connector = self.connector.clone();
        let connect = async move |_: AMQPUri, _: Runtime<_>| {
            let wire = connector.connect().await?;
            Ok(AsyncTcpStream::Plain(Connected(wire)))
        };
        let properties = ConnectionProperties::default()
            .with_connection_name(format!("planwright {name}").into());
        let connecting = async {
            let connection =
                Connection::connector(self.uri(), runtime, connect, properties).await?;
            let channel = connection.create_channel().await?;
            channel.confirm_select(Default::default()).await?;
            Ok((connection, channel))
        };
        // The address is named, because a process may know several; its password is not.
        let what = format!("cannot connect to {}", self.address);
        let (connection, channel) = within(self.limits.connect, &what, Box::pin(connecting))
            .await
            .map_err(|error| self.name_address(error))?;
        Ok(Link {
            connection,
            channel,
            declared: Mutex::default(),
            limits: self.limits,
        })
    }

    fn name_address(&self, error: BrokerError) -> BrokerError {
        match error {
            BrokerError::Unreachable(reason) if !reason.contains("cannot connect") => {
                BrokerError::Unreachable(format!("{}: {reason}", self.address))
            }
            BrokerError::Refused(reason) => {
                BrokerError::Refused(format!("{}: {reason}", self.address))
            }
            error @ (BrokerError::Unreachable(_) | BrokerError::Unreadable(_)) => error,
        }
    }

    fn uri(&self) -> AMQPUri {
        let or_guest = |text: &Option<String>| text.clone().unwrap_or_else(|| "guest".to_owned());
        AMQPUri {
            // Encryption is done by our own connector.
            scheme: AMQPScheme::AMQP,
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo {
                    username: or_guest(&self.address.user),
                    password: or_guest(&self.address.password),
                },
                host: self.address.host.clone(),
                port: self.address.port,
            },
            vhost: self.address.place.clone().unwrap_or_else(|| "/".to_owned()),
            query: AMQPQueryString {
                heartbeat: Some(HEARTBEAT),
                frame_max: Some(MAX_FRAME),
                ..AMQPQueryString::default()
            },
        }
    }
}

/// A connection with a channel whose messages are confirmed.
#[derive(Debug)]
pub(super) struct Link {
    connection: Connection,
    pub(super) channel: Channel,
    /// The capabilities whose queues are there.
    declared: Mutex<BTreeSet<String>>,
    pub(super) limits: BrokerLimits,
}

impl BrokerLink for Link {
    fn is_open(&self) -> bool {
        self.channel.status().connected()
    }
}

impl Link {
    /// Opens a channel for something that may close it.
    pub(super) async fn open_channel(&self) -> Result<Channel, BrokerError> {
        let limit = self.limits.answer;
        within(limit, "a channel", self.connection.create_channel()).await
    }

    /// Makes the queues of a capability, if this connection has not done it yet. A refusal closes
    /// the channel, therefore another one than that of the messages is used.
    pub(super) async fn declare(&self, capability: &str) -> Result<(), BrokerError> {
        if self.lock_declared().contains(capability) {
            return Ok(());
        }
        let channel = self.open_channel().await?;
        topology::declare(&channel, capability, &self.limits).await?;
        close(&channel).await;
        self.lock_declared().insert(capability.to_owned());
        Ok(())
    }

    /// Forgets that the queues of a capability are there.
    pub(super) fn forget(&self, capability: &str) {
        self.lock_declared().remove(capability);
    }

    fn lock_declared(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes a channel in peace. One that is closed already, or whose connection broke, needs none.
pub(super) async fn close(channel: &Channel) {
    drop(channel.close(200, "done".into()).await);
}
