//! Limits on connections and requests: one client cannot take the service for itself.

mod answer_bytes;
mod connections;
mod crowd;
mod open_connections;
mod rates;
mod requests;
mod strangers;

pub(crate) use answer_bytes::Held;
pub(crate) use connections::{ConnectionLimits, Guard, note_request, refuse_on_reserve};
pub(crate) use open_connections::OnConnection;
pub(crate) use requests::{Limits, limit_in_flight, limit_rate};
pub(crate) use strangers::Strangers;
