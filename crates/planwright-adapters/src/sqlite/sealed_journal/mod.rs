//! Journals in files of their own: one stream, complete, with the hash chain it has in the database.
//!
//! A sealed file is written beside the database, synced and read back before its entries leave the
//! database, and the row that names it is written in the transaction that takes them out. So a
//! process that is killed leaves both, or the file alone. Readers do not notice where a journal is;
//! only appends are refused.

mod artifacts;
mod file;
mod import;
mod port;
mod remove;
mod restore;
mod rows;
mod seal;
mod verify;

pub(crate) use artifacts::collect_digests;
pub(super) use file::is_sealed_name;
pub(super) use file::{After, SealedEntry, SealedFiles};
pub use file::{ReadSealedError, SealedFile};
pub use import::ImportError;
pub(super) use port::{Turn, unsealed_sql};
pub(super) use rows::{SealedRow, find_row, is_removed, named_files, rows_after};
