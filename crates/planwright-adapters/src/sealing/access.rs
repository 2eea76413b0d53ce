//! Marks of tokens, passes and passkeys: what their rows say can be seen, and not be changed.

use crate::vault::{Cipher, OpenSealedError, SealError, SealedPlace};
use planwright_core::digest::Digest;
use planwright_core::principal::Assurance;
use planwright_engine::port::{Pass, Passkey, Token};

/// Proves that the writer of a token's row knew the key; `None` if there is none.
pub(crate) fn token_mark(cipher: &Cipher, token: &Token) -> Result<Option<Vec<u8>>, SealError> {
    with_token_place(token, |place| row_mark(cipher, place))
}

/// Proves that the writer of a row knew the key; `None` if there is none.
fn row_mark(cipher: &Cipher, place: SealedPlace<'_>) -> Result<Option<Vec<u8>>, SealError> {
    if !cipher.is_sealed() {
        return Ok(None);
    }
    Ok(Some(cipher.seal(place, b"")?.into_owned()))
}

fn check_row_mark(
    cipher: &Cipher,
    place: SealedPlace<'_>,
    mark: Option<Vec<u8>>,
) -> Result<(), OpenSealedError> {
    if !cipher.is_sealed() {
        return Ok(());
    }
    cipher.open(place, mark.ok_or(OpenSealedError)?).map(drop)
}

pub(crate) fn check_token_mark(
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

/// Proves that the writer of a pass's row knew the key; `None` if there is none.
pub(crate) fn pass_mark(cipher: &Cipher, pass: &Pass) -> Result<Option<Vec<u8>>, SealError> {
    with_pass_place(pass, |place| row_mark(cipher, place))
}

pub(crate) fn check_pass_mark(
    cipher: &Cipher,
    pass: &Pass,
    mark: Option<Vec<u8>>,
) -> Result<(), OpenSealedError> {
    with_pass_place(pass, |place| check_row_mark(cipher, place, mark))
}

/// An assurance as a column has it.
pub(crate) fn assurance_word(assurance: Assurance) -> String {
    match serde_json::to_value(assurance) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => String::new(),
    }
}

/// Everything a row says, as what its mark is bound to.
fn with_pass_place<T>(pass: &Pass, work: impl FnOnce(SealedPlace<'_>) -> T) -> T {
    let optional =
        |hash: Option<Digest>| hash.map_or_else(Vec::new, |hash| hash.as_bytes().to_vec());
    let proof = optional(pass.proof);
    let token = optional(pass.token);
    let created = pass.created_at.as_millis().to_le_bytes();
    let expires = pass.expires_at.as_millis().to_le_bytes();
    let assurance = assurance_word(pass.assurance);
    let row: [&[u8]; 10] = [
        pass.kind.as_str().as_bytes(),
        pass.hash.as_bytes(),
        &proof,
        &token,
        pass.principal.kind.as_str().as_bytes(),
        pass.principal.name.as_bytes(),
        pass.role.as_str().as_bytes(),
        assurance.as_bytes(),
        &created,
        &expires,
    ];
    work(SealedPlace {
        table: "passes",
        column: "mark",
        row: &row,
    })
}

/// Proves that the writer of a passkey's row knew the key; `None` if there is none.
pub(crate) fn passkey_mark(
    cipher: &Cipher,
    passkey: &Passkey,
) -> Result<Option<Vec<u8>>, SealError> {
    with_passkey_place(passkey, |place| row_mark(cipher, place))
}

pub(crate) fn check_passkey_mark(
    cipher: &Cipher,
    passkey: &Passkey,
    mark: Option<Vec<u8>>,
) -> Result<(), OpenSealedError> {
    with_passkey_place(passkey, |place| check_row_mark(cipher, place, mark))
}

/// Everything a row says, as what its mark is bound to.
fn with_passkey_place<T>(passkey: &Passkey, work: impl FnOnce(SealedPlace<'_>) -> T) -> T {
    let created = passkey.created_at.as_millis().to_le_bytes();
    let used = passkey.used_at.map_or_else(Vec::new, |used_at| {
        used_at.as_millis().to_le_bytes().to_vec()
    });
    let row: [&[u8]; 8] = [
        &passkey.id,
        passkey.owner.kind.as_str().as_bytes(),
        passkey.owner.name.as_bytes(),
        passkey.label.as_bytes(),
        &passkey.key,
        &passkey.counter.to_le_bytes(),
        &created,
        &used,
    ];
    work(SealedPlace {
        table: "passkeys",
        column: "mark",
        row: &row,
    })
}
