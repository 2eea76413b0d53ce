//! What operators see of the service: which request belongs to which trace, figures, and whether it
//! is well.
//!
//! Nothing here decides anything, and nothing here can fail a request.

mod counts;
mod dispatch;
mod health;
mod layer;
mod prometheus;
mod run_metrics;

pub use health::{Health, Readiness};
pub use layer::layer;
pub(crate) use layer::told_place;
pub use planwright_core::trace::TraceId;
pub(crate) use prometheus::GaugeGuard;
pub use prometheus::{Metrics, WebhookMetrics};
