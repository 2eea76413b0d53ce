//! Entries of the journal, sealed for their streams and numbers.

use crate::vault::{Cipher, OpenSealedError, SealError, SealedPlace};
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, Record};
use std::borrow::Cow;

/// The columns of an entry that are not kept as they are.
#[derive(Debug)]
pub(crate) struct KeptEntry<'a> {
    pub(crate) hash: Digest,
    pub(crate) key: Option<Cow<'a, str>>,
    pub(crate) body: Cow<'a, [u8]>,
}

fn entry_mask(cipher: &Cipher, stream: &str, seq: u64, hash: Digest) -> Digest {
    cipher.mask(&[b"entry", stream.as_bytes(), &seq.to_le_bytes()], hash)
}

/// A head as the file has it, or as it really is: the same call does both.
pub(crate) fn mask_head(cipher: &Cipher, stream: &str, head: Head) -> Head {
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
pub(crate) fn seal_entry<'a>(
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
pub(crate) fn open_entry(
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

/// A unique key as the table has it; `None` if it is kept as it is.
pub(crate) fn kept_key(cipher: &Cipher, stream: &str, key: &str) -> Option<String> {
    cipher.name(&[b"key", stream.as_bytes(), key.as_bytes()])
}
