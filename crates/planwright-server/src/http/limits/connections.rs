//! Connections: so many at once, and none that sends or takes nothing for ever.

use axum_server::accept::Accept;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Lets connections in while there is room.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    room: Arc<Semaphore>,
    stall: Duration,
}

impl Guard {
    pub(crate) fn new(connections: usize, stall: Duration) -> Self {
        Self {
            room: Arc::new(Semaphore::new(connections)),
            stall,
        }
    }
}

impl<S> Accept<TcpStream, S> for Guard {
    type Stream = Guarded;
    type Service = S;
    type Future = Ready<io::Result<(Guarded, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            tracing::warn!("too many connections: one was closed at once");
            return ready(Err(io::Error::from(io::ErrorKind::ConnectionRefused)));
        };
        // Small answers are sent at once.
        let prepared = stream.set_nodelay(true).map(|()| {
            (
                Guarded {
                    stream,
                    stalled: Box::pin(sleep(self.stall)),
                    stall: self.stall,
                    waits: false,
                    _permit: permit,
                },
                service,
            )
        });
        ready(prepared)
    }
}

/// A connection whose other side has to take what it is sent.
#[derive(Debug)]
pub(crate) struct Guarded {
    stream: TcpStream,
    stalled: Pin<Box<Sleep>>,
    stall: Duration,
    /// The other side takes nothing at this moment.
    waits: bool,
    _permit: OwnedSemaphorePermit,
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
        if !self.waits {
            self.waits = true;
            self.stalled.as_mut().reset(Instant::now() + self.stall);
        }
        match self.stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
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
