//! Wake-ups, so that nothing polls.

use std::fmt;
use tokio::sync::watch;

/// Wakes those who wait for something in the store to change.
pub trait Changes: Send + Sync + fmt::Debug {
    /// Changes its value whenever anything in the store may have changed, also by another process.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Changes its value whenever a message may have arrived, also from another process. Cheaper to
    /// wait for than [`Changes::changes`] for a process that commits a lot itself.
    fn mail_changes(&self) -> watch::Receiver<u64> {
        self.changes()
    }

    /// A number that is another one whenever the journal of a plan may have been written since it was
    /// last asked for, by this process or another one. What was acknowledged before is counted, and asking
    /// costs much less than a query. `None` where that cannot be told, now or ever.
    fn plan_changes(&self) -> Option<u64> {
        None
    }
}
