//! The program as people install it: one description, and every kind of package made from it.
//!
//! The same program gives the same bytes: times are fixed, entries are in order, and nothing of the
//! machine that packages goes into them.

mod archive;
mod command;
mod contents;
mod crates;
mod debian;
mod description;
mod notices;
mod npm;
mod platform;
mod program;
mod sbom;
mod tarball;
mod trial;
mod wheel;

pub(crate) use command::{run, trial_suite};
