//! Answers in memory.

use crate::port::{
    ANSWER_LIFE, Answers, Asking, BoxFuture, Claim, MAX_ANSWERS, OwnerId, StoreError,
};
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps answers until it is dropped.
#[derive(Debug, Default)]
pub struct MemoryAnswers(Mutex<BTreeMap<Digest, Kept>>);

#[derive(Debug)]
struct Kept {
    principal: Digest,
    request: Digest,
    owner: OwnerId,
    at: Timestamp,
    answer: Option<Vec<u8>>,
}

impl MemoryAnswers {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Digest, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claim_now(&self, asking: &Asking, now: Timestamp) -> Claim {
        let mut all = self.all();
        all.retain(|_, kept| now.since(kept.at) < ANSWER_LIFE);
        if let Some(kept) = all.get(&asking.key) {
            return match &kept.answer {
                _ if kept.request != asking.request => Claim::OtherRequest,
                Some(answer) => Claim::Answered(answer.clone()),
                None if kept.owner == asking.owner => Claim::InFlight,
                None => Claim::Interrupted,
            };
        }
        if all
            .values()
            .filter(|kept| kept.principal == asking.principal)
            .count()
            >= MAX_ANSWERS
        {
            return Claim::TooMany;
        }
        let Asking {
            principal,
            key,
            request,
            owner,
        } = asking.clone();
        all.insert(
            key,
            Kept {
                principal,
                request,
                owner,
                at: now,
                answer: None,
            },
        );
        Claim::Fresh
    }
}

impl Answers for MemoryAnswers {
    fn claim<'a>(
        &'a self,
        asking: &'a Asking,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(ready(Ok(self.claim_now(asking, now))))
    }

    fn keep<'a>(
        &'a self,
        key: &'a Digest,
        answer: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        if let Some(kept) = self.all().get_mut(key) {
            kept.answer = Some(answer);
        }
        Box::pin(ready(Ok(())))
    }

    fn forget<'a>(&'a self, key: &'a Digest) -> BoxFuture<'a, Result<(), StoreError>> {
        self.all().remove(key);
        Box::pin(ready(Ok(())))
    }
}
