//! Journals: writing them, reading them back, and what is counted over them.

pub(crate) mod costs;
pub(crate) mod load;
pub(crate) mod stats;
pub(crate) mod writer;
