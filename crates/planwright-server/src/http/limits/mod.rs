//! Limits on connections and requests: one client cannot take the service for itself.

mod connections;
mod requests;

pub(crate) use connections::Guard;
pub(crate) use requests::{Limits, limit_in_flight, limit_rate};
