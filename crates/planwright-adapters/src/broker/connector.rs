//! Connections to brokers, encrypted by the TLS that everything else here uses.

use super::address::BrokerAddress;
use planwright_engine::port::BrokerError;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection, encrypted or not.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Makes connections to one address.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    host: String,
    port: u16,
    encryption: Option<Arc<ClientConfig>>,
}

impl Connector {
    pub(super) fn new(address: &BrokerAddress) -> Result<Self, BrokerError> {
        let encryption = address.is_encrypted.then(|| {
            let authorities = address.authorities.as_deref();
            crate::tls::client_config(authorities).map_err(|reason| {
                BrokerError::Refused(format!("its certificate cannot be checked: {reason}"))
            })
        });
        Ok(Self {
            host: address.host.clone(),
            port: address.port,
            encryption: encryption.transpose()?.map(Arc::new),
        })
    }

    /// Connects. The caller limits the time.
    pub(super) async fn connect(&self) -> io::Result<Box<dyn Wire>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        // Small messages leave at once.
        stream.set_nodelay(true)?;
        let Some(config) = &self.encryption else {
            return Ok(Box::new(stream));
        };
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        let connector = tokio_rustls::TlsConnector::from(config.clone());
        Ok(Box::new(connector.connect(name, stream).await?))
    }
}
