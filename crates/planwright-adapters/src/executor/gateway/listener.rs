//! The listener: who may connect, how many at once, and for how long.

use super::connection::serve_connection;
use super::guard::RequestGuard;
use planwright_engine::port::Gateway;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

/// Connections at once. Further ones wait in the backlog of the operating system.
pub(super) const MAX_CONNECTIONS: usize = 16;
/// The time in which a request has to arrive, head and body together.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(30);
/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A gateway that listens. Dropping it ends its connections and the calls they wait for.
#[derive(Debug)]
pub(in crate::executor) struct GatewayListener {
    address: String,
    token: String,
    accepting: JoinHandle<()>,
}

impl Drop for GatewayListener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl GatewayListener {
    /// Listens on a free port of the loopback interface, with a new token.
    pub(in crate::executor) async fn open(gateway: Arc<dyn Gateway>) -> std::io::Result<Self> {
        Self::open_with(gateway, ARRIVAL_LIMIT).await
    }

    /// Listens with another limit for the arrival of a request than the usual one.
    pub(super) async fn open_with(
        gateway: Arc<dyn Gateway>,
        arrival_limit: Duration,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let token = draw_token()?;
        let guard = Arc::new(RequestGuard::new(token.clone(), port, gateway));
        Ok(Self {
            address: format!("http://127.0.0.1:{port}"),
            token,
            accepting: tokio::spawn(accept_connections(listener, guard, arrival_limit)),
        })
    }

    pub(in crate::executor) fn address(&self) -> &str {
        &self.address
    }

    pub(in crate::executor) fn token(&self) -> &str {
        &self.token
    }
}

/// Draws a token of 256 random bits, in hexadecimal digits.
fn draw_token() -> std::io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }))
}

async fn accept_connections(
    listener: TcpListener,
    guard: Arc<RequestGuard>,
    arrival_limit: Duration,
) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // A set and not detached tasks: aborting this task drops it, and the connections end with it.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        // The slot comes before the connection: one too many is not accepted and costs no file.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely this process has no more files: that passes, but not at once.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let guard = Arc::clone(&guard);
        connections.spawn(async move {
            // A client that breaks its request off gets no reply, and this is no news to anyone.
            drop(serve_connection(stream, guard, arrival_limit).await);
            drop(slot);
        });
    }
}
