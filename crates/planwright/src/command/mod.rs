//! The command line: one command per file, in the groups that `--help` has.

pub(crate) mod agents;
pub(crate) mod args;
pub(crate) mod audit;
pub(crate) mod demo;
pub(crate) mod dispatch;
pub(crate) mod execution;
mod groups;
mod help;
mod later;
#[cfg(test)]
mod mentioned;
pub(crate) mod plan;
pub(crate) mod review;
pub(crate) mod service;
pub(crate) mod setup;
pub(crate) mod start;
pub(crate) mod store;

pub(crate) use dispatch::dispatch;
