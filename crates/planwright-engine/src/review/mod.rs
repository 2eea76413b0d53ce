//! The life of a plan: proposing, editing, discussing, approving, and finding what waits for people.

pub(crate) mod append;
pub(crate) mod briefing;
pub(crate) mod comments;
pub(crate) mod create;
pub(crate) mod edits;
mod error_kind;
pub(crate) mod given_approval;
pub(crate) mod inbox;
pub(crate) mod missing_executor;
pub(crate) mod pins;
pub(crate) mod plans;
pub(crate) mod policy_approval;
pub(crate) mod revocation;
pub(crate) mod stored_context;
pub(crate) mod trial;
pub(crate) mod waits;
