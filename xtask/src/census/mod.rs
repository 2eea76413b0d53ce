//! Counts over the source code of a workspace: a mirror for people who redraw it, not an aim.
//!
//! Each file counts one thing and returns it as data; `report` prints them. Code under `#[cfg(test)]`
//! is not counted as source.

mod comments;
mod count;
mod functions;
mod imports;
mod literals;
mod report;
mod source;
mod tuples;
mod types;

pub(crate) use report::run;
