//! Telling the outside what happened.

use super::Notice;
use crate::port::BoxFuture;
use std::fmt;
use std::time::Duration;

/// Why a notice did not arrive. The texts hold no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendNoticeError {
    /// The endpoint wants nothing any more.
    #[error("the endpoint answered that it is gone")]
    Gone,
    /// The endpoint, or what stands before it, is too busy.
    #[error("{reason}")]
    Throttled {
        /// The failure, in words.
        reason: String,
        /// Pause that the endpoint asks for.
        retry_after: Option<Duration>,
    },
    /// The notice did not reach the endpoint, or the endpoint could not take it.
    #[error("{reason}")]
    Failed {
        /// The failure, in words.
        reason: String,
        /// Pause that the endpoint asks for.
        retry_after: Option<Duration>,
    },
}

/// One endpoint that wants to be told.
pub trait Webhook: Send + Sync + fmt::Debug {
    /// By this name its place in the feed is kept.
    fn name(&self) -> &str;

    /// Returns whether it wants to be told of this kind of thing, such as `run.ended`.
    fn wants(&self, kind: &str) -> bool;

    /// Sends once. It ends within a bounded time.
    fn send<'a>(&'a self, notice: &'a Notice) -> BoxFuture<'a, Result<(), SendNoticeError>>;
}
