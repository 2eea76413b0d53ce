//! The life of a run: starting, commanding, resuming, sub-plans and undo.

pub(crate) mod child;
pub(crate) mod command;
pub(crate) mod durations;
mod error_kind;
pub(crate) mod handle;
pub(crate) mod options;
mod outputs;
pub(crate) mod remote_command;
pub(crate) mod requested;
pub(crate) mod resume;
pub(crate) mod runs;
pub(crate) mod start;
pub(crate) mod undo;
pub(crate) mod write_off;

pub use outputs::read_outputs;
