//! Tickets: a browser's `EventSource` sends no headers, so it brings a ticket that is good once,
//! for one path, soon.

use crate::http::auth::Caller;
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a ticket can be used.
const LIFE: Duration = Duration::from_secs(30);

/// More tickets than are ever needed within their life.
const MAX: usize = 10_000;

/// Tickets that were given out and not used, as hashes.
#[derive(Default)]
pub struct Tickets(Mutex<BTreeMap<Digest, Ticket>>);

struct Ticket {
    caller: Caller,
    path: String,
    expires_at: Timestamp,
}

/// Nothing of it is for a log.
impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets")
    }
}

impl Tickets {
    /// Makes `ticket` good for one request of `caller` to `path`. Returns until when, or nothing if
    /// there are too many.
    pub(crate) fn give(
        &self,
        ticket: &str,
        caller: Caller,
        path: String,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|_, ticket| now < ticket.expires_at);
        if given.len() >= MAX {
            return None;
        }
        let expires_at = now.plus(LIFE);
        given.insert(
            Digest::of_bytes(ticket.as_bytes()),
            Ticket {
                caller,
                path,
                expires_at,
            },
        );
        Some(expires_at)
    }

    /// Whose ticket this is, if it is good here and now. It is spent in any case.
    pub(crate) fn spend(&self, ticket: &str, path: &str, now: Timestamp) -> Option<Caller> {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = given.remove(&Digest::of_bytes(ticket.as_bytes()))?;
        (now < ticket.expires_at && ticket.path == path).then_some(ticket.caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_core::policy::Role;
    use planwright_core::principal::{Assurance, Principal};

    #[test]
    fn a_ticket_is_good_once_for_one_path_and_not_for_long() {
        let tickets = Tickets::default();
        let now = Timestamp::from_millis(0);
        let caller = || Caller {
            principal: Principal::person("ada"),
            role: Role::Viewer,
            assurance: Assurance::Token,
            credential: Digest::of_bytes(b"token"),
        };
        let give = |ticket: &str| {
            tickets
                .give(ticket, caller(), "/plan/a/events".to_owned(), now)
                .unwrap()
        };
        let expires_at = give("a");
        assert_eq!(tickets.spend("a", "/plan/a/events", now), Some(caller()));
        assert_eq!(tickets.spend("a", "/plan/a/events", now), None);
        give("b");
        assert_eq!(tickets.spend("b", "/plan/b/events", now), None);
        assert_eq!(tickets.spend("b", "/plan/a/events", now), None);
        give("c");
        assert_eq!(tickets.spend("c", "/plan/a/events", expires_at), None);
    }
}
