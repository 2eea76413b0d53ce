//! One connection that all share: made when it is needed, and made anew when it broke.

use super::backoff::Backoff;
use planwright_engine::port::BrokerError;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A connection to a broker.
pub(super) trait BrokerLink {
    /// Returns whether it can be used, as far as is known here.
    fn is_open(&self) -> bool;
}

/// The connection, or why there is none.
#[derive(Debug)]
pub(super) struct KeptLink<L>(Mutex<State<L>>);

#[derive(Debug)]
struct State<L> {
    link: Option<Arc<L>>,
    backoff: Backoff,
    /// No attempt to connect before this time, and why the last one failed.
    failed: Option<(Instant, BrokerError)>,
}

impl<L> Default for KeptLink<L> {
    fn default() -> Self {
        Self(Mutex::new(State {
            link: None,
            backoff: Backoff::default(),
            failed: None,
        }))
    }
}

impl<L: BrokerLink> KeptLink<L> {
    /// Returns the connection, and opens it if there is none. While the server is away, those who
    /// ask get the last reason until the next attempt is due.
    pub(super) async fn get(
        &self,
        open: impl AsyncFnOnce() -> Result<L, BrokerError>,
    ) -> Result<Arc<L>, BrokerError> {
        let mut state = self.0.lock().await;
        drop(state.link.take_if(|link| !link.is_open()));
        if let Some(link) = &state.link {
            return Ok(Arc::clone(link));
        }
        if let Some((not_before, error)) = &state.failed
            && Instant::now() < *not_before
        {
            return Err(error.clone());
        }
        match open().await {
            Ok(link) => {
                let link = Arc::new(link);
                state.backoff.reset();
                state.failed = None;
                state.link = Some(Arc::clone(&link));
                Ok(link)
            }
            Err(error) => {
                let not_before = Instant::now() + state.backoff.next_pause();
                state.failed = Some((not_before, error.clone()));
                Err(error)
            }
        }
    }

    /// Gives a connection up, unless it has been replaced already.
    pub(super) async fn give_up(&self, link: &Arc<L>) {
        let mut state = self.0.lock().await;
        drop(state.link.take_if(|kept| Arc::ptr_eq(kept, link)));
    }
}
