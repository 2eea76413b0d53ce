//! The journal in one SQLite file, shared by any number of processes on one machine.
//!
//! One thread per store writes, and commits everything that is queued at once. What another process
//! can change is remembered between two transactions only for as long as SQLite says that no other
//! connection has written. What was acknowledged is anchored in
//! a second file, so that a lost tail of the write-ahead log is noticed and reported instead of
//! passing for a shorter journal.

mod adoption;
mod anchor;
mod answers;
mod backup;
mod brought;
mod changes;
mod entry_index;
mod fault;
mod feed;
mod fence;
mod heads;
mod identity;
mod idle;
mod inspect;
mod known_streams;
mod lease;
mod lock_holder;
mod log_room;
mod open;
mod open_error_kind;
mod outbox;
mod owner;
mod passes;
mod passkeys;
mod probe;
mod reader;
mod recode;
mod restore;
mod schema;
mod sealed_journal;
mod store;
mod tokens;
mod transaction;
mod vacuum;
mod vault;
mod writer;

pub use adoption::{Adopted, Belongings};
pub use anchor::Loss;
pub use backup::{BackedFile, Manifest};
pub use identity::{ForeignStore, StoreOwner};
pub use idle::{
    IdleStore, Protection, RewriteProgress, RewriteStoreError, Rewritten, SHAPES, SIGN_INS, Tell,
};
pub use lock_holder::{LockHolder, find_lock_holder};
pub use open::{OpenStoreError, Options, is_encrypted, is_missing};
pub use restore::{Restore, Restored, read_manifest, restore};
pub(crate) use sealed_journal::collect_digests;
pub use sealed_journal::{ImportError, ReadSealedError, SealedFile};
pub use store::SqliteStore;
pub use vacuum::Vacuumed;
