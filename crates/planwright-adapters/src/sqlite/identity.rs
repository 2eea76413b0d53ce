//! Whose store this is: a signed row that names the key of the user who made or adopted it, the
//! place it was made for, and the marks that its owner leaves on every journal.
//!
//! A store that came from elsewhere brings approvals and runs of another person, or a second copy
//! of one's own. It can be read, and nothing is written into it before a person adopts it.
//!
//! A place is a path and a file. Either is enough to know it again: a folder that is moved keeps
//! its files, and one that is mounted or restored elsewhere may keep its path. A copy has neither.

use super::fault::describe;
use super::open::{OpenStoreError, Options};
use crate::signing::{MarkKey, PublicKey, SIGNATURE_BYTES, SigningKey, verify_signature};
use planwright_core::journal::Head;
use planwright_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

const FORMAT: u32 = 1;
const STORE_BYTES: usize = 16;
const MARK_BYTES: usize = 16;

/// Who opens a store.
#[derive(Debug, Clone, Default)]
pub enum StoreOwner {
    /// No owner is asked for: a store without an identity stays without one. For tests and for
    /// programs that keep a store to themselves.
    #[default]
    Unchecked,
    /// A user without a key: no store is theirs.
    Unknown,
    Key(Arc<SigningKey>),
}

/// Why a store is not its opener's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForeignStore {
    /// It holds journals, and nothing says whose they are: an earlier release made it, or its
    /// identity was removed.
    NoIdentity,
    /// It was made or adopted with this key.
    OtherKey(PublicKey),
    /// It names the opener's key, which did not sign it.
    BadSignature,
    /// It is the opener's own, and another file at another place than the one they made.
    Copied,
}

impl fmt::Display for ForeignStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoIdentity => f.write_str(
                "it does not say whose it is (an earlier release made it, or it was tampered with)",
            ),
            Self::OtherKey(key) => {
                write!(
                    f,
                    "it was made by another user or on another machine ({key})"
                )
            }
            Self::BadSignature => f.write_str("it names your key, which did not sign it"),
            Self::Copied => f.write_str("it is a copy of a store of yours"),
        }
    }
}

/// What a process may do with a store.
#[derive(Debug)]
pub(super) enum Belonging {
    /// No identity is asked for, and there is none.
    Unclaimed,
    /// Marks are written, and expected.
    Ours(Marker),
    /// Read-only.
    Foreign(ForeignStore),
    /// Not the opener's yet: marks are written, and not yet expected.
    Adopting(Marker, ForeignStore),
}

impl Belonging {
    /// The marks that are written.
    pub(super) fn writes(&self) -> Option<&Marker> {
        match self {
            Self::Ours(marker) | Self::Adopting(marker, _) => Some(marker),
            Self::Unclaimed | Self::Foreign(_) => None,
        }
    }

    /// The marks that are expected.
    pub(super) fn expects(&self) -> Option<&Marker> {
        match self {
            Self::Ours(marker) => Some(marker),
            Self::Unclaimed | Self::Foreign(_) | Self::Adopting(..) => None,
        }
    }

    /// Why nothing may be written.
    pub(super) fn foreign(&self) -> Option<&ForeignStore> {
        match self {
            Self::Foreign(why) => Some(why),
            Self::Unclaimed | Self::Ours(_) | Self::Adopting(..) => None,
        }
    }
}

/// Marks heads as written by the owner of one store.
#[derive(Debug)]
pub(super) struct Marker {
    store: [u8; STORE_BYTES],
    marks: MarkKey,
    pub(super) adopted_at: Option<Timestamp>,
}

impl Marker {
    fn new(key: &SigningKey, store: [u8; STORE_BYTES], adopted_at: Option<Timestamp>) -> Self {
        Self {
            store,
            marks: marks_of(key, &store),
            adopted_at,
        }
    }

    /// The mark of a head as it really is, also in an encrypted store: it survives a new key of the
    /// encryption, and tells those without this key nothing.
    pub(super) fn mark(&self, stream: &str, head: Head) -> [u8; MARK_BYTES] {
        let seq = head.seq.to_le_bytes();
        self.marks
            .mark(&[b"head", stream.as_bytes(), &seq, head.hash.as_bytes()])
    }

    /// Returns whether a head has its mark. A stream without entries needs none.
    pub(super) fn is_marked(&self, stream: &str, head: Head, found: Option<&[u8]>) -> bool {
        head.seq == 0 || found.is_some_and(|found| is_same(found, &self.mark(stream, head)))
    }
}

/// Compares in the same time wherever they differ.
fn is_same(one: &[u8], two: &[u8]) -> bool {
    use subtle::ConstantTimeEq as _;
    one.ct_eq(two).into()
}

fn marks_of(key: &SigningKey, store: &[u8; STORE_BYTES]) -> MarkKey {
    key.derive_marks(&[b"planwright store 1", store])
}

/// The row, as it is kept.
struct Identity {
    format: u32,
    store: [u8; STORE_BYTES],
    public_key: PublicKey,
    made_at: i64,
    adopted_at: Option<i64>,
    place: Place,
    signature: [u8; SIGNATURE_BYTES],
}

/// Where a database is and which file it is, as marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    path: [u8; MARK_BYTES],
    file: [u8; MARK_BYTES],
}

impl Place {
    fn of(path: &Path, marks: &MarkKey) -> Result<Self, OpenStoreError> {
        let failed = |source| OpenStoreError::File {
            path: path.into(),
            source,
        };
        let found = std::fs::metadata(path).map_err(failed)?;
        let real = path.canonicalize().map_err(failed)?;
        // A number of a file is used again after a while; with the time it was made it is not.
        let made = found.created().ok();
        let made = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
        let made = made.map_or(0, |made| made.as_nanos()).to_le_bytes();
        Ok(Self {
            path: marks.mark(&[b"path", real.as_os_str().as_bytes()]),
            file: marks.mark(&[b"file", &found.ino().to_le_bytes(), &made]),
        })
    }

    fn is_known_as(&self, other: &Self) -> bool {
        self.path == other.path || self.file == other.file
    }
}

impl Identity {
    fn new(
        key: &SigningKey,
        store: [u8; STORE_BYTES],
        (made_at, adopted_at): (i64, Option<i64>),
        place: Place,
    ) -> Self {
        let mut identity = Self {
            format: FORMAT,
            store,
            public_key: key.public(),
            made_at,
            adopted_at,
            place,
            signature: [0; SIGNATURE_BYTES],
        };
        identity.signature = key.sign(&identity.statement());
        identity
    }

    /// What is signed.
    fn statement(&self) -> Vec<u8> {
        let mut text = b"planwright store identity 1\n".to_vec();
        text.extend_from_slice(&self.format.to_le_bytes());
        text.extend_from_slice(&self.store);
        text.extend_from_slice(self.public_key.as_bytes());
        text.extend_from_slice(&self.made_at.to_le_bytes());
        text.extend_from_slice(&self.adopted_at.unwrap_or(i64::MIN).to_le_bytes());
        text.extend_from_slice(&self.place.path);
        text.extend_from_slice(&self.place.file);
        text
    }

    fn read(connection: &Connection) -> Result<Option<Self>, rusqlite::Error> {
        let sql = "SELECT format, store, public_key, made_at, adopted_at, path, file, signature
                   FROM identity";
        let row = connection.query_row(sql, [], |row| {
            Ok(Self {
                format: row.get(0)?,
                store: row.get(1)?,
                public_key: PublicKey::from_bytes(row.get(2)?),
                made_at: row.get(3)?,
                adopted_at: row.get(4)?,
                place: Place {
                    path: row.get(5)?,
                    file: row.get(6)?,
                },
                signature: row.get(7)?,
            })
        });
        row.optional()
    }

    fn write(&self, connection: &Connection) -> Result<(), rusqlite::Error> {
        let sql = "INSERT OR REPLACE INTO identity
                   (only, format, store, public_key, made_at, adopted_at, path, file, signature)
                   VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        connection.execute(
            sql,
            params![
                self.format,
                self.store,
                self.public_key.as_bytes(),
                self.made_at,
                self.adopted_at,
                self.place.path,
                self.place.file,
                self.signature
            ],
        )?;
        Ok(())
    }

    /// Whose it is, wherever it is.
    fn check_owner(&self, key: &SigningKey) -> Result<(), ForeignStore> {
        if self.public_key != key.public() {
            return Err(ForeignStore::OtherKey(self.public_key));
        }
        let signed = verify_signature(&self.public_key, &self.statement(), &self.signature);
        if self.format != FORMAT || signed.is_err() {
            return Err(ForeignStore::BadSignature);
        }
        Ok(())
    }

    fn marker(&self, key: &SigningKey) -> Marker {
        let adopted_at = self.adopted_at.map(Timestamp::from_millis);
        Marker::new(key, self.store, adopted_at)
    }

    /// The same store at another place.
    fn moved_to(&self, key: &SigningKey, place: Place) -> Self {
        Self::new(key, self.store, (self.made_at, self.adopted_at), place)
    }
}

/// Says whose store has been opened. A new one becomes the opener's.
pub(super) fn claim(
    connection: &mut Connection,
    options: &Options,
) -> Result<Belonging, OpenStoreError> {
    let key = match &options.owner {
        StoreOwner::Key(key) => key,
        StoreOwner::Unchecked | StoreOwner::Unknown => {
            return Ok(match Identity::read(connection)? {
                Some(identity) => Belonging::Foreign(ForeignStore::OtherKey(identity.public_key)),
                None if matches!(options.owner, StoreOwner::Unchecked) => Belonging::Unclaimed,
                None => Belonging::Foreign(ForeignStore::NoIdentity),
            });
        }
    };
    if Identity::read(connection)?.is_none() && is_empty(connection)? {
        make(connection, key, options)?;
    }
    let why = match judge(connection, key, options)? {
        Belonging::Foreign(why) => why,
        ours => return Ok(ours),
    };
    if !options.adopt {
        return Ok(Belonging::Foreign(why));
    }
    let marker = Marker::new(key, random_store()?, None);
    Ok(Belonging::Adopting(marker, why))
}

fn judge(
    connection: &Connection,
    key: &SigningKey,
    options: &Options,
) -> Result<Belonging, OpenStoreError> {
    let Some(identity) = Identity::read(connection)? else {
        return Ok(Belonging::Foreign(ForeignStore::NoIdentity));
    };
    if let Err(why) = identity.check_owner(key) {
        return Ok(Belonging::Foreign(why));
    }
    let here = Place::of(&options.path, &marks_of(key, &identity.store))?;
    if !here.is_known_as(&identity.place) {
        return Ok(Belonging::Foreign(ForeignStore::Copied));
    }
    // It was moved, or rewritten in place. If this cannot be noted now, it is the next time.
    if here != identity.place
        && let Err(error) = identity.moved_to(key, here).write(connection)
    {
        tracing::debug!(
            reason = describe(&error),
            "the new place of the store is not noted"
        );
    }
    Ok(Belonging::Ours(identity.marker(key)))
}

/// Gives a new store its identity. Of several processes one does it.
fn make(
    connection: &mut Connection,
    key: &SigningKey,
    options: &Options,
) -> Result<(), OpenStoreError> {
    let store = random_store()?;
    let place = Place::of(&options.path, &marks_of(key, &store))?;
    let now = super::lease::now().as_millis();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if Identity::read(&transaction)?.is_none() && is_empty(&transaction)? {
        Identity::new(key, store, (now, None), place).write(&transaction)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Refuses a store that is not the opener's.
pub(super) fn refuse_foreign(
    connection: &mut Connection,
    options: &Options,
) -> Result<(), OpenStoreError> {
    match claim(connection, options)? {
        Belonging::Foreign(why) | Belonging::Adopting(_, why) => Err(OpenStoreError::Foreign(why)),
        Belonging::Unclaimed | Belonging::Ours(_) => Ok(()),
    }
}

/// A store that was restored from a backup of the opener's own is theirs where it is now.
pub(super) fn follow_restore(
    connection: &Connection,
    options: &Options,
) -> Result<(), OpenStoreError> {
    let (StoreOwner::Key(key), Some(identity)) = (&options.owner, Identity::read(connection)?)
    else {
        return Ok(());
    };
    if identity.check_owner(key).is_ok() {
        let here = Place::of(&options.path, &marks_of(key, &identity.store))?;
        identity.moved_to(key, here).write(connection)?;
    }
    Ok(())
}

/// Makes a store the opener's, inside a transaction. The heads have been marked.
pub(super) fn adopt(
    connection: &Connection,
    (path, key): (PathBuf, &SigningKey),
    marker: &Marker,
    now: Timestamp,
) -> Result<(), OpenStoreError> {
    let made_at = Identity::read(connection)?.map_or(now.as_millis(), |identity| identity.made_at);
    let place = Place::of(&path, &marker.marks)?;
    let times = (made_at, Some(now.as_millis()));
    Identity::new(key, marker.store, times, place).write(connection)?;
    Ok(())
}

fn random_store() -> Result<[u8; STORE_BYTES], OpenStoreError> {
    let mut store = [0; STORE_BYTES];
    let random = getrandom::fill(&mut store);
    random.map_err(|error| {
        OpenStoreError::Unlock(crate::vault::UnlockError::Random(error.to_string()))
    })?;
    Ok(store)
}

/// Nothing is in it that could be another person's word.
fn is_empty(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let has_rows = |table: &str| {
        connection
            .prepare(&format!("SELECT 1 FROM {table} LIMIT 1"))?
            .exists([])
    };
    let tables = ["streams", "entries", "tokens", "passes", "passkeys"];
    for table in tables {
        if has_rows(table)? {
            return Ok(false);
        }
    }
    Ok(true)
}
