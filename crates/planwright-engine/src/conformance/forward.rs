//! Whole ports passed on to another store, for stores that differ from it in one respect.

pub use crate::port::{
    AppendError, BoxFuture, Changes, Mailbox, MailboxMessage, MessageId, RequestClaim, StoreError,
    StoreHealth, StreamCounts, StreamIndex, StreamInfo, StreamStatus,
};
pub use planwright_core::id::{PlanId, RunId};
pub use planwright_core::journal::StreamName;
pub use planwright_core::status::CachedStatus;
pub use planwright_core::time::Timestamp;
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
