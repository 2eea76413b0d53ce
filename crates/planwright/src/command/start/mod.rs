//! Commands that a person begins with, and comes back to.

pub(crate) mod explain;
mod found;
pub(crate) mod inbox;
pub(crate) mod init;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod version;
