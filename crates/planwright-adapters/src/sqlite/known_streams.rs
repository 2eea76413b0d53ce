//! What the writer remembers of the streams that it wrote last, so that a run that goes on is not
//! looked up again for every append.
//!
//! It holds only while no other connection has written and nothing but appends and renewals came in
//! between; the writer forgets it otherwise. An append that does not fit what is remembered is
//! judged by what the file says.

use planwright_core::journal::Head;
use planwright_engine::port::{Append, LeaseRule};
use std::collections::HashMap;

/// With more streams than this, all are forgotten: each costs one look at the file.
const MAX_STREAMS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct KnownStreams(HashMap<String, Known>);

#[derive(Debug)]
struct Known {
    id: i64,
    /// As the entries have it, not masked.
    head: Head,
    /// The epoch of the lease under which it was written last. `None` if it was given back, or not
    /// asked for.
    held: Option<u64>,
}

impl KnownStreams {
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// The number of a stream that is known to be as this append expects it.
    pub(super) fn find(&self, append: &Append, name: &str) -> Option<i64> {
        let known = self.0.get(name)?;
        let is_held = match append.lease {
            LeaseRule::Held { epoch } | LeaseRule::Release { epoch } => known.held == Some(epoch),
            LeaseRule::None => true,
            LeaseRule::Open { .. } => false,
        };
        (is_held && known.head == append.expected).then_some(known.id)
    }

    /// Notes an append that is part of the transaction at hand.
    pub(super) fn note(&mut self, append: &Append, name: &str, id: i64) {
        let before = self.0.remove(name);
        if self.0.len() >= MAX_STREAMS {
            self.forget();
        }
        let known = Known {
            id,
            head: append
                .records
                .last()
                .map_or(append.expected, |last| last.head()),
            held: match append.lease {
                LeaseRule::Held { epoch } => Some(epoch),
                LeaseRule::None => before.and_then(|known| known.held),
                LeaseRule::Open { .. } | LeaseRule::Release { .. } => None,
            },
        };
        self.0.insert(name.to_owned(), known);
    }
}
