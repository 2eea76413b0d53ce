//! What operators see of the service: which request belongs to which trace, figures, and whether it
//! is well.
//!
//! Nothing here decides anything, and nothing here can fail a request.

mod counts;
mod figures;
mod health;
mod layer;
mod run_figures;

pub(crate) use figures::Counted;
pub use figures::{Figures, NoticeFigures};
pub use health::{Health, Readiness};
pub use layer::layer;
pub use planwright_core::trace::TraceId;
