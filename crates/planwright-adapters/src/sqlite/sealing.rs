//! What each table keeps in place of what it is given, when the store is encrypted.
//!
//! Bodies, labels, keys, commands and refusals are sealed for their row. The chain's hashes are
//! taken over what is sealed, so they are masked: a hash of something that could be guessed would
//! confirm the guess. Names of streams, statuses, times and sizes stay as they are.

use crate::vault::{Cipher, OpenSealedError, SealError, SealedPlace};
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, Record};
use planwright_engine::port::{StoreError, Token};
use rusqlite::types::Type;
use std::borrow::Cow;

impl From<SealError> for StoreError {
    fn from(error: SealError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A value that did not open, as SQLite's own errors are: the reader of a stream reports it as
/// damaged.
pub(super) fn unopened(column: usize) -> impl FnOnce(OpenSealedError) -> rusqlite::Error {
    move |error| rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, Box::new(error))
}

/// The columns of an entry that are not kept as they are.
#[derive(Debug)]
pub(super) struct KeptEntry<'a> {
    pub(super) hash: Digest,
    pub(super) key: Option<Cow<'a, str>>,
    pub(super) body: Cow<'a, [u8]>,
}

fn entry_mask(cipher: &Cipher, stream: &str, seq: u64, hash: Digest) -> Digest {
    cipher.mask(&[b"entry", stream.as_bytes(), &seq.to_le_bytes()], hash)
}

/// A head as the file has it, or as it really is: the same call does both.
pub(super) fn mask_head(cipher: &Cipher, stream: &str, head: Head) -> Head {
    // An empty stream has no entry whose hash could be masked.
    if head.seq == 0 {
        return head;
    }
    Head {
        seq: head.seq,
        hash: entry_mask(cipher, stream, head.seq, head.hash),
    }
}

/// Seals an entry for its place. A key stays unique without being readable; the body holds it in
/// full.
pub(super) fn seal_entry<'a>(
    cipher: &Cipher,
    stream: &str,
    record: &'a Record,
) -> Result<KeptEntry<'a>, SealError> {
    let Record {
        seq,
        key,
        body,
        hash,
        ..
    } = record;
    if !cipher.is_sealed() {
        let key = key.as_deref().map(Cow::Borrowed);
        return Ok(KeptEntry {
            hash: *hash,
            key,
            body: Cow::Borrowed(body),
        });
    }
    let mut whole = Vec::with_capacity(8 + key.as_deref().map_or(0, str::len) + body.len());
    let length = key.as_deref().map_or(u64::MAX, |key| key.len() as u64);
    whole.extend_from_slice(&length.to_le_bytes());
    whole.extend_from_slice(key.as_deref().unwrap_or_default().as_bytes());
    whole.extend_from_slice(body);
    let place = SealedPlace {
        table: "entries",
        column: "body",
        row: &[stream.as_bytes(), &seq.to_le_bytes()],
    };
    Ok(KeptEntry {
        hash: entry_mask(cipher, stream, *seq, *hash),
        key: key
            .as_deref()
            .and_then(|key| kept_key(cipher, stream, key))
            .map(Cow::Owned),
        body: Cow::Owned(cipher.seal(place, &whole)?.into_owned()),
    })
}

/// The record behind what is kept.
pub(super) fn open_entry(
    cipher: &Cipher,
    stream: &str,
    kept: Record,
) -> Result<Record, OpenSealedError> {
    if !cipher.is_sealed() {
        return Ok(kept);
    }
    let Record {
        seq,
        at,
        epoch,
        key: kept_as,
        body,
        hash,
    } = kept;
    let place = SealedPlace {
        table: "entries",
        column: "body",
        row: &[stream.as_bytes(), &seq.to_le_bytes()],
    };
    let mut whole = cipher.open(place, body)?;
    let length = whole
        .split_first_chunk::<8>()
        .map(|(length, _)| u64::from_le_bytes(*length));
    let length = length.ok_or(OpenSealedError)?;
    let key_bytes = if length == u64::MAX {
        0
    } else {
        usize::try_from(length).map_err(|_| OpenSealedError)?
    };
    let body_at = key_bytes
        .checked_add(8)
        .filter(|at| *at <= whole.len())
        .ok_or(OpenSealedError)?;
    let body = whole.split_off(body_at);
    let key = match length {
        u64::MAX => None,
        _ => Some(String::from_utf8(whole.split_off(8)).map_err(|_| OpenSealedError)?),
    };
    // What is unique in the table must be what is unique in the journal.
    if key.as_deref().and_then(|key| kept_key(cipher, stream, key)) != kept_as {
        return Err(OpenSealedError);
    }
    Ok(Record {
        seq,
        at,
        epoch,
        key,
        body,
        hash: entry_mask(cipher, stream, seq, hash),
    })
}

fn kept_key(cipher: &Cipher, stream: &str, key: &str) -> Option<String> {
    cipher.name(&[b"key", stream.as_bytes(), key.as_bytes()])
}

/// The columns of a stream's row besides its label. The label is bound to it: none can be changed
/// without the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct LabelRow<'a> {
    pub(super) stream: &'a str,
    pub(super) plan: &'a str,
    pub(super) status: &'a str,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
}

impl LabelRow<'_> {
    fn with<T>(&self, work: impl FnOnce(SealedPlace<'_>) -> T) -> T {
        let Self {
            stream,
            plan,
            status,
            created_at,
            updated_at,
        } = self;
        let times = (created_at.to_le_bytes(), updated_at.to_le_bytes());
        let row = [
            stream.as_bytes(),
            plan.as_bytes(),
            status.as_bytes(),
            &times.0,
            &times.1,
        ];
        work(SealedPlace {
            table: "streams",
            column: "label",
            row: &row,
        })
    }

    pub(super) fn seal<'a>(
        &self,
        cipher: &Cipher,
        label: &'a str,
    ) -> Result<Cow<'a, str>, SealError> {
        self.with(|place| cipher.seal_text(place, label))
    }

    pub(super) fn open(&self, cipher: &Cipher, kept: String) -> Result<String, OpenSealedError> {
        self.with(|place| cipher.open_text(place, kept))
    }
}

/// The columns of a message: the command and its hash.
pub(super) fn seal_message(
    cipher: &Cipher,
    (id, run): (i64, &str),
    body: &[u8],
    hash: Digest,
) -> Result<(Vec<u8>, Digest), SealError> {
    let id = id.to_le_bytes();
    let place = SealedPlace {
        table: "messages",
        column: "body",
        row: &[&id, run.as_bytes()],
    };
    Ok((
        cipher.seal(place, body)?.into_owned(),
        cipher.mask(&[b"message", &id], hash),
    ))
}

pub(super) fn open_message(
    cipher: &Cipher,
    (id, run): (i64, &str),
    body: Vec<u8>,
    hash: Digest,
) -> Result<(Vec<u8>, Digest), OpenSealedError> {
    let id = id.to_le_bytes();
    let place = SealedPlace {
        table: "messages",
        column: "body",
        row: &[&id, run.as_bytes()],
    };
    Ok((
        cipher.open(place, body)?,
        cipher.mask(&[b"message", &id], hash),
    ))
}

pub(super) fn seal_refusal<'a>(
    cipher: &Cipher,
    id: i64,
    refusal: &'a str,
) -> Result<Cow<'a, str>, SealError> {
    let id = id.to_le_bytes();
    cipher.seal_text(
        SealedPlace {
            table: "messages",
            column: "refusal",
            row: &[&id],
        },
        refusal,
    )
}

pub(super) fn open_refusal(
    cipher: &Cipher,
    id: i64,
    kept: String,
) -> Result<String, OpenSealedError> {
    let id = id.to_le_bytes();
    cipher.open_text(
        SealedPlace {
            table: "messages",
            column: "refusal",
            row: &[&id],
        },
        kept,
    )
}

/// An answer of the service that may be given again, sealed for its key.
pub(super) fn seal_answer(
    cipher: &Cipher,
    key: &Digest,
    answer: &[u8],
) -> Result<Vec<u8>, SealError> {
    let place = SealedPlace {
        table: "answers",
        column: "answer",
        row: &[key.as_bytes()],
    };
    Ok(cipher.seal(place, answer)?.into_owned())
}

pub(super) fn open_answer(
    cipher: &Cipher,
    key: &Digest,
    kept: Vec<u8>,
) -> Result<Vec<u8>, OpenSealedError> {
    cipher.open(
        SealedPlace {
            table: "answers",
            column: "answer",
            row: &[key.as_bytes()],
        },
        kept,
    )
}

/// The hash of a request could confirm a guess of it. The same call hides it and shows it again.
pub(super) fn mask_request(cipher: &Cipher, key: &Digest, request: Digest) -> Digest {
    cipher.mask(&[b"request", key.as_bytes()], request)
}

/// Proves that the writer of a token's row knew the key; `None` if there is none.
pub(super) fn token_mark(cipher: &Cipher, token: &Token) -> Result<Option<Vec<u8>>, SealError> {
    with_token_place(token, |place| row_mark(cipher, place))
}

/// Proves that the writer of a row knew the key; `None` if there is none.
pub(super) fn row_mark(
    cipher: &Cipher,
    place: SealedPlace<'_>,
) -> Result<Option<Vec<u8>>, SealError> {
    if !cipher.is_sealed() {
        return Ok(None);
    }
    Ok(Some(cipher.seal(place, b"")?.into_owned()))
}

pub(super) fn check_row_mark(
    cipher: &Cipher,
    place: SealedPlace<'_>,
    mark: Option<Vec<u8>>,
) -> Result<(), OpenSealedError> {
    if !cipher.is_sealed() {
        return Ok(());
    }
    cipher.open(place, mark.ok_or(OpenSealedError)?).map(drop)
}

pub(super) fn check_token_mark(
    cipher: &Cipher,
    token: &Token,
    mark: Option<Vec<u8>>,
) -> Result<(), OpenSealedError> {
    with_token_place(token, |place| check_row_mark(cipher, place, mark))
}

fn with_token_place<T>(token: &Token, work: impl FnOnce(SealedPlace<'_>) -> T) -> T {
    let Token {
        id,
        hash,
        principal,
        role,
        created_at,
        expires_at,
        revoked_at,
    } = token;
    let optional = |at: Option<planwright_core::time::Timestamp>| match at {
        Some(at) => at.as_millis().to_le_bytes().to_vec(),
        None => Vec::new(),
    };
    let created = created_at.as_millis().to_le_bytes();
    let expires = optional(*expires_at);
    let revoked = optional(*revoked_at);
    let row: [&[u8]; 8] = [
        id.0.as_bytes(),
        hash.as_bytes(),
        principal.kind.as_str().as_bytes(),
        principal.name.as_bytes(),
        role.as_str().as_bytes(),
        &created,
        &expires,
        &revoked,
    ];
    work(SealedPlace {
        table: "tokens",
        column: "mark",
        row: &row,
    })
}
