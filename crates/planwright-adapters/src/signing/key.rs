//! Ed25519 keys, and the keys of marks that are derived from them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use std::fmt;
use std::str::FromStr;
use zeroize::Zeroizing;

pub const SIGNATURE_BYTES: usize = 64;
pub(super) const SEED_BYTES: usize = 32;
const PUBLIC_BYTES: usize = 32;
/// Half of HMAC-SHA-256: too many to guess one, and half the bytes in every commit.
pub(crate) const MARK_BYTES: usize = 16;

/// The public half of a key: `ed25519:` and 32 bytes as base64.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; PUBLIC_BYTES]);

#[derive(Debug, thiserror::Error)]
#[error("the signature is not one of this key over exactly these bytes")]
pub struct VerifySignatureError;

impl PublicKey {
    pub fn from_bytes(bytes: [u8; PUBLIC_BYTES]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; PUBLIC_BYTES] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ed25519:{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a public key is written as ed25519: and 32 bytes in base64")]
pub struct ParsePublicKeyError;

impl FromStr for PublicKey {
    type Err = ParsePublicKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.strip_prefix("ed25519:").ok_or(ParsePublicKeyError)?;
        let bytes = STANDARD.decode(bytes).map_err(|_| ParsePublicKeyError)?;
        let bytes = bytes.try_into().map_err(|_| ParsePublicKeyError)?;
        Ok(Self(bytes))
    }
}

/// Checks that the holder of the key signed exactly these bytes.
pub fn verify_signature(
    key: &PublicKey,
    message: &[u8],
    signature: &[u8],
) -> Result<(), VerifySignatureError> {
    UnparsedPublicKey::new(&ED25519, &key.0)
        .verify(message, signature)
        .map_err(|_| VerifySignatureError)
}

/// The user's key. Its secret half is never shown.
pub struct SigningKey {
    seed: Zeroizing<[u8; SEED_BYTES]>,
    pair: Ed25519KeyPair,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.public()).finish()
    }
}

impl SigningKey {
    /// A new key.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        getrandom::fill(&mut *seed)?;
        Ok(Self::from_seed(seed))
    }

    pub(super) fn from_seed(seed: Zeroizing<[u8; SEED_BYTES]>) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&*seed).expect("a seed has 32 bytes");
        Self { seed, pair }
    }

    pub(super) fn seed(&self) -> &[u8; SEED_BYTES] {
        &self.seed
    }

    pub fn public(&self) -> PublicKey {
        let bytes = self.pair.public_key().as_ref();
        PublicKey(bytes.try_into().expect("a public key has 32 bytes"))
    }

    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let signature = self.pair.sign(message);
        signature
            .as_ref()
            .try_into()
            .expect("a signature has 64 bytes")
    }

    /// A key for marks about this one thing. A mark costs a hundredth of a signature and is checked
    /// by the holder of the key only.
    pub(crate) fn derive_marks(&self, purpose: &[&[u8]]) -> MarkKey {
        let root = hmac::Key::new(hmac::HMAC_SHA256, &*self.seed);
        let derived = hmac::sign(&root, &join(purpose));
        MarkKey(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()))
    }
}

/// A key that marks what its holder wrote.
#[derive(Clone)]
pub(crate) struct MarkKey(hmac::Key);

impl fmt::Debug for MarkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key of marks]")
    }
}

impl MarkKey {
    pub(crate) fn mark(&self, parts: &[&[u8]]) -> [u8; MARK_BYTES] {
        let tag = hmac::sign(&self.0, &join(parts));
        tag.as_ref()[..MARK_BYTES]
            .try_into()
            .expect("a tag has 32 bytes")
    }
}

/// Each part behind its length, so that no two lists of parts are the same bytes.
fn join(parts: &[&[u8]]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        joined.extend_from_slice(&(part.len() as u64).to_le_bytes());
        joined.extend_from_slice(part);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_one_key_and_exactly_these_bytes() {
        let key = SigningKey::random().unwrap();
        let signature = key.sign(b"a plan");
        assert!(verify_signature(&key.public(), b"a plan", &signature).is_ok());
        assert!(verify_signature(&key.public(), b"a plam", &signature).is_err());
        let other = SigningKey::random().unwrap();
        assert!(verify_signature(&other.public(), b"a plan", &signature).is_err());
        for byte in 0..SIGNATURE_BYTES {
            let mut signature = signature;
            signature[byte] ^= 1;
            assert!(verify_signature(&key.public(), b"a plan", &signature).is_err());
        }
    }

    #[test]
    fn a_public_key_is_read_as_it_is_written() {
        let public = SigningKey::random().unwrap().public();
        assert_eq!(public.to_string().parse::<PublicKey>().unwrap(), public);
        for wrong in ["", "ed25519:", "ed25519:AAAA", "rsa:AAAA"] {
            assert!(wrong.parse::<PublicKey>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn marks_differ_with_the_key_the_purpose_and_every_part() {
        let key = SigningKey::random().unwrap();
        let marks = key.derive_marks(&[b"store", b"one"]);
        let mark = marks.mark(&[b"ab", b"c"]);
        assert_eq!(mark, marks.mark(&[b"ab", b"c"]));
        assert_ne!(mark, marks.mark(&[b"a", b"bc"]));
        assert_ne!(
            mark,
            key.derive_marks(&[b"store", b"two"]).mark(&[b"ab", b"c"])
        );
        let other = SigningKey::random()
            .unwrap()
            .derive_marks(&[b"store", b"one"]);
        assert_ne!(mark, other.mark(&[b"ab", b"c"]));
    }
}
