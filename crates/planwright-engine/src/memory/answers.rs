//! Requests and their answers, beside the journals they change.

use super::store::{MemoryStore, State};
use crate::port::{
    ANSWER_LIFE, Answers, AppendError, Asking, BoxFuture, Claim, OwnerId, RequestClaim, StoreError,
    says_more,
};
use planwright_core::digest::Digest;
use planwright_core::journal::StreamName;
use planwright_core::time::Timestamp;
use std::future::ready;

/// A request that was claimed.
#[derive(Debug)]
pub(super) struct RequestRow {
    principal: Digest,
    request: Digest,
    owner: OwnerId,
    at: Timestamp,
    changed: Option<StreamName>,
    answer: Option<Vec<u8>>,
}

impl State {
    /// Refuses a commit for a request that its maker has not claimed.
    pub(super) fn check_claimed(&self, claim: &RequestClaim) -> Result<(), AppendError> {
        let row = self.requests.get(&claim.key);
        let held = row.is_some_and(|row| row.owner == claim.owner && row.answer.is_none());
        if held {
            Ok(())
        } else {
            Err(AppendError::Unclaimed)
        }
    }

    /// Notes that a request, which was checked, changed this stream.
    pub(super) fn note_change(&mut self, claim: &RequestClaim, stream: &StreamName) {
        if let Some(row) = self.requests.get_mut(&claim.key)
            && says_more(row.changed.as_ref(), stream)
        {
            row.changed = Some(stream.clone());
        }
    }

    fn claim(&mut self, asking: &Asking, now: Timestamp) -> Claim {
        self.requests
            .retain(|_, row| now.since(row.at) < ANSWER_LIFE);
        if let Some(row) = self.requests.get(&asking.key) {
            let free = row.owner == asking.owner || self.is_dead(&row.owner);
            let known = match (&row.answer, &row.changed) {
                _ if row.request != asking.request => Claim::OtherRequest,
                (Some(answer), _) => Claim::Answered(answer.clone()),
                (None, _) if !free => Claim::InFlight,
                (None, Some(stream)) => Claim::Changed(stream.clone()),
                (None, None) => Claim::Fresh,
            };
            if known != Claim::Fresh {
                return known;
            }
        } else {
            let rows = self.requests.values();
            let kept = rows.filter(|row| row.principal == asking.principal);
            if kept.count() >= asking.limit {
                return Claim::TooMany;
            }
        }
        let Asking {
            principal,
            key,
            request,
            owner,
            limit: _,
        } = asking.clone();
        self.requests.insert(
            key,
            RequestRow {
                principal,
                request,
                owner,
                at: now,
                changed: None,
                answer: None,
            },
        );
        Claim::Fresh
    }

    fn release_claim(&mut self, claim: &RequestClaim) -> bool {
        let Some(row) = self.requests.get(&claim.key) else {
            return true;
        };
        if row.owner != claim.owner || row.changed.is_some() || row.answer.is_some() {
            return false;
        }
        self.requests.remove(&claim.key);
        true
    }
}

impl Answers for MemoryStore {
    fn claim<'a>(
        &'a self,
        asking: &'a Asking,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        let writable = self.check_writable();
        Box::pin(ready(writable.map(|()| self.state().claim(asking, now))))
    }

    fn keep<'a>(
        &'a self,
        claim: &'a RequestClaim,
        answer: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let writable = self.check_writable();
        if writable.is_ok()
            && let Some(row) = self.state().requests.get_mut(&claim.key)
            && row.owner == claim.owner
        {
            row.answer = Some(answer);
        }
        Box::pin(ready(writable))
    }

    fn release<'a>(&'a self, claim: &'a RequestClaim) -> BoxFuture<'a, Result<bool, StoreError>> {
        let writable = self.check_writable();
        Box::pin(ready(writable.map(|()| self.state().release_claim(claim))))
    }
}

#[cfg(test)]
mod laws {
    use super::*;
    use crate::conformance::answer::Subject;
    use std::sync::Arc;

    fn make() -> (Subject, ()) {
        let store = Arc::new(MemoryStore::new());
        let kept = Arc::clone(&store);
        let subject = Subject {
            store: Arc::<MemoryStore>::clone(&store),
            answers: store,
            reopen: Box::new(move |dead| {
                kept.kill_owner(dead);
                (Arc::<MemoryStore>::clone(&kept), kept)
            }),
        };
        (subject, ())
    }

    crate::answer_laws!(make);
}
