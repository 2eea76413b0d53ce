//! The mailbox: commands that one process leaves for the owner of a run in another.

use super::{AppendError, StoreError};
use crate::port::{BoxFuture, RequestClaim};
use planwright_core::id::RunId;
use std::fmt;

/// A command for the owner of a run, left by another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailboxMessage {
    /// Names the message in its answer.
    pub id: MessageId,
    /// The run that is commanded.
    pub run: RunId,
    /// The encoded command.
    pub body: Vec<u8>,
}

/// Names a message; ids grow in the order of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub i64);

/// Carries commands to the owners of runs, and their answers back.
pub trait Mailbox: Send + Sync + fmt::Debug {
    /// Leaves a command for a run's owner.
    fn send<'a>(
        &'a self,
        run: &'a RunId,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<MessageId, StoreError>>;

    /// As [`Mailbox::send`], for a request: the message and the note that the request changed this
    /// run are one commit. Refused unless the request is claimed by the sender.
    fn send_claimed<'a>(
        &'a self,
        run: &'a RunId,
        body: Vec<u8>,
        claim: RequestClaim,
    ) -> BoxFuture<'a, Result<MessageId, AppendError>>;

    /// The unanswered messages of all runs, in order.
    fn mail(&self) -> BoxFuture<'_, Result<Vec<MailboxMessage>, StoreError>>;

    /// The unanswered messages of a run, in order.
    fn messages<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<MailboxMessage>, StoreError>>;

    /// The answer to a message, once there is one.
    fn answer(
        &self,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Option<Result<(), String>>, StoreError>>;
}
