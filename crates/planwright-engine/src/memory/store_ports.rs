//! The six ports of the store, served from memory.

use super::store::{MemoryStore, Stream};
use crate::port::{
    AcquireError, Append, AppendError, BoxFuture, Changes, FeedOf, Journal, Lease, Leases, Mailbox,
    MailboxMessage, MessageId, OwnerId, Placed, Position, RequestClaim, StoreError, StoreHealth,
    StreamCounts, StreamIndex, StreamInfo, StreamStatus,
};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::principal::Principal;
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::watch;

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(value))
}

impl Journal for MemoryStore {
    fn append(&self, appends: Vec<Append>) -> BoxFuture<'_, Result<(), AppendError>> {
        let appended = self.check_writable().map_err(AppendError::from);
        ready(appended.and_then(|()| self.append_now(appends)))
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamName,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Record>, StoreError>> {
        ready(self.read_now(stream, after, limit))
    }

    fn feed<'a>(
        &'a self,
        of: &'a FeedOf,
        after: Position,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Placed>, StoreError>> {
        ready(Ok(self.feed_now(of, after, limit)))
    }

    fn head<'a>(&'a self, stream: &'a StreamName) -> BoxFuture<'a, Result<Head, StoreError>> {
        let state = self.state();
        let head = state.streams.get(stream).map_or(Head::EMPTY, Stream::head);
        ready(state.check_undamaged(stream).map(|()| head))
    }
}

impl StreamIndex for MemoryStore {
    fn plans(&self) -> BoxFuture<'_, Result<Vec<StreamInfo>, StoreError>> {
        ready(Ok(self.plans_now(|_| true)))
    }

    fn plans_by_age<'a>(
        &'a self,
        after: Option<(Timestamp, &'a PlanId)>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        let mut plans = self.plans_now(|info| {
            after.is_none_or(|(at, id)| {
                info.created_at < at
                    || info.created_at == at && info.status.plan.as_str() > id.as_str()
            })
        });
        plans.sort_by(|a, b| {
            let ids = || a.status.plan.as_str().cmp(b.status.plan.as_str());
            b.created_at.cmp(&a.created_at).then_with(ids)
        });
        plans.truncate(limit);
        ready(Ok(plans))
    }

    fn runs<'a>(&'a self, plan: &'a PlanId) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        ready(Ok(self.runs_now(|info| info.status.plan == *plan)))
    }

    fn plans_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
        until: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        let untouched = |info: &StreamInfo| until.is_none_or(|until| info.updated_at <= until);
        ready(Ok(self.plans_now(|info| {
            statuses.contains(&info.status.status) && untouched(info)
        })))
    }

    fn plans_with_runs(
        &self,
        status: CachedStatus,
    ) -> BoxFuture<'_, Result<Vec<StreamInfo>, StoreError>> {
        let runs = self.runs_now(|_| true);
        let begun: BTreeSet<&PlanId> = runs.iter().map(|run| &run.status.plan).collect();
        ready(Ok(self.plans_now(|info| {
            info.status.status == status && begun.contains(&info.status.plan)
        })))
    }

    fn brought_bytes<'a>(&'a self, by: &'a Principal) -> BoxFuture<'a, Result<u64, StoreError>> {
        ready(Ok(self.brought_now(by)))
    }

    fn runs_in<'a>(
        &'a self,
        statuses: &'a [CachedStatus],
    ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
        ready(Ok(
            self.runs_now(|info| statuses.contains(&info.status.status))
        ))
    }

    fn counts(&self) -> BoxFuture<'_, Result<StreamCounts, StoreError>> {
        ready(Ok(self.counts_now()))
    }

    fn correct_status<'a>(
        &'a self,
        stream: &'a StreamName,
        status: StreamStatus,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(self.correct_status_now(stream, status))
    }

    fn info<'a>(
        &'a self,
        stream: &'a StreamName,
    ) -> BoxFuture<'a, Result<Option<StreamInfo>, StoreError>> {
        ready(Ok(self.state().info(stream)))
    }
}

impl Leases for MemoryStore {
    fn acquire<'a>(
        &'a self,
        run: &'a RunId,
        owner: &'a OwnerId,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AcquireError>> {
        ready(self.acquire_now(run, owner, ttl))
    }

    fn renew<'a>(
        &'a self,
        lease: &'a Lease,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<Lease, AppendError>> {
        let renewed = self.check_writable().map_err(AppendError::from);
        ready(renewed.and_then(|()| self.renew_now(lease, ttl)))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>> {
        self.release_now(lease);
        ready(Ok(()))
    }

    fn living_owner<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<OwnerId>, StoreError>> {
        ready(Ok(self.state().living_owner(run)))
    }

    fn is_dead<'a>(&'a self, owner: &'a OwnerId) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.state().is_dead(owner)))
    }

    fn lease<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<Lease>, StoreError>> {
        let now = self.clock.now();
        ready(Ok(self.state().live_lease(run, now)))
    }
}

impl Mailbox for MemoryStore {
    fn send<'a>(
        &'a self,
        run: &'a RunId,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<MessageId, StoreError>> {
        ready(Ok(self.send_now(run, body)))
    }

    fn send_claimed<'a>(
        &'a self,
        run: &'a RunId,
        body: Vec<u8>,
        claim: RequestClaim,
    ) -> BoxFuture<'a, Result<MessageId, AppendError>> {
        ready(self.send_claimed_now(run, body, &claim))
    }

    fn mail(&self) -> BoxFuture<'_, Result<Vec<MailboxMessage>, StoreError>> {
        let state = self.state();
        let open = state
            .messages
            .iter()
            .filter(|(_, row)| row.answer.is_none());
        let open = open.map(|(id, row)| MailboxMessage {
            id: *id,
            run: row.run.clone(),
            body: row.body.clone(),
        });
        ready(Ok(open.collect()))
    }

    fn messages<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<MailboxMessage>, StoreError>> {
        let state = self.state();
        let open = state
            .messages
            .iter()
            .filter(|(_, row)| row.run == *run && row.answer.is_none());
        let open = open.map(|(id, row)| MailboxMessage {
            id: *id,
            run: run.clone(),
            body: row.body.clone(),
        });
        ready(Ok(open.collect()))
    }

    fn answer(
        &self,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Option<Result<(), String>>, StoreError>> {
        ready(Ok(self
            .state()
            .messages
            .get(&message)
            .and_then(|row| row.answer.clone())))
    }
}

impl Changes for MemoryStore {
    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn plan_changes(&self) -> Option<u64> {
        Some(self.state().plan_changes)
    }
}

impl StoreHealth for MemoryStore {
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(self.check_writable())
    }

    fn failure(&self) -> watch::Receiver<Option<String>> {
        self.failure.subscribe()
    }
}
