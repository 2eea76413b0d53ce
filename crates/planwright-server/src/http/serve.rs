//! Listening, and stopping without losing anything.

use super::auth::close_expired_streams;
use super::limits::{ConnectionLimits, Guard, note_request};
use super::router::app;
use super::state::Http;
use axum::middleware::from_fn_with_state;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::TcpSocket;
use tokio::time::timeout;

/// Headers have to arrive within this time: no client keeps a connection by sending them letter
/// by letter.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that wait to be taken. Those of a crowd of strangers are dropped beyond it, and so are those
/// of others, who then try again after a second or more.
const BACKLOG: u32 = 4_096;

/// What calls in flight are given to stop when their outcome cannot be recorded any more.
const LAST_GRACE: Duration = Duration::from_secs(2);

/// Bytes of all headers of a request.
const MAX_HEADERS: usize = 32 << 10;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("the certificate {} with the key {} cannot be used", certificate.display(), key.display())]
    Certificate {
        certificate: PathBuf,
        key: PathBuf,
        source: io::Error,
    },
    #[error("the service stopped")]
    Stopped(#[source] io::Error),
    #[error("the service ended: the store can no longer be used: {0}")]
    StoreLost(String),
}

/// A certificate that can be used, with its key.
#[derive(Debug, Clone)]
pub struct Tls(RustlsConfig);

impl Tls {
    /// Reads both from files in PEM.
    pub async fn read(certificate: &Path, key: &Path) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Certificate {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            source,
        };
        RustlsConfig::from_pem_file(certificate, key)
            .await
            .map(Self)
            .map_err(failed)
    }
}

/// Takes the address. From here on connections are queued. Needs a runtime.
pub fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let failed = |source| ServeError::Listen { address, source };
    bind(address).map_err(failed)
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A service that is started again does not wait until the connections of the one before are forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

/// Answers requests until the service is told to stop, then finishes what was begun.
pub async fn serve(http: &Http, listener: TcpListener, tls: Option<Tls>) -> Result<(), ServeError> {
    let handle = Handle::new();
    let guard = Guard::new(ConnectionLimits {
        connections: http.settings.max_connections,
        max_idle_per_address: http.settings.max_idle_per_address,
        idle_timeout: http.settings.idle_timeout,
        stall_timeout: http.settings.stall_timeout,
    });
    let service = app(http)
        .layer(from_fn_with_state(guard.clone(), note_request))
        .into_make_service_with_connect_info::<SocketAddr>();
    let stopping = stop(http.clone(), handle.clone());
    tokio::spawn(close_expired_streams(http.clone()));
    tokio::spawn(read_ahead(http.clone()));
    let served = async {
        match tls {
            None => {
                let server = axum_server::from_tcp(listener).map_err(ServeError::Stopped)?;
                let mut server = server.acceptor(guard).handle(handle);
                limit(server.http_builder());
                server.serve(service).await.map_err(ServeError::Stopped)
            }
            Some(Tls(config)) => {
                let server =
                    axum_server::from_tcp_rustls(listener, config).map_err(ServeError::Stopped)?;
                let mut server = server.map(|tls| tls.acceptor(guard)).handle(handle);
                limit(server.http_builder());
                server.serve(service).await.map_err(ServeError::Stopped)
            }
        }
    };
    tokio::pin!(served, stopping);
    let maintenance = http.service.engine.maintenance();
    let lost = tokio::select! {
        served = &mut served => {
            served?;
            None
        }
        never = &mut stopping => match never {},
        () = http.stop_now.cancelled() => return Ok(()),
        reason = maintenance.store_failure() => Some(reason),
    };
    if let Some(reason) = lost {
        let answering = async {
            tokio::select! {
                // How the last answers went does not change why the service ends.
                served = served => drop(served),
                never = stopping => match never {},
            }
        };
        return Err(stop_without_store(http, reason, answering).await);
    }
    // What is in flight finishes in its own time, but not in any time.
    let stopped = tokio::select! {
        stopped = http.supervisor.stop(http.settings.grace) => stopped,
        () = http.stop_now.cancelled() => return Ok(()),
    };
    if stopped.cut_off > 0 {
        tracing::warn!(
            runs = stopped.cut_off,
            "calls were still in flight; their runs go on at the next start"
        );
    }
    Ok(())
}

/// Sums up what there is, so that the first person who looks does not wait for it. A failure is told to those who look.
async fn read_ahead(http: Http) {
    if let Err(error) = http.service.engine.overview().read_ahead().await {
        tracing::debug!(%error, "the plans could not be summed up");
    }
}

/// Ends a service whose store failed for good: nothing can be recorded any more, so nothing is
/// accepted, requests are told why, and the runs let go of their calls. The supervisor of the
/// process starts it again.
async fn stop_without_store(
    http: &Http,
    reason: String,
    answering: impl Future<Output = ()>,
) -> ServeError {
    http.stop.cancel();
    let (answered, stopped) = tokio::join!(
        timeout(LAST_GRACE, answering),
        http.supervisor.stop(LAST_GRACE)
    );
    if answered.is_err() || stopped.cut_off > 0 {
        tracing::warn!(
            runs = stopped.cut_off,
            "requests or calls were still in flight; whether calls were made is asked at the next start"
        );
    }
    ServeError::StoreLost(reason)
}

/// Once the service is told to stop: no new connections, those that are open finish their requests.
async fn stop(http: Http, handle: Handle<SocketAddr>) -> std::convert::Infallible {
    http.stop.cancelled().await;
    handle.graceful_shutdown(Some(http.settings.grace));
    std::future::pending().await
}

fn limit(builder: &mut Builder<TokioExecutor>) {
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADERS)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(64)
        .max_header_list_size(u32::try_from(MAX_HEADERS).expect("a few kilobytes"))
        .keep_alive_interval(Some(Duration::from_secs(20)))
        .keep_alive_timeout(Duration::from_secs(20));
}
