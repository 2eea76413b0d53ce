//! The rate of requests that a principal may make, over all services of one store.

use super::{BoxFuture, OwnerId, StoreError};
use planwright_core::digest::Digest;
use std::fmt;

/// The demand of a service on the bucket of a principal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WantedRequests {
    /// Of the principal.
    pub principal: Digest,
    /// Requests that come into the bucket in a second.
    pub per_second: f64,
    /// Requests that the bucket holds; a new one is full.
    pub capacity: u32,
    /// The most that the service takes out of it.
    pub wanted: u32,
}

/// One bucket per principal for all services. A service takes requests out of it before they come, many at a time, so
/// that no request waits for it.
pub trait RequestRates: Send + Sync + fmt::Debug {
    /// Takes requests out of a bucket, and returns how many.
    fn take_requests(&self, wanted: WantedRequests) -> BoxFuture<'_, Result<u32, StoreError>>;

    /// Says that a service is there, and returns how many there are. It has to be said every few seconds.
    fn note_service<'a>(&'a self, service: &'a OwnerId) -> BoxFuture<'a, Result<u32, StoreError>>;

    /// Says that a service is gone.
    fn remove_service<'a>(&'a self, service: &'a OwnerId) -> BoxFuture<'a, Result<(), StoreError>>;
}
