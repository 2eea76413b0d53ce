//! Encrypted connections to the database, by the TLS that everything else here uses.

use super::location::Encryption;
use super::open_error::OpenPostgresError;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// Makes encrypted connections, or none where the address asks for none.
#[derive(Clone, Debug)]
pub(super) struct Connector(Option<Arc<ClientConfig>>);

impl Connector {
    pub(super) fn new(encryption: &Encryption) -> Result<Self, OpenPostgresError> {
        let Encryption::Verified { authorities } = encryption else {
            return Ok(Self(None));
        };
        let config = crate::tls::client_config(authorities.as_deref())
            .map_err(OpenPostgresError::Certificates)?;
        Ok(Self(Some(Arc::new(config))))
    }
}

impl MakeTlsConnect<tokio_postgres::Socket> for Connector {
    type Stream = Stream<tokio_postgres::Socket>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Handshake> {
        Ok(Handshake {
            config: self.0.clone(),
            domain: domain.to_owned(),
        })
    }
}

/// One handshake that is about to be made.
pub(super) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    domain: String,
}

type Shaking<S> = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Shaking<S>;

    fn connect(self, stream: S) -> Shaking<S> {
        Box::pin(async move {
            let Some(config) = self.config else {
                return Err(io::Error::other("the address asks for no encryption"));
            };
            let name = ServerName::try_from(self.domain).map_err(io::Error::other)?;
            let connector = tokio_rustls::TlsConnector::from(config);
            let stream = connector.connect(name, stream).await?;
            Ok(Stream(Box::new(stream)))
        })
    }
}

/// An encrypted connection.
pub(super) struct Stream<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        // The server is known by its certificate; binding the password to it as well would need the
        // certificate's own hash function.
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(context)
    }
}
