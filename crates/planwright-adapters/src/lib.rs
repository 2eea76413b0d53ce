//! The outside: one folder per outside system, the only place where its types appear.

pub mod files;
pub mod sqlite;
