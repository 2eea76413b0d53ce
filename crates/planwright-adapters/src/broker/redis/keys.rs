//! Names of streams and of what is in their entries. The braces keep the keys of a capability on one server of a cluster.

/// The one group of consumers: all workers.
pub(super) const GROUP: &str = "planwright";
/// Notices that were returned belong to a consumer that does not exist, until a worker claims them.
pub(super) const RESTING: &str = "returned";
/// The field with the notice.
pub(super) const NOTICE: &str = "notice";
/// The field of a dead notice with the number of its deliveries.
pub(super) const DELIVERIES: &str = "deliveries";

pub(super) fn steps_key(capability: &str) -> String {
    format!("planwright:steps:{{{capability}}}")
}

pub(super) fn dead_key(capability: &str) -> String {
    format!("planwright:dead:{{{capability}}}")
}

/// Counts the notices that were delivered again.
pub(super) fn redelivered_key(capability: &str) -> String {
    format!("planwright:redelivered:{{{capability}}}")
}
