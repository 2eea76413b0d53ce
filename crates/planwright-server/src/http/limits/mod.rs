//! Limits on connections and requests: one client cannot take the service for itself.

mod connections;
mod open_connections;
mod requests;

pub(crate) use connections::{ConnectionLimits, Guard, note_request};
pub(crate) use requests::{Limits, limit_in_flight, limit_rate};
