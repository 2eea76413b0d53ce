//! Commands to runs and the refusals of them, sealed for their numbers.

use crate::vault::{Cipher, OpenSealedError, SealError, SealedPlace};
use planwright_core::digest::Digest;
use std::borrow::Cow;

/// Hashes all of a message: a command must not change on disk unnoticed.
pub(crate) fn message_hash(run: &str, body: &[u8]) -> Digest {
    Digest::of_parts(&[run.as_bytes(), body])
}

/// The columns of a message: the command and its hash.
pub(crate) fn seal_message(
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

pub(crate) fn open_message(
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

pub(crate) fn seal_refusal<'a>(
    cipher: &Cipher,
    id: i64,
    refusal: &'a str,
) -> Result<Cow<'a, str>, SealError> {
    let id = id.to_le_bytes();
    cipher.seal_text(refusal_place(&[&id]), refusal)
}

pub(crate) fn open_refusal(
    cipher: &Cipher,
    id: i64,
    kept: String,
) -> Result<String, OpenSealedError> {
    let id = id.to_le_bytes();
    cipher.open_text(refusal_place(&[&id]), kept)
}

/// As [`seal_refusal`], for a column of bytes.
pub(crate) fn seal_refusal_bytes<'a>(
    cipher: &Cipher,
    id: i64,
    refusal: &'a str,
) -> Result<Cow<'a, [u8]>, SealError> {
    let id = id.to_le_bytes();
    cipher.seal(refusal_place(&[&id]), refusal.as_bytes())
}

pub(crate) fn open_refusal_bytes(
    cipher: &Cipher,
    id: i64,
    kept: Vec<u8>,
) -> Result<Vec<u8>, OpenSealedError> {
    let id = id.to_le_bytes();
    cipher.open(refusal_place(&[&id]), kept)
}

fn refusal_place<'a>(row: &'a [&'a [u8]]) -> SealedPlace<'a> {
    SealedPlace {
        table: "messages",
        column: "refusal",
        row,
    }
}
