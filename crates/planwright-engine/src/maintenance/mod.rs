//! The effects of time on plans and runs: nothing happens by itself, so a process has to look and
//! write it down.
//!
//! The process that looks (a service on a timer, a command that lists plans) notes what is due.
//! Looking twice, or in two processes at once, notes it once: every entry is decided by the core
//! from the journal, and appended under the head it was decided from.

mod due_plans;
mod facade;
mod report;
mod retention;
mod runs;
mod status_backfill;
mod store_check;

pub use facade::Maintenance;
pub use report::{MaintenanceNotice, MaintenanceReport};
pub use retention::{RetentionPass, RetentionReport};
pub use store_check::CheckStoreError;
