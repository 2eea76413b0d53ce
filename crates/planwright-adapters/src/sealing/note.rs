//! What the services of one store tell each other, sealed for its rows.

use crate::vault::{Cipher, OpenSealedError, SealError, SealedPlace};
use planwright_core::digest::Digest;
use std::borrow::Cow;

/// Seals a note of a kind, for its key.
pub(crate) fn seal_note<'a>(
    cipher: &Cipher,
    (kind, key): (&str, &Digest),
    value: &'a [u8],
) -> Result<Cow<'a, [u8]>, SealError> {
    cipher.seal(note_place(&[kind.as_bytes(), key.as_bytes()]), value)
}

pub(crate) fn open_note(
    cipher: &Cipher,
    (kind, key): (&str, &Digest),
    kept: Vec<u8>,
) -> Result<Vec<u8>, OpenSealedError> {
    cipher.open(note_place(&[kind.as_bytes(), key.as_bytes()]), kept)
}

/// Seals a key that services have in common, for its name.
pub(crate) fn seal_shared_key<'a>(
    cipher: &Cipher,
    name: &str,
    key: &'a str,
) -> Result<Cow<'a, str>, SealError> {
    cipher.seal_text(key_place(&[name.as_bytes()]), key)
}

pub(crate) fn open_shared_key(
    cipher: &Cipher,
    name: &str,
    kept: String,
) -> Result<String, OpenSealedError> {
    cipher.open_text(key_place(&[name.as_bytes()]), kept)
}

/// Seals what a sign-in to a server came to, for its name.
pub(crate) fn seal_sign_in<'a>(
    cipher: &Cipher,
    name: &str,
    kept: &'a [u8],
) -> Result<Cow<'a, [u8]>, SealError> {
    cipher.seal(sign_in_place(&[name.as_bytes()]), kept)
}

pub(crate) fn open_sign_in(
    cipher: &Cipher,
    name: &str,
    kept: Vec<u8>,
) -> Result<Vec<u8>, OpenSealedError> {
    cipher.open(sign_in_place(&[name.as_bytes()]), kept)
}

fn sign_in_place<'a>(row: &'a [&'a [u8]]) -> SealedPlace<'a> {
    SealedPlace {
        table: "sign_ins",
        column: "kept",
        row,
    }
}

fn note_place<'a>(row: &'a [&'a [u8]]) -> SealedPlace<'a> {
    SealedPlace {
        table: "service_notes",
        column: "value",
        row,
    }
}

fn key_place<'a>(row: &'a [&'a [u8]]) -> SealedPlace<'a> {
    SealedPlace {
        table: "shared_keys",
        column: "key",
        row,
    }
}
