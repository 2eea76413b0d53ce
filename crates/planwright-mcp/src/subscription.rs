//! Clients that want to hear when a plan or a run changed.

use crate::server::Host;
use planwright_core::journal::StreamName;
use planwright_engine::port::{FeedOf, Position};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// The most subscriptions of all clients.
const MAX_SUBSCRIPTIONS: usize = 256;
/// Records read at once.
const PAGE: usize = 64;

/// A resource whose changes are looked for.
#[derive(Debug)]
pub(crate) struct WatchedResource {
    pub(crate) uri: String,
    /// The journal that counts. Every one of the plan when absent: a plan stands where its runs do.
    stream: Option<StreamName>,
    of: FeedOf,
    after: Position,
}

/// Subscriptions of clients of the earlier era, by session and address.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<BTreeMap<(String, String), CancellationToken>>);

impl Subscriptions {
    /// Notes a subscription, in place of an earlier one to the same address. Nothing if there are too
    /// many.
    pub(crate) fn insert(&self, session: String, uri: String) -> Option<CancellationToken> {
        let mut open = self.open();
        open.retain(|_, cancelled| !cancelled.is_cancelled());
        let key = (session, uri);
        if open.len() >= MAX_SUBSCRIPTIONS && !open.contains_key(&key) {
            return None;
        }
        let cancelled = CancellationToken::new();
        if let Some(earlier) = open.insert(key, cancelled.clone()) {
            earlier.cancel();
        }
        Some(cancelled)
    }

    pub(crate) fn remove(&self, session: String, uri: String) {
        if let Some(cancelled) = self.open().remove(&(session, uri)) {
            cancelled.cancel();
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<(String, String), CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The journal that a resource is read from. Nothing if the address is none of ours.
pub(crate) fn stream_of(uri: &str) -> Option<StreamName> {
    if let Some(id) = uri.strip_prefix("plan://") {
        return id.parse().ok().map(StreamName::Plan);
    }
    let id = uri.strip_prefix("run://")?;
    id.parse().ok().map(StreamName::Run)
}

impl Host {
    /// Looks for changes of a resource from now on. Nothing if there is none with this address.
    pub(crate) async fn watch_resource(&self, uri: &str) -> Option<WatchedResource> {
        let journals = self.engine.journals();
        let stream = stream_of(uri)?;
        journals.info(&stream).await.ok()??;
        let (plan, stream) = match stream {
            StreamName::Plan(plan) => (plan, None),
            StreamName::Run(ref run) => (journals.plan_of_run(run).await.ok()?, Some(stream)),
        };
        Some(WatchedResource {
            uri: uri.to_owned(),
            stream,
            of: FeedOf::Plan(plan),
            after: journals.end_of_feed().await.ok()?,
        })
    }

    /// Returns whether a resource changed since this was last asked.
    async fn has_changed(&self, watched: &mut WatchedResource) -> bool {
        let mut changed = false;
        // A store that cannot be read is asked again when it changes.
        while let Ok(page) = self
            .engine
            .journals()
            .feed(&watched.of, watched.after, PAGE)
            .await
        {
            let Some(last) = page.last() else {
                break;
            };
            watched.after = last.position;
            let counts =
                |stream: &StreamName| watched.stream.as_ref().is_none_or(|one| one == stream);
            changed |= page.iter().any(|placed| counts(&placed.stream));
        }
        changed
    }

    /// Tells of every change of these resources until `tell` says that nothing hears it any more.
    pub(crate) async fn tell_changes<F: Future<Output = bool>>(
        &self,
        mut watched: Vec<WatchedResource>,
        tell: impl Fn(String) -> F,
    ) {
        let mut changes = self.engine.journals().changes();
        loop {
            changes.borrow_and_update();
            for resource in &mut watched {
                if self.has_changed(resource).await && !tell(resource.uri.clone()).await {
                    return;
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}
