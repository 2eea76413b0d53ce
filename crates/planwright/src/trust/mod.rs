//! Which folders the user trusts: what the files of a workspace loosen counts only after the user
//! said so, for exactly those bytes. What they tighten counts always.

mod folder;
mod hints;
mod loosening;
mod ownership;
mod programs;
mod record;
mod store_key;

pub(crate) use folder::{FolderTrust, JudgedLoosening};
pub(crate) use hints::{answer_directory, forget_hints, hint_directory};
pub(crate) use loosening::{Loosening, Subject};
pub(crate) use ownership::{ForeignFile, account, foreign_owner};
pub(crate) use programs::{executor_loosening, server_loosening};
pub(crate) use record::{Trust, TrustEntry, TrustState, home, is_inside};
pub(crate) use store_key::{KeyUse, find_store_owner, read_store_key};
