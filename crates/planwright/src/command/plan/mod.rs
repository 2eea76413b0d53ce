//! Commands that write, change, list and put away plans.

pub(crate) mod archive;
pub(crate) mod artifact;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod new;
pub(crate) mod propose;
pub(crate) mod recorded;
pub(crate) mod regenerate;
pub(crate) mod restore;
pub(crate) mod show;
mod show_run;
pub(crate) mod template;
pub(crate) mod validate;
pub(crate) mod versions;
