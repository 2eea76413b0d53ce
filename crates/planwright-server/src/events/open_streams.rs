//! The streams that are open, and how many may be.

use super::options::EventsOptions;
use crate::http::Caller;
use crate::observe::GaugeGuard;
use planwright_core::digest::Digest;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Counts the open streams, and closes those whose token is no longer valid.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams {
    open: Mutex<Open>,
    /// Notified when a stream is opened.
    pub(crate) opened_one: Notify,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    global: usize,
    each: BTreeMap<String, usize>,
    global_each: BTreeMap<String, usize>,
    credentials: BTreeMap<Digest, Opened>,
}

/// What was opened with one token.
#[derive(Debug, Default)]
struct Opened {
    streams: usize,
    revoked: CancellationToken,
}

/// One open stream. Dropping it makes room.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    open_streams: Arc<OpenStreams>,
    who: String,
    credential: Digest,
    global: bool,
    /// Cancelled when the token is no longer good.
    pub(crate) revoked: CancellationToken,
    _counted: GaugeGuard,
}

impl OpenStreams {
    /// Takes a permit for one more stream, if there is room.
    pub(super) fn enter(
        self: &Arc<Self>,
        caller: &Caller,
        global: bool,
        options: &EventsOptions,
    ) -> Option<StreamPermit> {
        let who = format!(
            "{} {}",
            caller.principal.kind.as_str(),
            caller.principal.name
        );
        let mut open = self.open();
        let own = open.each.get(&who).copied().unwrap_or_default();
        let own_global = open.global_each.get(&who).copied().unwrap_or_default();
        let full = open.all >= options.max_streams
            || own >= options.max_streams_each
            || (global && open.global >= options.max_global_streams)
            || (global && own_global >= options.max_global_streams_each);
        if full {
            return None;
        }
        open.all += 1;
        open.global += usize::from(global);
        *open.each.entry(who.clone()).or_default() += 1;
        if global {
            *open.global_each.entry(who.clone()).or_default() += 1;
        }
        let opened = open.credentials.entry(caller.credential).or_default();
        opened.streams += 1;
        let revoked = opened.revoked.clone();
        drop(open);
        self.opened_one.notify_one();
        Some(StreamPermit {
            open_streams: Arc::clone(self),
            who,
            credential: caller.credential,
            global,
            revoked,
            _counted: GaugeGuard::stream(),
        })
    }

    /// Lists the tokens and sessions that streams were opened with, by hash.
    pub(crate) fn credentials(&self) -> Vec<Digest> {
        self.open().credentials.keys().copied().collect()
    }

    /// Closes the streams that were opened with this token.
    pub(crate) fn close_streams(&self, credential: &Digest) {
        if let Some(opened) = self.open().credentials.get(credential) {
            opened.revoked.cancel();
        }
    }

    /// Counts the open streams.
    pub(super) fn count(&self) -> usize {
        self.open().all
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.open_streams.open();
        open.all -= 1;
        open.global -= usize::from(self.global);
        count_down(&mut open.each, &self.who);
        if self.global {
            count_down(&mut open.global_each, &self.who);
        }
        if let Some(opened) = open.credentials.get_mut(&self.credential) {
            opened.streams -= 1;
            if opened.streams == 0 {
                open.credentials.remove(&self.credential);
            }
        }
    }
}

fn count_down(counts: &mut BTreeMap<String, usize>, who: &str) {
    if let Some(own) = counts.get_mut(who) {
        *own -= 1;
        if *own == 0 {
            counts.remove(who);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_core::policy::Role;
    use planwright_core::principal::{Assurance, Principal};

    fn caller(name: &str) -> Caller {
        let credential = Digest::of_bytes(name.as_bytes());
        let principal = Principal::person(name);
        Caller {
            principal,
            role: Role::Viewer,
            assurance: Assurance::Token,
            credential,
        }
    }

    #[test]
    fn a_place_is_free_again_once_its_stream_is_closed() {
        let open_streams = Arc::new(OpenStreams::default());
        let options = EventsOptions {
            max_streams: 3,
            max_streams_each: 2,
            max_global_streams: 1,
            ..Default::default()
        };
        let ada = caller("ada");
        let eve = caller("eve");
        let enter = |who: &Caller, global| open_streams.enter(who, global, &options);
        let first = enter(&ada, true);
        assert!(first.is_some());
        assert!(enter(&ada, true).is_none(), "one global stream");
        let second = enter(&ada, false);
        assert!(enter(&ada, false).is_none(), "two for each");
        let third = enter(&eve, false);
        assert!(enter(&eve, false).is_none(), "three for all");
        assert_eq!(
            (open_streams.count(), open_streams.credentials().len()),
            (3, 2)
        );
        drop((first, second, third));
        assert_eq!(
            (open_streams.count(), open_streams.credentials().len()),
            (0, 0)
        );
        assert!(enter(&ada, true).is_some());
    }

    #[test]
    fn one_principal_does_not_take_every_stream_of_everything() {
        let open_streams = Arc::new(OpenStreams::default());
        let options = EventsOptions {
            max_global_streams: 3,
            max_global_streams_each: 2,
            ..Default::default()
        };
        let enter = |who: &str| open_streams.enter(&caller(who), true, &options);
        let first = enter("ada");
        let _second = enter("ada");
        assert!(enter("ada").is_none());
        assert!(enter("eve").is_some());
        drop(first);
        assert!(enter("ada").is_some());
    }

    #[test]
    fn a_revoked_token_loses_every_stream_and_no_other_does() {
        let open_streams = Arc::new(OpenStreams::default());
        let options = EventsOptions::default();
        let enter = |who: &str| open_streams.enter(&caller(who), false, &options).unwrap();
        let first = enter("ada");
        let second = enter("ada");
        let other = enter("eve");
        open_streams.close_streams(&caller("ada").credential);
        assert!(first.revoked.is_cancelled() && second.revoked.is_cancelled());
        assert!(!other.revoked.is_cancelled());
    }
}
