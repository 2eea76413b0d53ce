//! Connections: so many at once, and none that sends or takes nothing for ever.

use super::open_connections::{Connection, OpenConnections, Place, Room};
use crate::http::auth::{Caller, is_always_admitted};
use crate::http::problem::{Problem, ProblemCode};
use crate::http::state::Http;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum_server::accept::Accept;
use futures::future::BoxFuture;
use http::header::CONNECTION;
use http_body_util::BodyExt as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep, timeout};

/// The time a connection is given to make room for a new one.
const GIVING_WAY: Duration = Duration::from_secs(1);

/// A stranger's first request has to be there within this time, headers and all.
const FIRST_REQUEST: Duration = Duration::from_secs(10);

/// Of all connections, strangers may have one in so many, and this many in any case: every client is a
/// stranger at first.
const STRANGERS_SHARE: usize = 4;
const FEWEST_STRANGERS: usize = 8;

/// Connections beyond the limit, kept for people who decide something: everything else that is asked on them is
/// refused.
const RESERVE: usize = 16;

/// What connections may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    pub(crate) connections: usize,
    pub(crate) max_idle_per_address: usize,
    pub(crate) idle_timeout: Duration,
    pub(crate) stall_timeout: Duration,
}

/// Lets connections in while there is room.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    room: Arc<Semaphore>,
    reserve: Arc<Semaphore>,
    open: OpenConnections,
    limits: ConnectionLimits,
}

impl Guard {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        Self {
            room: Arc::new(Semaphore::new(limits.connections)),
            reserve: Arc::new(Semaphore::new(RESERVE)),
            open: OpenConnections::new(
                limits.max_idle_per_address,
                strangers_of(limits.connections),
            ),
            limits,
        }
    }

    /// Finds room, if need be that of a connection which only sits there, or in the reserve.
    async fn find_room(&self) -> io::Result<Room> {
        if let Some(room) = self.try_take(Place::Room) {
            return Ok(room);
        }
        if let Some(place) = self.open.make_room()
            && let Some(room) = self.wait_for(place).await
        {
            return Ok(room);
        }
        self.try_take(Place::Reserve).ok_or_else(|| {
            tracing::warn!("too many connections: one was closed at once");
            io::Error::from(io::ErrorKind::ConnectionRefused)
        })
    }

    /// Moves the connection of a known caller from the reserve to a place beside it, that of a stranger if need be.
    /// Returns whether it has one.
    async fn leave_reserve(&self, peer: SocketAddr) -> bool {
        let room = match self.try_take(Place::Room) {
            Some(room) => Some(room),
            None if self.open.make_room_beside_reserve() => self.wait_for(Place::Room).await,
            None => None,
        };
        let Some(room) = room else {
            return false;
        };
        self.open.change_room(peer, room);
        true
    }

    fn try_take(&self, place: Place) -> Option<Room> {
        let permit = Arc::clone(self.places(place)).try_acquire_owned();
        permit.ok().map(|permit| Room::new(place, permit))
    }

    /// Waits for a place that is made free.
    async fn wait_for(&self, place: Place) -> Option<Room> {
        let permit = Arc::clone(self.places(place)).acquire_owned();
        let permit = timeout(GIVING_WAY, permit).await.ok()?.ok()?;
        Some(Room::new(place, permit))
    }

    fn places(&self, place: Place) -> &Arc<Semaphore> {
        match place {
            Place::Room => &self.room,
            Place::Reserve => &self.reserve,
        }
    }

    async fn admit(&self, stream: TcpStream) -> io::Result<Guarded> {
        let room = self.find_room().await?;
        let peer = stream.peer_addr()?;
        // Small answers are sent at once.
        stream.set_nodelay(true)?;
        Ok(Guarded {
            stream,
            stalled: Box::pin(sleep(self.limits.stall_timeout)),
            stall: self.limits.stall_timeout,
            waits: false,
            idle: Box::pin(sleep(self.limits.idle_timeout)),
            idle_timeout: self.limits.idle_timeout,
            connection: self.open.add(peer, room),
            open: self.open.clone(),
            peer,
        })
    }
}

/// How many of these connections strangers may have.
fn strangers_of(connections: usize) -> usize {
    let few = FEWEST_STRANGERS.min(connections.saturating_sub(1));
    few.max(connections / STRANGERS_SHARE)
}

/// Marks a request on a connection of the reserve.
#[derive(Debug, Clone)]
struct OnReserve {
    guard: Guard,
    peer: SocketAddr,
}

impl<S: Send + 'static> Accept<TcpStream, S> for Guard {
    type Stream = Guarded;
    type Service = S;
    type Future = BoxFuture<'static, io::Result<(Guarded, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let guard = self.clone();
        Box::pin(async move { Ok((guard.admit(stream).await?, service)) })
    }
}

/// Refuses on a connection of the reserve what is no decision, unless a known caller asks and a stranger can make room.
pub(crate) async fn refuse_on_reserve(
    State(http): State<Http>,
    request: Request,
    next: Next,
) -> Response {
    let Some(OnReserve { guard, peer }) = request.extensions().get::<OnReserve>().cloned() else {
        return next.run(request).await;
    };
    let is_known = request.extensions().get::<Caller>().is_some();
    if is_always_admitted(&http, &request) || is_known && guard.leave_reserve(peer).await {
        return next.run(request).await;
    }
    let words = "the service has too many connections at this moment";
    let refused = Problem::later(ProblemCode::TooBusy, words, 1);
    // The next one finds room if there is some by then.
    ([(CONNECTION, "close")], refused).into_response()
}

/// Notes that a connection has a request, until its answer has been sent.
pub(crate) async fn note_request(
    State(guard): State<Guard>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let noted = guard.open.begin_request(peer);
    request.extensions_mut().insert(noted.on_connection());
    if noted.is_on_reserve() {
        let guard = guard.clone();
        request.extensions_mut().insert(OnReserve { guard, peer });
    }
    let (parts, body) = next.run(request).await.into_parts();
    // The closure is never called; it lives as long as the body, and says no more about its length
    // than the body does.
    let body = body.map_err(move |error| {
        let _noted = &noted;
        error
    });
    Response::from_parts(parts, Body::new(body))
}

/// A connection whose other side has to take what it is sent.
#[derive(Debug)]
pub(crate) struct Guarded {
    stream: TcpStream,
    stalled: Pin<Box<Sleep>>,
    stall: Duration,
    /// The other side takes nothing at this moment.
    waits: bool,
    idle: Pin<Box<Sleep>>,
    idle_timeout: Duration,
    connection: Arc<Connection>,
    open: OpenConnections,
    peer: SocketAddr,
}

impl Guarded {
    /// Cuts off a client that takes nothing for too long.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.waits = false;
            return done;
        }
        self.connection.waker.register(context.waker());
        if self.connection.is_cut() {
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut)));
        }
        if !self.waits {
            self.waits = true;
            self.stalled.as_mut().reset(Instant::now() + self.stall);
        }
        match self.stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut))),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Returns whether a connection that has nothing to read is to be closed.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        self.connection.waker.register(context.waker());
        if self.connection.gives_way() {
            return true;
        }
        let Some(since) = self.connection.idle_since() else {
            return false;
        };
        let timeout = if self.connection.is_known() {
            self.idle_timeout
        } else {
            self.idle_timeout.min(FIRST_REQUEST)
        };
        self.idle.as_mut().reset(since + timeout);
        self.idle.as_mut().poll(context).is_ready()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.open.remove(self.peer);
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_pending() {
            self.connection.note_silence();
        }
        if read.is_pending() && self.is_over(context) {
            // To the server it looks as if the client had closed it.
            return Poll::Ready(Ok(()));
        }
        read
    }
}
impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
