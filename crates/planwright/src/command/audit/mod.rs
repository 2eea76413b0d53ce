//! Commands that show and check what happened.

pub(crate) mod log;
pub(crate) mod replay;
pub(crate) mod stats;
pub(crate) mod verify;
pub(crate) mod watch;
