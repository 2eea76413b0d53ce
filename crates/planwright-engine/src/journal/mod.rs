//! Journals: writing them, reading them back, and what is counted over them.

pub(crate) mod call_digest;
pub(crate) mod call_trail;
pub(crate) mod conversation;
pub(crate) mod costs;
pub(crate) mod feed;
pub(crate) mod journals;
pub(crate) mod load;
pub(crate) mod recent;
pub(crate) mod run_values;
pub(crate) mod secret_values;
pub(crate) mod stats;
pub(crate) mod stored_value;
pub(crate) mod writer;
