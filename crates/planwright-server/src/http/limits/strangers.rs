//! Work for strangers: what is done before a valid token was shown, or without any.
//!
//! It has a small share of its own, in which no known caller waits.

use super::crowd::Crowd;
use crate::http::problem::{Problem, ProblemCode};
use planwright_core::digest::Digest;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Bodies of strangers that are waited for at once, and of one address (a quarter of what this machine
/// may have).
const MAX_BODIES: usize = 64;
const MAX_BODIES_PER_ADDRESS: usize = 8;

/// Texts that may be tokens and are looked up at once.
const MAX_LOOKUPS: usize = 4;

/// The time such a text waits for its turn.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(1);

/// Tokens that are remembered as valid ones.
const MAX_REMEMBERED: usize = 10_000;

/// The share of strangers.
#[derive(Debug)]
pub(crate) struct Strangers {
    bodies: Mutex<Crowd<Arc<Notify>>>,
    lookups: Semaphore,
    /// Lookups for decisions of people, which do not queue behind anything else.
    decisions: Semaphore,
    recognised: Mutex<HashSet<Digest>>,
}

impl Default for Strangers {
    fn default() -> Self {
        Self {
            bodies: Mutex::new(Crowd::new(MAX_BODIES, MAX_BODIES_PER_ADDRESS)),
            lookups: Semaphore::new(MAX_LOOKUPS),
            decisions: Semaphore::new(MAX_LOOKUPS),
            recognised: Mutex::default(),
        }
    }
}

impl Strangers {
    /// Waits for the body of a stranger's request. One that has been waited for longest is given up
    /// for a new one.
    pub(crate) async fn wait_for_body<T>(
        &self,
        address: Option<IpAddr>,
        reading: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let gives_way = Arc::new(Notify::new());
        let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let (place, left) = lock(&self.bodies).enter(address, Arc::clone(&gives_way), |_| true);
        if let Some(left) = left {
            left.notify_one();
        }
        let _waiting = Waiting {
            strangers: self,
            place,
        };
        tokio::select! {
            biased;
            read = reading => read,
            () = gives_way.notified() => {
                let words = "the body came too slowly, and too many others wait";
                Err(Problem::later(ProblemCode::TooBusy, words, 1))
            }
        }
    }

    /// Waits for the turn of a token that is looked up. One that was valid before has no turn to wait
    /// for, whether it still is or not.
    pub(crate) async fn wait_for_lookup(
        &self,
        token: &Digest,
        decides: bool,
    ) -> Result<Option<SemaphorePermit<'_>>, Problem> {
        if lock(&self.recognised).contains(token) {
            return Ok(None);
        }
        let turns = if decides {
            &self.decisions
        } else {
            &self.lookups
        };
        match timeout(LOOKUP_PATIENCE, turns.acquire()).await {
            Ok(Ok(permit)) => Ok(Some(permit)),
            Ok(Err(_)) | Err(_) => {
                let words = "too many tokens that are not known are being looked up";
                Err(Problem::later(ProblemCode::TooBusy, words, 1))
            }
        }
    }

    /// Remembers whether a token was valid when it was looked up.
    pub(crate) fn remember(&self, token: Digest, valid: bool) {
        let mut recognised = lock(&self.recognised);
        if !valid {
            recognised.remove(&token);
        } else if recognised.len() < MAX_REMEMBERED {
            recognised.insert(token);
        }
    }
}

/// A body that is waited for.
struct Waiting<'a> {
    strangers: &'a Strangers,
    place: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.strangers.bodies).leave(self.place);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is kept here is whole after every statement that changes it.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    #[tokio::test]
    async fn slow_bodies_give_way_and_a_quick_one_is_read_at_once() {
        let strangers = Arc::new(Strangers::default());
        let here = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let slow: Vec<_> = (0..200)
            .map(|_| {
                let strangers = Arc::clone(&strangers);
                tokio::spawn(async move { strangers.wait_for_body::<()>(here, pending()).await })
            })
            .collect();
        tokio::task::yield_now().await;
        let quick = strangers.wait_for_body(here, ready(Ok(1))).await;
        assert_eq!(quick.unwrap(), 1);
        let mut slow = slow.into_iter();
        let first = slow.next().unwrap().await.unwrap();
        assert_eq!(first.unwrap_err().status, 503);
        assert!(!slow.next_back().unwrap().is_finished());
    }

    #[tokio::test]
    async fn a_token_that_was_valid_waits_behind_no_stranger() {
        let strangers = Strangers::default();
        let (known, unknown) = (Digest::of_bytes(b"known"), Digest::of_bytes(b"unknown"));
        strangers.remember(known, true);
        let take = || strangers.wait_for_lookup(&unknown, false);
        let _taken = futures::future::join_all((0..MAX_LOOKUPS).map(|_| take())).await;
        assert!(
            strangers
                .wait_for_lookup(&known, false)
                .await
                .unwrap()
                .is_none()
        );
        assert!(strangers.wait_for_lookup(&unknown, true).await.is_ok());
        let waits = strangers.wait_for_lookup(&unknown, false);
        assert!(futures::FutureExt::now_or_never(waits).is_none());
        strangers.remember(known, false);
        let forgotten = strangers.wait_for_lookup(&known, false);
        assert!(futures::FutureExt::now_or_never(forgotten).is_none());
    }
}
