//! The processes that this one starts: servers, commands, executors.
//!
//! What we start ends with us. Each child leads a process group of its own and carries a mark in
//! its environment that everything it starts inherits. A watchdog ends the groups and the marked
//! processes if we are killed. A child that works for a call is recorded in a file before it is
//! started, so that the next owner of the run can end it before the call is made again.
//!
//! A process that cleared its environment *and* left its group is not found. Catching it would
//! take a control group, which needs rights that we do not have.

mod children;
mod group;
mod leftovers;
mod record;
mod table;
mod watchdog;

pub use children::Children;
pub(crate) use children::WorkOf;
pub(crate) use group::{Pipes, ProcessGroup};
