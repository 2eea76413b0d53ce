//! The MCP servers of a workspace: which files name them, which of them the user trusts, and
//! starting those a command needs. What they are told and how they answer is the adapter's
//! business.

mod expand;
mod files;
mod launch;
mod need;
mod roster;
mod table;

pub(crate) use files::read_entries;
pub(crate) use launch::Launch;
pub(crate) use need::{Need, Servers};
pub(crate) use roster::{ListedServer, Roster, ServerReadiness, Source};
pub(crate) use table::ServerTable;
