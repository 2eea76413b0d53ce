//! Keeping secrets out of everything that is stored or shown.

pub(crate) mod call_results;
pub(crate) mod entry_text;
pub(crate) mod known_secrets;
pub(crate) mod learning;
pub(crate) mod masked_text;
