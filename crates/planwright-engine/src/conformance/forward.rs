//! Whole ports passed on to another store, for stores that differ from it in one respect.

pub use crate::port::{
    AcquireError, Append, AppendError, BoxFuture, Changes, FeedOf, Lease, Mailbox, MailboxMessage,
    MessageId, OwnerId, Placed, Position, RequestClaim, StoreError, StoreHealth, StreamCounts,
    StreamIndex, StreamInfo, StreamStatus,
};
pub use planwright_core::id::{PlanId, RunId};
pub use planwright_core::journal::{Head, Record, StreamName};
pub use planwright_core::principal::Principal;
pub use planwright_core::status::CachedStatus;
pub use planwright_core::time::Timestamp;
pub use std::time::Duration;
pub use tokio::sync::watch::Receiver;

/// Implements ports of a store by passing every request on to its field `inner`:
/// `forward_ports!(CountingStore: Mailbox, Changes);`.
#[macro_export]
macro_rules! forward_ports {
    ($store:ty: $($port:ident),+) => {
        $($crate::forward_ports!(@$port $store);)+
    };
    (@StreamIndex $store:ty) => {
        const _: () = {
            use $crate::conformance::forward::*;
            impl StreamIndex for $store {
                fn plans(&self) -> BoxFuture<'_, Result<Vec<StreamInfo>, StoreError>> {
                    self.inner.plans()
                }

                fn plans_by_age<'a>(
                    &'a self,
                    after: Option<(Timestamp, &'a PlanId)>,
                    limit: usize,
                ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
                    self.inner.plans_by_age(after, limit)
                }

                fn runs<'a>(&'a self, plan: &'a PlanId) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
                    self.inner.runs(plan)
                }

                fn plans_in<'a>(
                    &'a self,
                    statuses: &'a [CachedStatus],
                    until: Option<Timestamp>,
                ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
                    self.inner.plans_in(statuses, until)
                }

                fn plans_with_runs(
                    &self,
                    status: CachedStatus,
                ) -> BoxFuture<'_, Result<Vec<StreamInfo>, StoreError>> {
                    self.inner.plans_with_runs(status)
                }

                fn runs_in<'a>(
                    &'a self,
                    statuses: &'a [CachedStatus],
                ) -> BoxFuture<'a, Result<Vec<StreamInfo>, StoreError>> {
                    self.inner.runs_in(statuses)
                }

                fn counts(&self) -> BoxFuture<'_, Result<StreamCounts, StoreError>> {
                    self.inner.counts()
                }

                fn correct_status<'a>(
                    &'a self,
                    stream: &'a StreamName,
                    status: StreamStatus,
                ) -> BoxFuture<'a, Result<(), StoreError>> {
                    self.inner.correct_status(stream, status)
                }

                fn brought_bytes<'a>(&'a self, by: &'a Principal) -> BoxFuture<'a, Result<u64, StoreError>> {
                    self.inner.brought_bytes(by)
                }

                fn info<'a>(
                    &'a self,
                    stream: &'a StreamName,
                ) -> BoxFuture<'a, Result<Option<StreamInfo>, StoreError>> {
                    self.inner.info(stream)
                }
            }
        };
    };
    (@Mailbox $store:ty) => {
        const _: () = {
            use $crate::conformance::forward::*;
            impl Mailbox for $store {
                fn send<'a>(
                    &'a self,
                    run: &'a RunId,
                    body: Vec<u8>,
                ) -> BoxFuture<'a, Result<MessageId, StoreError>> {
                    self.inner.send(run, body)
                }

                fn send_claimed<'a>(
                    &'a self,
                    run: &'a RunId,
                    body: Vec<u8>,
                    claim: RequestClaim,
                ) -> BoxFuture<'a, Result<MessageId, AppendError>> {
                    self.inner.send_claimed(run, body, claim)
                }

                fn mail(&self) -> BoxFuture<'_, Result<Vec<MailboxMessage>, StoreError>> {
                    self.inner.mail()
                }

                fn messages<'a>(
                    &'a self,
                    run: &'a RunId,
                ) -> BoxFuture<'a, Result<Vec<MailboxMessage>, StoreError>> {
                    self.inner.messages(run)
                }

                fn answer(
                    &self,
                    message: MessageId,
                ) -> BoxFuture<'_, Result<Option<Result<(), String>>, StoreError>> {
                    self.inner.answer(message)
                }
            }
        };
    };
    (@Changes $store:ty) => {
        const _: () = {
            use $crate::conformance::forward::*;
            impl Changes for $store {
                fn changes(&self) -> Receiver<u64> {
                    self.inner.changes()
                }

                fn mail_changes(&self) -> Receiver<u64> {
                    self.inner.mail_changes()
                }

                fn plan_changes(&self) -> Option<u64> {
                    self.inner.plan_changes()
                }
            }
        };
    };
    (@StoreHealth $store:ty) => {
        const _: () = {
            use $crate::conformance::forward::*;
            impl StoreHealth for $store {
                fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
                    self.inner.probe()
                }

                fn failure(&self) -> Receiver<Option<String>> {
                    self.inner.failure()
                }
            }
        };
    };
}

/// Implements methods of the ports `Journal` and `Leases` by passing them on to the field `inner`,
/// inside an `impl` that writes the others itself: `forward_methods!(feed, head);`.
#[macro_export]
macro_rules! forward_methods {
    ($($method:ident),+) => {
        $($crate::forward_methods!(@$method);)+
    };
    (@append) => {
        fn append(
            &self,
            appends: Vec<$crate::conformance::forward::Append>,
        ) -> $crate::conformance::forward::BoxFuture<
            '_,
            Result<(), $crate::conformance::forward::AppendError>,
        > {
            self.inner.append(appends)
        }
    };
    (@read) => {
        fn read<'a>(
            &'a self,
            stream: &'a $crate::conformance::forward::StreamName,
            after: u64,
            limit: usize,
        ) -> $crate::conformance::forward::BoxFuture<
            'a,
            Result<
                Vec<$crate::conformance::forward::Record>,
                $crate::conformance::forward::StoreError,
            >,
        > {
            self.inner.read(stream, after, limit)
        }
    };
    (@feed) => {
        fn feed<'a>(
            &'a self,
            of: &'a $crate::conformance::forward::FeedOf,
            after: $crate::conformance::forward::Position,
            limit: usize,
        ) -> $crate::conformance::forward::BoxFuture<
            'a,
            Result<
                Vec<$crate::conformance::forward::Placed>,
                $crate::conformance::forward::StoreError,
            >,
        > {
            self.inner.feed(of, after, limit)
        }
    };
    (@head) => {
        fn head<'a>(
            &'a self,
            stream: &'a $crate::conformance::forward::StreamName,
        ) -> $crate::conformance::forward::BoxFuture<
            'a,
            Result<$crate::conformance::forward::Head, $crate::conformance::forward::StoreError>,
        > {
            self.inner.head(stream)
        }
    };
    (@acquire) => {
        fn acquire<'a>(
            &'a self,
            run: &'a $crate::conformance::forward::RunId,
            owner: &'a $crate::conformance::forward::OwnerId,
            ttl: $crate::conformance::forward::Duration,
        ) -> $crate::conformance::forward::BoxFuture<
            'a,
            Result<$crate::conformance::forward::Lease, $crate::conformance::forward::AcquireError>,
        > {
            self.inner.acquire(run, owner, ttl)
        }
    };
    (@renew) => {
        fn renew<'a>(
            &'a self,
            lease: &'a $crate::conformance::forward::Lease,
            ttl: $crate::conformance::forward::Duration,
        ) -> $crate::conformance::forward::BoxFuture<
            'a,
            Result<$crate::conformance::forward::Lease, $crate::conformance::forward::AppendError>,
        > {
            self.inner.renew(lease, ttl)
        }
    };
    (@release) => {
        fn release<'a>(
            &'a self,
            lease: &'a $crate::conformance::forward::Lease,
        ) -> $crate::conformance::forward::BoxFuture<
            'a,
            Result<(), $crate::conformance::forward::StoreError>,
        > {
            self.inner.release(lease)
        }
    };
    (@living_owner) => {
        fn living_owner<'a>(
            &'a self,
            run: &'a $crate::conformance::forward::RunId,
        ) -> $crate::conformance::forward::BoxFuture<
            'a,
            Result<
                Option<$crate::conformance::forward::OwnerId>,
                $crate::conformance::forward::StoreError,
            >,
        > {
            self.inner.living_owner(run)
        }
    };
    (@is_dead) => {
        fn is_dead<'a>(
            &'a self,
            owner: &'a $crate::conformance::forward::OwnerId,
        ) -> $crate::conformance::forward::BoxFuture<
            'a,
            Result<bool, $crate::conformance::forward::StoreError>,
        > {
            self.inner.is_dead(owner)
        }
    };
    (@lease) => {
        fn lease<'a>(
            &'a self,
            run: &'a $crate::conformance::forward::RunId,
        ) -> $crate::conformance::forward::BoxFuture<
            'a,
            Result<
                Option<$crate::conformance::forward::Lease>,
                $crate::conformance::forward::StoreError,
            >,
        > {
            self.inner.lease(run)
        }
    };
}
