//! Commands that show and check what happened.

mod heads;
pub(crate) mod log;
pub(crate) mod receipt;
pub(crate) mod replay;
pub(crate) mod stats;
pub(crate) mod verify;
pub(crate) mod watch;
