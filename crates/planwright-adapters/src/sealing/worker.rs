//! What workers say about themselves, sealed for their rows.

use crate::vault::{Cipher, OpenSealedError, SealError, SealedPlace};
use std::borrow::Cow;

/// Seals the column `host` or `tools` of a worker.
pub(crate) fn seal_worker_column<'a>(
    cipher: &Cipher,
    (worker, column): (&str, &'static str),
    value: &'a [u8],
) -> Result<Cow<'a, [u8]>, SealError> {
    cipher.seal(place(column, &[worker.as_bytes()]), value)
}

pub(crate) fn open_worker_column(
    cipher: &Cipher,
    (worker, column): (&str, &'static str),
    kept: Vec<u8>,
) -> Result<Vec<u8>, OpenSealedError> {
    cipher.open(place(column, &[worker.as_bytes()]), kept)
}

fn place<'a>(column: &'static str, row: &'a [&'a [u8]]) -> SealedPlace<'a> {
    SealedPlace {
        table: "workers",
        column,
        row,
    }
}
