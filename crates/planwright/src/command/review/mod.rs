//! Commands with which people decide about plans and discuss them.

pub(crate) mod approve;
pub(crate) mod comment;
pub(crate) mod comments;
pub(crate) mod reject;
pub(crate) mod request_changes;
pub(crate) mod revoke;
