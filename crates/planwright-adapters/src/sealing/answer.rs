//! Answers that the service may give again, sealed for their requests.

use crate::vault::{Cipher, OpenSealedError, SealError, SealedPlace};
use planwright_core::digest::Digest;

/// An answer of the service that may be given again, sealed for its key.
pub(crate) fn seal_answer(
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

pub(crate) fn open_answer(
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
pub(crate) fn mask_request(cipher: &Cipher, key: &Digest, request: Digest) -> Digest {
    cipher.mask(&[b"request", key.as_bytes()], request)
}
