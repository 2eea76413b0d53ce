//! Errors that endpoints of webhooks answered, sealed for what was to be delivered.

use crate::vault::{Cipher, OpenSealedError, SealError, SealedPlace};
use std::borrow::Cow;

/// Names a delivery: the endpoint, the position in the feed and the part.
pub(crate) type DeliveryPlace<'a> = (&'a str, i64, i64);

pub(crate) fn seal_delivery_error<'a>(
    cipher: &Cipher,
    delivery: DeliveryPlace<'_>,
    error: &'a [u8],
) -> Result<Cow<'a, [u8]>, SealError> {
    with_delivery(delivery, |place| cipher.seal(place, error))
}

pub(crate) fn open_delivery_error(
    cipher: &Cipher,
    delivery: DeliveryPlace<'_>,
    kept: Vec<u8>,
) -> Result<Vec<u8>, OpenSealedError> {
    with_delivery(delivery, |place| cipher.open(place, kept))
}

fn with_delivery<T>(
    (endpoint, position, part): DeliveryPlace<'_>,
    work: impl FnOnce(SealedPlace<'_>) -> T,
) -> T {
    work(SealedPlace {
        table: "deliveries",
        column: "last_error",
        row: &[
            endpoint.as_bytes(),
            &position.to_le_bytes(),
            &part.to_le_bytes(),
        ],
    })
}

/// Seals the reason an endpoint was disabled.
pub(crate) fn seal_reason<'a>(
    cipher: &Cipher,
    endpoint: &str,
    reason: &'a [u8],
) -> Result<Cow<'a, [u8]>, SealError> {
    cipher.seal(reason_place(&[endpoint.as_bytes()]), reason)
}

pub(crate) fn open_reason(
    cipher: &Cipher,
    endpoint: &str,
    kept: Vec<u8>,
) -> Result<Vec<u8>, OpenSealedError> {
    cipher.open(reason_place(&[endpoint.as_bytes()]), kept)
}

fn reason_place<'a>(row: &'a [&'a [u8]]) -> SealedPlace<'a> {
    SealedPlace {
        table: "endpoints",
        column: "disabled",
        row,
    }
}
