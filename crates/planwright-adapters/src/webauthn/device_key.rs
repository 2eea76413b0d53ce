//! The public half of a passkey, and the three ways of signing that are taken.

use super::cbor::{Value, read_whole};
use planwright_engine::port::PasskeyFault;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};

/// A key as COSE numbers its parts. Each kind signs in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeviceKey {
    /// ES256.
    P256 { point: Vec<u8> },
    /// RS256.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// `EdDSA`.
    Ed25519 { point: Vec<u8> },
}

const KIND: i64 = 1;
const ALGORITHM: i64 = 3;

impl DeviceKey {
    /// Reads a key as it is kept.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, PasskeyFault> {
        let key = read_whole(bytes).ok_or(PasskeyFault::Unreadable)?;
        Self::of(&key)
    }

    /// Reads a key. That its kind and its way of signing fit each other is said by the device, and checked.
    pub(super) fn of(key: &Value) -> Result<Self, PasskeyFault> {
        let number = |at: i64| key.at(at).and_then(Value::number);
        let bytes = |at: i64| {
            let bytes = key.at(at).and_then(Value::bytes);
            bytes.ok_or(PasskeyFault::Unreadable)
        };
        match (number(KIND), number(ALGORITHM), number(-1)) {
            (Some(2), Some(-7), Some(1)) => {
                let x = bytes(-2)?;
                let y = bytes(-3)?;
                if x.len() != 32 || y.len() != 32 {
                    return Err(PasskeyFault::Unreadable);
                }
                let point = [&[4][..], x, y].concat();
                Ok(Self::P256 { point })
            }
            (Some(1), Some(-8), Some(6)) => {
                let point = bytes(-2)?.to_vec();
                Ok(Self::Ed25519 { point })
            }
            (Some(3), Some(-257), None) => {
                let n = bytes(-1)?.to_vec();
                let e = bytes(-2)?.to_vec();
                Ok(Self::Rsa { n, e })
            }
            _ => Err(PasskeyFault::Algorithm),
        }
    }

    /// Checks a signature.
    pub(super) fn check(&self, signed: &[u8], signature: &[u8]) -> Result<(), PasskeyFault> {
        let checked = match self {
            Self::P256 { point } => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).verify(signed, signature)
            }
            Self::Ed25519 { point } => {
                UnparsedPublicKey::new(&ED25519, point).verify(signed, signature)
            }
            Self::Rsa { n, e } => RsaPublicKeyComponents { n, e }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                signed,
                signature,
            ),
        };
        checked.map_err(|_| PasskeyFault::Signature)
    }
}
